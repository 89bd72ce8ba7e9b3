/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Decides the meaning of a message: it starts or ends a session, or is a request of the current
 * session.
 */
#include <minrpc/minrpc_config.h>
#include <minrpc/session.h>

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

/*
 * Returns the action for a message type within a session; IGNORE for types that a device does not
 * receive.
 */
static enum minrpc_session_action action_of(uint8_t type)
{
	static const uint8_t actions[] = {
		[MINRPC_MESSAGE_NORMAL - MINRPC_MESSAGE_NORMAL] = MINRPC_SESSION_DELIVER,
#if MINRPC_NUMBERED
		[MINRPC_MESSAGE_NUMBERED - MINRPC_MESSAGE_NORMAL] = MINRPC_SESSION_NUMBERED,
		[MINRPC_MESSAGE_PROBE - MINRPC_MESSAGE_NORMAL] = MINRPC_SESSION_PROBE,
#endif
#if MINRPC_STREAMING
		[MINRPC_MESSAGE_CHECKED - MINRPC_MESSAGE_NORMAL] = MINRPC_SESSION_DELIVER,
#endif
	};
	uint32_t index = (uint32_t)type - MINRPC_MESSAGE_NORMAL;

	return index < sizeof(actions) ? (enum minrpc_session_action)actions[index]
				       : MINRPC_SESSION_IGNORE;
}

enum minrpc_session_action minrpc_session_take(struct minrpc_session *session,
					       const uint8_t *message, uint32_t length)
{
	enum minrpc_session_action action;
	uint16_t id;

	if (length < MINRPC_SESSION_HEADER) {
		return MINRPC_SESSION_IGNORE;
	}
	if (message[2] == MINRPC_MESSAGE_START_INIT) {
		return start(session, message[0]);
	}
	if (message[2] == MINRPC_MESSAGE_TERMINATE && session->established) {
		session->established = false;
		return MINRPC_SESSION_ENDED;
	}
	action = action_of(message[2]);
	id = (uint16_t)(message[0] | ((uint32_t)message[1] << 8));
	if (action != MINRPC_SESSION_IGNORE && !(session->established && id == session->id)) {
		return MINRPC_SESSION_STALE;
	}
	return action;
}
