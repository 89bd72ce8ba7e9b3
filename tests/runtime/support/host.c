/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "functions.h"
#include "operators.h"

#define ARENA_ALIGNMENT 64U

static struct host *current;

struct host *host_current(void)
{
	return current;
}

/* --------------------------------------------------------------------- port */

static int port_write(void *context, const uint8_t *data, uint32_t size)
{
	struct host *host = context;

	if (host->link_gone) {
		return -1;
	}
	CHECK(size != 0U);
	host->writes++;
	put(&host->sent, data, size);
	return 0;
}

static void port_clock_describe(void *context, struct minrpc_clock *clock)
{
	*clock = ((struct host *)context)->clock.info;
}

static int port_clock_begin(void *context)
{
	struct scripted_clock *clock = &((struct host *)context)->clock;

	clock->begun += clock->begin_result == 0;
	return clock->begin_result;
}

static void port_clock_sample(void *context, struct minrpc_clock_sample *sample)
{
	struct scripted_clock *clock = &((struct host *)context)->clock;

	sample->cycles = clock->now;
	if (clock->granule != 0U) {
		sample->cycles -= clock->now % clock->granule;
	}
	sample->coarse = clock->coarse;
	clock->now += clock->per_sample;
	clock->coarse += clock->coarse_per_sample;
}

static void port_clock_end(void *context)
{
	((struct host *)context)->clock.ended++;
}

static void port_sleep_ms(void *context, uint32_t milliseconds)
{
	struct host *host = context;

	host->sleeps++;
	host->slept_ms += milliseconds;
}

static uint32_t port_receive(void *context, const uint8_t **data)
{
	struct host *host = context;

	CHECK(host->waiting != NULL);
	bytes_free(&host->arrived);
	host->waiting(host, host->turns++, &host->arrived);
	*data = host->arrived.data;
	return (uint32_t)host->arrived.size;
}

static void port_reset(void *context)
{
	((struct host *)context)->resets++;
}

/* ---------------------------------------------------------------- lifetime */

static struct minrpc_library library(void)
{
	static struct minrpc_module modules[2];

	modules[0] = (struct minrpc_module){.packed = &host_registry, .resource = &host_resource};
	modules[1] = minrpc_operators;
	return (struct minrpc_library){modules, 2U};
}

static void *exactly(uint32_t size)
{
	void *buffer = malloc(size);

	CHECK(buffer != NULL);
	memset(buffer, 0xa5, size);
	return buffer;
}

static void *aligned(uint32_t size)
{
	void *buffer = NULL;

	CHECK_EQ(posix_memalign(&buffer, ARENA_ALIGNMENT, size), 0);
	memset(buffer, 0xa5, size);
	return buffer;
}

struct host *host_boot(struct host_sizes sizes)
{
	struct host *host = calloc(1U, sizeof(*host));

	CHECK(host != NULL);
	host->platform = (struct minrpc_platform){
		.write = port_write,
		.clock_describe = port_clock_describe,
		.clock_begin = port_clock_begin,
		.clock_sample = port_clock_sample,
		.clock_end = port_clock_end,
		.sleep_ms = port_sleep_ms,
		.receive = port_receive,
		.reset = port_reset,
	};
	host->clock.info = (struct minrpc_clock){.cycles_hz = 1000000U};
	host->config = (struct minrpc_config){
		.platform = &host->platform,
		.context = host,
		.receive_buffer = exactly(sizes.receive),
		.receive_size = sizes.receive,
		.send_buffer = exactly(sizes.send),
		.send_size = sizes.send,
		.arena = aligned(sizes.arena),
		.arena_size = sizes.arena,
		.library = library(),
		.read_only = &host_constants,
		.read_only_size = sizeof(host_constants),
		.nonce_seed = 0xa5U,
	};
	current = host;
	host_reboot(host);
	return host;
}

void host_reboot(struct host *host)
{
	host->sent.size = 0U;
	host_functions_reset();
	minrpc_tvm_bind(&host->server);
	CHECK(minrpc_server_init(&host->server, &host->config));
}

void host_stop(struct host *host)
{
	CHECK_EQ(host->clock.begun, host->clock.ended);
	(void)arena_check(&host->server.arena);
	current = NULL;
	free(host->config.receive_buffer);
	free(host->config.send_buffer);
	free(host->config.arena);
	bytes_free(&host->sent);
	bytes_free(&host->arrived);
	bytes_free(&host->message.body);
	free(host);
}

/* -------------------------------------------------------------------- link */

void host_receive(struct host *host, const struct bytes *wire)
{
	/* A copy of the exact size, so that reading a byte too many is detected. */
	uint8_t *copy = malloc(wire->size == 0U ? 1U : wire->size);

	CHECK(copy != NULL);
	if (wire->size != 0U) {
		memcpy(copy, wire->data, wire->size);
	}
	minrpc_server_receive(&host->server, copy, wire->size);
	free(copy);
}

void host_give(struct host *host, struct bytes *wire)
{
	host_receive(host, wire);
	bytes_free(wire);
}

bool host_take(struct host *host)
{
	const uint8_t *at = host->sent.data;
	const uint8_t *end = at + host->sent.size;
	struct bytes payload = {0};
	bool taken = host->sent.size != 0U && take_frame(&at, end, &payload);

	if (taken) {
		/* After an empty log, or a longer log, clients lose all later messages. */
		CHECK(payload.size >= 3U);
		CHECK(payload.data[2] != TYPE_LOG || (payload.size > 3U && payload.size <= 1026U));
		host->message.session = (uint16_t)(payload.data[0] | payload.data[1] << 8);
		host->message.type = payload.data[2];
		host->message.body.size = 0U;
		put(&host->message.body, payload.data + 3, payload.size - 3U);
		host->sent.size = (uint32_t)(end - at);
		memmove(host->sent.data, at, host->sent.size);
	}
	bytes_free(&payload);
	return taken;
}

void host_take_next(struct host *host)
{
	do {
		CHECK(host_take(host));
	} while (host->message.type == TYPE_LOG);
}

void host_open(struct host *host, uint8_t nonce)
{
	struct bytes wire = {0};

	put_message(&wire, nonce, TYPE_INIT, (const uint8_t[]){1}, 1U);
	host_give(host, &wire);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_REPLY);
	CHECK_EQ(host->message.session & 0xffU, nonce);
	CHECK(host->message.session >> 8 != 0U);
	CHECK_EQ(host->message.body.size, 1U);
	CHECK_EQ(host->message.body.data[0], 1U);
	host->session = host->message.session;
	CHECK(!host_take(host));
}

/* ---------------------------------------------------------------- requests */

static void put_packet(struct bytes *packet, uint32_t code, struct bytes *body)
{
	put_u64(packet, 4U + body->size);
	put_u32(packet, code);
	put(packet, body->data, body->size);
	bytes_free(body);
}

void put_request(struct bytes *wire, uint16_t session, uint32_t code, struct bytes *body)
{
	struct bytes packet = {0};

	put_packet(&packet, code, body);
	put_message(wire, session, TYPE_NORMAL, packet.data, packet.size);
	bytes_free(&packet);
}

void put_call(struct bytes *wire, uint16_t session, uint64_t function)
{
	struct bytes body = {0};

	put_u64(&body, function);
	put_u32(&body, 0U);
	put_request(wire, session, RPC_CALL_FUNC, &body);
}

/* The CRC-32 covers the session header, too. */
static uint32_t numbered_crc(uint16_t session, const uint8_t *body, uint32_t size)
{
	struct bytes whole = {0};
	uint32_t crc;

	put_u16(&whole, session);
	put_u8(&whole, TYPE_NUMBERED);
	put(&whole, body, size);
	crc = wire_crc32(whole.data, whole.size);
	bytes_free(&whole);
	return crc;
}

void put_numbered(struct bytes *wire, uint16_t session, struct bytes *body)
{
	put_u32(body, numbered_crc(session, body->data, body->size));
	put_message(wire, session, TYPE_NUMBERED, body->data, body->size);
	bytes_free(body);
}

void put_numbered_request(struct bytes *wire, uint16_t session, uint8_t sequence, uint32_t code,
			  struct bytes *body)
{
	struct bytes message = {0};

	put_u8(&message, sequence);
	put_packet(&message, code, body);
	put_numbered(wire, session, &message);
}

uint8_t open_numbered(struct message *message)
{
	struct bytes *body = &message->body;
	uint8_t sequence;

	CHECK(body->size > 5U);
	CHECK_EQ(get_u32(body->data + body->size - 4U),
		 numbered_crc(message->session, body->data, body->size - 4U));
	sequence = body->data[0];
	body->size -= 5U;
	memmove(body->data, body->data + 1, body->size);
	return sequence;
}

static void read_exception(struct answer *answer)
{
	answer->text[0] = '\0';
	if (answer->code != RPC_EXCEPTION) {
		return;
	}
	CHECK(answer->size >= 16U);
	CHECK_EQ(get_u32(answer->body), 1U);
	CHECK_EQ(get_u32(answer->body + 4), ARG_STRING);
	CHECK_EQ(get_u64(answer->body + 8), answer->size - 16U);
	CHECK(answer->size - 16U < sizeof(answer->text));
	memcpy(answer->text, answer->body + 16, answer->size - 16U);
	answer->text[answer->size - 16U] = '\0';
	CHECK(answer->text[0] != '\0');
}

static const struct answer *take_answer(struct host *host)
{
	struct answer *answer = &host->answer;
	const struct bytes *body = &host->message.body;

	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_NORMAL);
	CHECK_EQ(host->message.session, host->session);
	CHECK(body->size >= 12U);
	CHECK_EQ(get_u64(body->data), body->size - 8U);
	answer->code = get_u32(body->data + 8);
	answer->body = body->data + 12;
	answer->size = body->size - 12U;
	read_exception(answer);
	CHECK(answer->code == RPC_RETURN || answer->code == RPC_EXCEPTION ||
	      answer->code == RPC_COPY_ACK);
	return answer;
}

const struct answer *host_request(struct host *host, uint32_t code, struct bytes *body)
{
	struct bytes wire = {0};

	put_request(&wire, host->session, code, body);
	host_give(host, &wire);
	(void)take_answer(host);
	CHECK_EQ(host->sent.size, 0U);
	return &host->answer;
}

const struct answer *host_syscall(struct host *host, uint32_t code, struct args *args)
{
	struct bytes body = {0};

	put_args(&body, args);
	return host_request(host, code, &body);
}

const struct answer *host_call(struct host *host, uint64_t function, struct args *args)
{
	struct bytes body = {0};

	put_u64(&body, function);
	put_args(&body, args);
	return host_request(host, RPC_CALL_FUNC, &body);
}

const struct answer *host_try_alloc(struct host *host, uint64_t size, uint64_t alignment)
{
	struct args args = {0};

	arg_device(&args);
	arg(&args, ARG_INT, size);
	arg(&args, ARG_INT, alignment);
	arg_dtype(&args, 0U, 8U, 1U);
	return host_syscall(host, RPC_ALLOC, &args);
}

const struct answer *host_try_free(struct host *host, uint64_t data)
{
	struct args args = {0};

	arg_device(&args);
	arg(&args, ARG_HANDLE, data);
	return host_syscall(host, RPC_FREE_DATA, &args);
}

const struct answer *host_copy_among(struct host *host, uint64_t from, uint64_t from_offset,
				     uint64_t to, uint64_t to_offset, uint64_t size)
{
	struct args args = {0};

	arg(&args, ARG_HANDLE, from);
	arg(&args, ARG_INT, from_offset);
	arg(&args, ARG_HANDLE, to);
	arg(&args, ARG_INT, to_offset);
	arg(&args, ARG_INT, size);
	arg_device(&args);
	arg_device(&args);
	arg_dtype(&args, 0U, 8U, 1U);
	arg(&args, ARG_HANDLE, 0U);
	return host_syscall(host, RPC_COPY_AMONG, &args);
}

/* ------------------------------------------------------------ expectations */

static void expect_code(const struct answer *answer, uint32_t code)
{
	if (answer->code != code && answer->code == RPC_EXCEPTION) {
		CHECK_FAIL("the answer is an exception: %s", answer->text);
	}
	CHECK_EQ(answer->code, code);
}

void expect_void(const struct answer *answer)
{
	expect_code(answer, RPC_RETURN);
	CHECK_EQ(answer->size, 8U);
	CHECK_EQ(get_u32(answer->body), 1U);
	CHECK_EQ(get_u32(answer->body + 4), ARG_NULL);
}

uint64_t expect_handle(const struct answer *answer)
{
	expect_code(answer, RPC_RETURN);
	CHECK_EQ(answer->size, 16U);
	CHECK_EQ(get_u32(answer->body), 1U);
	CHECK_EQ(get_u32(answer->body + 4), ARG_HANDLE);
	return get_u64(answer->body + 8);
}

const uint8_t *expect_returned(const struct answer *answer, uint32_t type)
{
	uint32_t count = type == ARG_NDARRAY ? 3U : 2U;

	expect_code(answer, RPC_RETURN);
	CHECK(answer->size >= 4U + 4U * count + 8U);
	CHECK_EQ(get_u32(answer->body), count);
	CHECK_EQ(get_u32(answer->body + 4), ARG_INT);
	CHECK_EQ(get_u64(answer->body + 4 + 4 * count), type);
	return answer->body + 4 + 4 * count + 8;
}

/* ----------------------------------------------- requests of every client */

uint64_t host_global(struct host *host, const char *name)
{
	struct args args = {0};

	arg_string(&args, name);
	return expect_handle(host_syscall(host, RPC_GET_GLOBAL, &args));
}

void host_free_data(struct host *host, uint64_t data)
{
	expect_void(host_try_free(host, data));
}

void put_copy(struct bytes *body, enum dialect dialect, const struct tensor *tensor,
	      uint64_t nbytes)
{
	if (dialect == V8) {
		put_tensor(body, V8, tensor);
		put_u64(body, nbytes);
		return;
	}
	put_u64(body, tensor->data);
	put_u64(body, tensor->offset);
	put_u64(body, nbytes);
	put_u32(body, 1U);
	put_u32(body, 0U);
	put_u8(body, tensor->code);
	put_u8(body, tensor->bits);
	put_u16(body, tensor->lanes);
}

/* In pieces that fit any buffer, as TVM's clients do. */
void host_write(struct host *host, uint64_t data, const void *from, uint32_t size)
{
	const uint32_t most = 400U;
	uint32_t at = 0U;

	do {
		uint32_t piece = size - at < most ? size - at : most;
		struct tensor tensor = tensor_1d(data, 0U, 8U, piece);
		struct bytes body = {0};

		tensor.offset = at;
		put_copy(&body, V8, &tensor, piece);
		put(&body, (const uint8_t *)from + at, piece);
		expect_void(host_request(host, RPC_COPY_TO, &body));
		at += piece;
	} while (at < size);
}

void host_read(struct host *host, uint64_t data, void *to, uint32_t size)
{
	struct tensor tensor = tensor_1d(data, 0U, 8U, size);
	struct bytes body = {0};
	const struct answer *answer;

	put_copy(&body, V8, &tensor, size);
	answer = host_request(host, RPC_COPY_FROM, &body);
	expect_code(answer, RPC_COPY_ACK);
	CHECK_EQ(answer->size, size);
	memcpy(to, answer->body, size);
}

/* ------------------------------------------------------------------- arena */

uint32_t arena_check(const struct minrpc_arena *arena)
{
	/*
	 * The block header as arena.c lays it out; a guard of 8 bytes lies behind the requested
	 * bytes.
	 */
	struct header {
		uint32_t span;
		uint32_t requested;
		uint16_t kind;
		uint16_t check;
		uint32_t guard;
	};
	uint32_t offset = 0U;
	uint32_t used = 0U;
	uint32_t live = 0U;
	bool free_before = false;

	while (offset < arena->end) {
		const struct header *block = (const void *)(arena->base + offset);
		bool is_free = block->kind == MINRPC_ARENA_FREE;

		CHECK(block->span >= sizeof(*block) && block->span % sizeof(*block) == 0U);
		CHECK(block->span <= arena->end - offset);
		CHECK(is_free || block->requested + 8U <= block->span - sizeof(*block));
		CHECK(!(is_free && free_before));
		used += is_free ? 0U : block->span;
		live += !is_free;
		free_before = is_free;
		offset += block->span;
	}
	/* Free memory at the end is no block. */
	CHECK(!free_before);
	CHECK(arena->end <= arena->top && arena->top <= arena->size);
	CHECK_EQ(arena->used, used);
	CHECK(arena->peak >= arena->used && arena->peak <= arena->size);
	return live;
}
