/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The device's side of microTVM's session protocol. The client starts each session, and a new start
 * replaces the current session.
 */
#ifndef MINRPC_SESSION_H_
#define MINRPC_SESSION_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** u16 session id, u8 type. */
#define MINRPC_SESSION_HEADER  3U
#define MINRPC_SESSION_VERSION 1U

/** The longest log. After a longer or an empty log clients lose all later replies. */
#define MINRPC_LOG_MAX 1023U

enum minrpc_message_type {
	MINRPC_MESSAGE_START_INIT = 0x00,
	MINRPC_MESSAGE_START_REPLY = 0x01,
	MINRPC_MESSAGE_TERMINATE = 0x02,
	MINRPC_MESSAGE_LOG = 0x03,
	MINRPC_MESSAGE_NORMAL = 0x10,

	/**
	 * Our extension for links that lose bytes. The client sends the first such message, after
	 * it has found the global function "minrpc.resend". So no other client or device ever gets
	 * such a message.
	 */
	MINRPC_MESSAGE_NUMBERED = 0x11, /**< u8 sequence, RPC packet, u32 CRC-32; both ways */
	/** from the device: u8 sequence of the last arrived request; asks for the next request */
	MINRPC_MESSAGE_RESEND = 0x12,
	/** from the client: u8 sequence; asks for this reply, or RESEND if there is none */
	MINRPC_MESSAGE_PROBE = 0x13,

	/**
	 * Our extension for copies that exceed the receive buffer. Their data is written before the
	 * frame's CRC is known, so the destination has its own check. Clients send it to devices
	 * whose info has version 3 or later.
	 */
	MINRPC_MESSAGE_CHECKED = 0x14, /**< u32 CRC-32 of the packet up to its data, RPC packet */
};

/** Bytes of a checked message that a normal message does not have. */
#define MINRPC_CHECKED_EXTRA 4U

/** Bytes of a numbered message that a normal message does not have: the sequence and the check. */
#define MINRPC_NUMBERED_EXTRA (1U + 4U)

/** All zero at the start, except the nonce. */
struct minrpc_session {
	uint16_t id; /**< initiator's nonce, responder's nonce << 8 */
	uint8_t nonce;
	bool established;
};

enum minrpc_session_action {
	MINRPC_SESSION_IGNORE,
	/** a new session: free all of the last session, send a start reply */
	MINRPC_SESSION_STARTED,
	MINRPC_SESSION_ENDED,
	MINRPC_SESSION_DELIVER, /**< an RPC packet follows the header */
	MINRPC_SESSION_NUMBERED,
	MINRPC_SESSION_PROBE,
	MINRPC_SESSION_STALE, /**< a message of another session, to be dropped */
};

/** Returns the action for the message of `length` bytes at `message`. */
enum minrpc_session_action minrpc_session_take(struct minrpc_session *session,
					       const uint8_t *message, uint32_t length);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_SESSION_H_ */
