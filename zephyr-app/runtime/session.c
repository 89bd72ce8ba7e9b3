/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/session.h>

void minrpc_session_init(struct minrpc_session *session, uint8_t seed)
{
	*session = (struct minrpc_session){.nonce = seed};
}

static uint8_t next_nonce(uint8_t nonce)
{
	uint8_t next = (uint8_t)((((uint32_t)nonce << 5) | (nonce >> 5)) + 1U);

	return next == 0U ? 1U : next;
}

static enum minrpc_session_action start(struct minrpc_session *session, uint8_t initiator)
{
	if (initiator == 0U) {
		return MINRPC_SESSION_IGNORE;
	}
	session->nonce = next_nonce(session->nonce);
	session->id = (uint16_t)(initiator | ((uint32_t)session->nonce << 8));
	session->established = true;
	return MINRPC_SESSION_STARTED;
}

enum minrpc_session_action minrpc_session_take(struct minrpc_session *session,
					       const uint8_t *message, uint32_t length)
{
	enum minrpc_session_action action;
	uint16_t id;

	if (length < MINRPC_SESSION_HEADER) {
		return MINRPC_SESSION_IGNORE;
	}
	id = (uint16_t)(message[0] | ((uint32_t)message[1] << 8));
	switch (message[2]) {
	case MINRPC_MESSAGE_START_INIT:
		return start(session, message[0]);
	case MINRPC_MESSAGE_TERMINATE:
		if (!session->established) {
			return MINRPC_SESSION_IGNORE;
		}
		session->established = false;
		return MINRPC_SESSION_ENDED;
	case MINRPC_MESSAGE_NORMAL:
	case MINRPC_MESSAGE_CHECKED:
		action = MINRPC_SESSION_DELIVER;
		break;
	case MINRPC_MESSAGE_NUMBERED:
		action = MINRPC_SESSION_NUMBERED;
		break;
	case MINRPC_MESSAGE_PROBE:
		action = MINRPC_SESSION_PROBE;
		break;
	default:
		return MINRPC_SESSION_IGNORE;
	}
	return session->established && id == session->id ? action : MINRPC_SESSION_STALE;
}
