/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The device's half of microTVM's session protocol. The client always starts; a new start replaces
 * what was.
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

/** Clients lose every later reply after a longer log, or an empty one. */
#define MINRPC_LOG_MAX 1023U

enum minrpc_message_type {
	MINRPC_MESSAGE_START_INIT = 0x00,
	MINRPC_MESSAGE_START_REPLY = 0x01,
	MINRPC_MESSAGE_TERMINATE = 0x02,
	MINRPC_MESSAGE_LOG = 0x03,
	MINRPC_MESSAGE_NORMAL = 0x10,

	/**
	 * Our own, for links that lose bytes. The client begins, after it has found the global
	 * function "minrpc.resend", so that no other client or device ever sees one.
	 */
	MINRPC_MESSAGE_NUMBERED =
		0x11, /**< u8 sequence, RPC packet, u32 CRC-32 of all before it; both ways */
	/** device: u8 sequence of the last request that arrived; send the next again */
	MINRPC_MESSAGE_RESEND = 0x12,
	MINRPC_MESSAGE_PROBE =
		0x13, /**< client: u8 sequence; send that reply again, or RESEND if there is none */

	/**
	 * Our own, for copies that are longer than the receive buffer: what arrives is written
	 * before the frame's CRC is known, so where to is checked by itself. From clients of a
	 * device whose info is of version 3 up: u32 CRC-32 of the RPC packet up to the copy's data,
	 * RPC packet.
	 */
	MINRPC_MESSAGE_CHECKED =
		0x14, /**< u32 CRC-32 of the RPC packet up to the copy's data, RPC packet */
};

/** What a checked message has more than a normal one. */
#define MINRPC_CHECKED_EXTRA 4U

/** What a numbered message has more than a normal one: the sequence and the check. */
#define MINRPC_NUMBERED_EXTRA (1U + 4U)

/** All zero where it starts, but for the nonce. */
struct minrpc_session {
	uint16_t id; /**< initiator's nonce, responder's nonce << 8 */
	uint8_t nonce;
	bool established;
};

enum minrpc_session_action {
	MINRPC_SESSION_IGNORE,
	/** established anew: everything of the last session goes, a start reply is due */
	MINRPC_SESSION_STARTED,
	MINRPC_SESSION_ENDED,
	MINRPC_SESSION_DELIVER, /**< an RPC packet follows the header */
	MINRPC_SESSION_NUMBERED,
	MINRPC_SESSION_PROBE,
	MINRPC_SESSION_STALE, /**< a normal message of another session: drop */
};

/** What the message of `length` bytes at `message` means now. */
enum minrpc_session_action minrpc_session_take(struct minrpc_session *session,
					       const uint8_t *message, uint32_t length);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_SESSION_H_ */
