/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Messages in an established session. The input is their bodies; the framing, and as a rule the
 * lengths and the checks, are put right here. Each request must be answered by one well-formed
 * reply.
 *
 * An input is a row of [kind, u16 size, body]. In bodies "ADR" with a byte k after it, and the four
 * bytes that follow, become the k-th handle that the device gave out: a fuzzer can't guess
 * addresses, and they change.
 */
#include <string.h>

#include "check.h"
#include "fuzz.h"

enum kind {
	PACKET,       /* a normal message: code and rest; the u64 is put in front */
	RAW_PACKET,   /* a normal message: everything from the input */
	NUMBERED,     /* a numbered message with the next sequence */
	RAW_NUMBERED, /* the sequence from the input too */
	PROBE,
	DAMAGED,  /* a normal message with a wrong CRC */
	CUT,      /* a normal message without its end */
	ANY_TYPE, /* a message whose type is the first byte, with the session's id */
	NOISE,    /* not framed at all */
	CHECKED,  /* a long copy with a check of its header, whose length is the first byte */
	KINDS,
	WAITING, /* waits on the link while the next is carried out, and arrives then */
};

/* From here on a byte means WAITING. */
#define KIND_WAITING 0xf0U

#define HANDLES_MAX 32U

struct fuzz_session {
	struct host *host;
	uint64_t handles[HANDLES_MAX];
	uint32_t handle_count;
	uint8_t sequence;
	struct bytes waiting;
	struct input *input;
	bool asked; /* by the running request; the end of the input ends the session */
};

static void substitute_handles(const struct fuzz_session *session, struct bytes *body)
{
	for (uint32_t i = 0U; i + 8U <= body->size; i++) {
		if (memcmp(body->data + i, "ADR", 3U) == 0 &&
		    body->data[i + 3U] < session->handle_count) {
			memcpy(body->data + i, &session->handles[body->data[i + 3U]], 8U);
		}
	}
}

/* Remembers a reply's handles: handles of system calls, functions and arrays. */
static void learn_handles(struct fuzz_session *session, const struct bytes *body)
{
	if (session->handle_count < HANDLES_MAX && body->size >= 28U &&
	    get_u32(body->data + 8) == RPC_RETURN) {
		session->handles[session->handle_count++] = get_u64(body->data + body->size - 8U);
	}
}

static void check_reply(const struct bytes *body)
{
	uint32_t code;

	CHECK(body->size >= 12U);
	CHECK_EQ(get_u64(body->data), body->size - 8U);
	code = get_u32(body->data + 8);
	CHECK(code == RPC_RETURN || code == RPC_EXCEPTION || code == RPC_COPY_ACK ||
	      code == RPC_ASK);
	if (code == RPC_EXCEPTION) {
		CHECK(body->size > 28U);
		CHECK_EQ(get_u64(body->data + 20), body->size - 28U);
	}
}

/* Takes the device's bytes; returns the number of replies in them. */
static uint32_t take_replies(struct fuzz_session *session)
{
	struct message *message = &session->host->message;
	uint32_t replies = 0U;

	while (host_take(session->host)) {
		if (message->type == TYPE_NUMBERED) {
			(void)open_numbered(message);
		}
		switch (message->type) {
		case TYPE_NORMAL:
		case TYPE_NUMBERED:
			check_reply(&message->body);
			learn_handles(session, &message->body);
			replies++;
			break;
		case TYPE_REPLY:
			session->host->session = message->session;
			break;
		default:
			break;
		}
	}
	return replies;
}

/* Logs have the id 0; all other messages have the id of their session. */
static void send(struct fuzz_session *session, uint8_t type, const struct bytes *body,
		 uint32_t replies)
{
	struct bytes wire = {0};
	uint32_t came;

	put_message(&wire, session->host->session, type, body->data, body->size);
	host_give(session->host, &wire);
	came = take_replies(session);
	/* A function that was ended by a new session, or by the end of its own, gets no reply. */
	CHECK(came == replies || (came == 0U && (session->waiting.size != 0U || session->asked)));
}

static struct fuzz_session *asked_session;

/*
 * Answers a running function's question by a message of any kind; at the input's end it ends the
 * session.
 */
static void answer(struct host *host, uint32_t turn, struct bytes *wire)
{
	struct input *input = asked_session->input;
	uint8_t type = input_left(input) > 3U ? input_u8(input) : TYPE_TERMINATE;
	struct bytes packet = {0};
	uint32_t size = input_u8(input);

	(void)turn;
	asked_session->asked = true;
	(void)take_replies(asked_session);
	size = size < input_left(input) ? size : input_left(input);
	if (type == TYPE_NORMAL) {
		put_u64(&packet, 4U + size);
		put_u32(&packet, input_u8(input) % 2U ? RPC_ANSWER : RPC_CALL_FUNC);
	}
	size = size < input_left(input) ? size : input_left(input);
	put(&packet, input->at, size);
	input->at += size;
	if (type == TYPE_NUMBERED) {
		put_numbered(wire, host->session, &packet);
	} else {
		put_message(wire, host->session, type, packet.data, packet.size);
	}
	bytes_free(&packet);
}

/* Shutdown and the empty packet are not answered. */
static bool is_answered(const struct bytes *packet)
{
	uint64_t size = packet->size < 8U ? 0U : get_u64(packet->data);

	if (packet->size + 3U > FUZZ_RECEIVE || packet->size < 8U || size != packet->size - 8U) {
		return true;
	}
	return size != 0U && (size < 4U || get_u32(packet->data + 8) != RPC_SHUTDOWN);
}

static void send_packet(struct fuzz_session *session, const struct bytes *body, bool raw)
{
	struct bytes packet = {0};
	bool answered;

	if (!raw) {
		put_u64(&packet, body->size);
	}
	put(&packet, body->data, body->size);
	answered = is_answered(&packet);
	send(session, TYPE_NORMAL, &packet, answered ? 1U : 0U);
	bytes_free(&packet);
}

static void send_numbered(struct fuzz_session *session, const struct bytes *body, bool raw)
{
	struct bytes message = {0};
	struct bytes wire = {0};

	if (!raw) {
		put_u8(&message, ++session->sequence);
		put_u64(&message, body->size);
	}
	put(&message, body->data, body->size);
	put_numbered(&wire, session->host->session, &message);
	host_give(session->host, &wire);
	CHECK(take_replies(session) <= 1U);
	session->sequence = session->host->server.sequence;
}

static void send_probe(struct fuzz_session *session, const struct bytes *body)
{
	struct bytes wire = {0};

	put_message(&wire, session->host->session, TYPE_PROBE, body->data, body->size);
	host_give(session->host, &wire);
	CHECK(take_replies(session) <= 1U);
}

/* Longer than the receive buffer, for any length of the input: its last byte is repeated. */
static void send_checked(struct fuzz_session *session, const struct bytes *body)
{
	struct bytes packet = {0};
	struct bytes message = {0};
	uint32_t head = body->size == 0U ? 0U : body->data[0] % 128U;
	uint32_t size = FUZZ_RECEIVE + 1U + (body->size == 0U ? 0U : body->data[body->size - 1U]);

	put_u64(&packet, size);
	put_u32(&packet, RPC_COPY_TO);
	if (body->size > 1U) {
		put(&packet, body->data + 1,
		    body->size - 1U < size - 4U ? body->size - 1U : size - 4U);
	}
	put_fill(&packet, 0x11U, size + 8U - packet.size);
	put_u32(&message, wire_crc32(packet.data, 12U + head));
	put(&message, packet.data, packet.size);
	send(session, TYPE_CHECKED, &message, 1U);
	bytes_free(&packet);
	bytes_free(&message);
}

static void send_broken(struct fuzz_session *session, const struct bytes *body, bool cut)
{
	struct bytes wire = {0};

	put_message(&wire, session->host->session, TYPE_NORMAL, body->data, body->size);
	if (cut) {
		wire.size -= 1U + wire.size / 3U;
	} else {
		wire.data[wire.size - 1U] ^= 0x10U;
	}
	host_give(session->host, &wire);
	CHECK_EQ(take_replies(session), 0U);
}

static void send_any(struct fuzz_session *session, const struct bytes *body, bool framed)
{
	struct bytes wire = {0};

	if (framed) {
		put_message(&wire, session->host->session, body->size == 0U ? 0U : body->data[0],
			    body->data, body->size);
	} else {
		put(&wire, body->data, body->size);
	}
	host_give(session->host, &wire);
	(void)take_replies(session);
	session->sequence = session->host->server.sequence;
}

/* A whole message, or any bytes. */
static void let_wait(struct fuzz_session *session, const struct bytes *body)
{
	if (body->size > 3U && body->data[0] % 2U == 0U) {
		put_message(&session->waiting, body->data[1], body->data[2], body->data + 3,
			    body->size - 3U);
	} else {
		put(&session->waiting, body->data, body->size);
	}
	fuzz_waiting(&session->waiting);
}

static void let_arrive(struct fuzz_session *session)
{
	struct bytes wire = session->waiting;

	session->waiting = (struct bytes){0};
	fuzz_waiting(&session->waiting);
	host_give(session->host, &wire);
	(void)take_replies(session);
	session->sequence = session->host->server.sequence;
}

/* The earlier bytes may have ended the session, or left half a frame. */
static void settle(struct fuzz_session *session)
{
	struct bytes resync = {0};

	put_u8(&resync, 0xfeU);
	host_give(session->host, &resync);
	if (!session->host->server.session.established) {
		host_open(session->host, 0x66U);
		session->sequence = 0U;
	}
}

static void step(struct fuzz_session *session, struct input *input)
{
	uint8_t first = input_u8(input);
	enum kind kind = first < KIND_WAITING ? first % KINDS : WAITING;
	uint32_t size = input_u16(input) % 2048U;
	struct bytes body = {0};

	size = size < input_left(input) ? size : input_left(input);
	put(&body, input->at, size);
	input->at += size;
	substitute_handles(session, &body);
	session->asked = false;
	switch (kind) {
	case PACKET:
	case RAW_PACKET:
		send_packet(session, &body, kind == RAW_PACKET);
		break;
	case NUMBERED:
	case RAW_NUMBERED:
		send_numbered(session, &body, kind == RAW_NUMBERED);
		break;
	case PROBE:
		send_probe(session, &body);
		break;
	case DAMAGED:
	case CUT:
		send_broken(session, &body, kind == CUT);
		break;
	case CHECKED:
		send_checked(session, &body);
		break;
	case WAITING:
		let_wait(session, &body);
		bytes_free(&body);
		return;
	default:
		send_any(session, &body, kind == ANY_TYPE);
		break;
	}
	bytes_free(&body);
	let_arrive(session);
	(void)arena_check(&session->host->server.arena);
	settle(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	struct fuzz_session session = {.host = fuzz_start(), .input = &input};

	asked_session = &session;
	session.host->waiting = answer;
	while (input_left(&input) > 3U) {
		step(&session, &input);
	}
	let_arrive(&session);
	fuzz_finish(session.host);
	return 0;
}
