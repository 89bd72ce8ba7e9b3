/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The golden table of wire cases, tests/vectors/wire.txt, against the runtime. A new case is a new
 * row there.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "functions.h"
#include "host.h"
#include "vectors.h"

/* ------------------------------------------------------------------- frame */

static int collect(void *context, const uint8_t *data, uint32_t size)
{
	put(context, data, size);
	return 0;
}

/* first|next PAYLOAD WIRE */
static void check_frame(const struct vector_row *row)
{
	struct bytes payload = {0};
	struct bytes expected = {0};
	struct bytes sent = {0};
	struct minrpc_writer writer = {0};
	uint8_t buffer[16];

	vector_bytes(row->fields[1], NULL, &payload);
	vector_bytes(row->fields[2], NULL, &expected);
	minrpc_writer_init(&writer, buffer, sizeof(buffer), collect, &sent);
	if (strcmp(row->fields[0], "next") == 0) {
		minrpc_writer_begin(&writer, 0U);
		CHECK_EQ(minrpc_writer_end(&writer), 0);
		sent.size = 0U;
	}
	minrpc_writer_begin(&writer, payload.size);
	minrpc_writer_put(&writer, payload.data, payload.size);
	CHECK_EQ(minrpc_writer_end(&writer), 0);
	CHECK_EQ(sent.size, expected.size);
	CHECK_MEM(sent.data, expected.data, expected.size);
	bytes_free(&payload);
	bytes_free(&expected);
	bytes_free(&sent);
}

TEST(frames_are_written)
{
	vectors_each("frame", check_frame);
}

/* ----------------------------------------------------------------- deframe */

/* A reader, and the fields that it has yet to report. */
struct telling {
	struct minrpc_reader reader;
	uint8_t payload[1024];
	const struct vector_row *row;
	uint32_t next;
};

/* The next expected event; noise is between frames, where this reader reports nothing. */
static const char *expected_event(struct telling *telling)
{
	while (telling->next < telling->row->count &&
	       strncmp(telling->row->fields[telling->next], "noise:", 6U) == 0) {
		telling->next++;
	}
	return telling->next < telling->row->count ? telling->row->fields[telling->next] : NULL;
}

static void tell(struct telling *telling, enum minrpc_reader_event event)
{
	const char *expected = expected_event(telling);
	const char *name = vector_event(event);
	struct bytes payload = {0};
	uint32_t come = 0U;

	CHECK(expected != NULL && strncmp(expected, name, strlen(name)) == 0);
	vector_bytes(expected + strlen(name), NULL, &payload);
	if (telling->reader.sink != NULL) {
		come = (uint32_t)(telling->reader.sink - telling->payload);
	}
	CHECK_EQ(come, payload.size);
	CHECK_MEM(telling->payload, payload.data, payload.size);
	bytes_free(&payload);
	telling->reader.sink = NULL;
	telling->next++;
}

static void feed(struct telling *telling, const uint8_t *data, uint32_t size)
{
	while (size != 0U) {
		enum minrpc_reader_event event = minrpc_reader_feed(&telling->reader, &data, &size);

		if (event == MINRPC_READER_LENGTH) {
			minrpc_reader_sink(&telling->reader, telling->payload,
					   sizeof(telling->payload));
		} else if (event != MINRPC_READER_MORE) {
			tell(telling, event);
		}
	}
}

/* WIRE EVENT..., in pieces of every length */
static void check_deframe(const struct vector_row *row)
{
	struct bytes wire = {0};

	vector_bytes(row->fields[0], NULL, &wire);
	for (uint32_t piece = 1U; piece <= wire.size; piece++) {
		struct telling telling = {.row = row, .next = 1U};

		telling.reader = (struct minrpc_reader){0};
		for (uint32_t at = 0U; at < wire.size; at += piece) {
			feed(&telling, wire.data + at,
			     wire.size - at < piece ? wire.size - at : piece);
		}
		CHECK(expected_event(&telling) == NULL);
	}
	bytes_free(&wire);
}

TEST(frames_are_read)
{
	vectors_each("deframe", check_deframe);
}

/* ----------------------------------------------------------------- session */

static struct host *boot(uint8_t nonce)
{
	struct host *host = host_boot((struct host_sizes){8192U, 256U, 65536U});

	host->config.nonce_seed = nonce;
	host_reboot(host);
	return host;
}

/* The next message that is not a log must be the frame in `field`. */
static void expect_frame(struct host *host, const char *field)
{
	struct bytes wire = {0};
	struct bytes payload = {0};
	const uint8_t *at;

	do {
		CHECK(host_take(host));
	} while (host->message.type == TYPE_LOG);
	vector_bytes(field, NULL, &wire);
	at = wire.data;
	CHECK(take_frame(&at, wire.data + wire.size, &payload));
	CHECK_EQ(host->message.session, payload.data[0] | payload.data[1] << 8);
	CHECK_EQ(host->message.type, payload.data[2]);
	CHECK_EQ(host->message.body.size, payload.size - 3U);
	CHECK_MEM(host->message.body.data, payload.data + 3, payload.size - 3U);
	bytes_free(&wire);
	bytes_free(&payload);
}

static void expect_nothing_more(struct host *host)
{
	while (host_take(host)) {
		CHECK_EQ(host->message.type, TYPE_LOG);
	}
}

/* NONCE STEP... */
static void check_session(const struct vector_row *row)
{
	struct host *host = boot((uint8_t)strtoul(row->fields[0], NULL, 16));

	if (row->fields[1][0] != '<') {
		CHECK(host_take(host)); /* its message at boot */
	}
	for (uint32_t i = 1U; i < row->count; i++) {
		struct bytes wire = {0};

		if (row->fields[i][0] == '<') {
			expect_frame(host, row->fields[i] + 1);
			continue;
		}
		expect_nothing_more(host);
		vector_bytes(row->fields[i] + 1, NULL, &wire);
		host_give(host, &wire);
	}
	expect_nothing_more(host);
	host_stop(host);
}

TEST(sessions_are_held)
{
	vectors_each("session", check_session);
}

/* --------------------------------------------------------------------- rpc */

/* Sends a packet, its u64 included, and takes the packet that comes back: false when none does. */
static bool exchange(struct host *host, const struct bytes *packet)
{
	struct bytes wire = {0};

	put_message(&wire, host->session, TYPE_NORMAL, packet->data, packet->size);
	host_give(host, &wire);
	while (host_take(host)) {
		if (host->message.type == TYPE_NORMAL) {
			return true;
		}
	}
	return false;
}

/* >PACKET <PACKET ... in a session of their own */
static void check_rpc(const struct vector_row *row)
{
	struct host *host = host_start();
	struct vector_names names = {0};

	CHECK_EQ(row->count % 2U, 0U);
	for (uint32_t i = 0U; i < row->count; i += 2U) {
		struct bytes packet = {0};

		CHECK(row->fields[i][0] == '>' && row->fields[i + 1U][0] == '<');
		vector_bytes(row->fields[i] + 1, &names, &packet);
		CHECK(exchange(host, &packet));
		vector_match(row->fields[i + 1U] + 1, host->message.body.data,
			     host->message.body.size, &names);
		host_expect_silence(host);
		bytes_free(&packet);
	}
	host_stop(host);
}

TEST(packets_are_answered)
{
	vectors_each("rpc", check_rpc);
}

/* -------------------------------------------------------- request and reply */

/* DIALECT TEXT PACKET: there is an answer of any kind, and the dialect was recognized. */
static void check_request(const struct vector_row *row)
{
	struct host *host = host_start();
	struct bytes packet = {0};
	bool shutdown = strcmp(row->name, "shutdown") == 0;

	vector_bytes(row->fields[row->count - 1U], NULL, &packet);
	CHECK_EQ(exchange(host, &packet), !shutdown);
	host_expect_silence(host);
	if (strcmp(row->fields[0], "0.7.0") == 0) {
		CHECK_EQ(host->server.dialect, MINRPC_DIALECT_0_7);
	} else if (strcmp(row->fields[0], "0.8.0") == 0) {
		CHECK_EQ(host->server.dialect, MINRPC_DIALECT_0_8);
	}
	bytes_free(&packet);
	host_stop(host);
}

TEST(requests_tell_their_dialect)
{
	vectors_each("request", check_request);
}

/*
 * Makes the function `ret` return the value in Result(...); false if it needs more than a value.
 */
static bool take_result(const char *text, TVMByteArray *bytes, struct bytes *data)
{
	static const struct {
		const char *prefix;
		int type_code;
	} handles[] = {{"handle:", kTVMOpaqueHandle},
		       {"function:", kTVMPackedFuncHandle},
		       {"module:", kTVMModuleHandle}};
	TVMValue *value = &host_functions.value;

	if (strncmp(text, "Result(", 7U) != 0 || strncmp(text + 7, "array:", 6U) == 0) {
		return false;
	}
	text += 7;
	for (size_t i = 0U; i < 3U; i++) {
		if (strncmp(text, handles[i].prefix, strlen(handles[i].prefix)) == 0) {
			host_functions.type_code = handles[i].type_code;
			value->v_int64 =
				(int64_t)strtoull(text + strlen(handles[i].prefix), NULL, 16);
			return true;
		}
	}
	if (*text == '"') {
		put(data, text + 1, (uint32_t)(strchr(text + 1, '"') - text) - 1U);
		put_u8(data, 0U);
		host_functions.type_code = kTVMStr;
		value->v_str = (const char *)data->data;
	} else if (strncmp(text, "bytes:", 6U) == 0) {
		char hex[64] = "";

		memcpy(hex, text + 6, strcspn(text + 6, ")"));
		vector_bytes(hex, NULL, data);
		*bytes = (TVMByteArray){(const char *)data->data, data->size};
		host_functions.type_code = kTVMBytes;
		value->v_handle = bytes;
	} else if (strncmp(text, "null", 4U) == 0) {
		host_functions.type_code = kTVMNullptr;
	} else if (strchr(text, '.') != NULL) {
		host_functions.type_code = kTVMArgFloat;
		value->v_float64 = strtod(text, NULL);
	} else {
		host_functions.type_code = kTVMArgInt;
		value->v_int64 = strtoll(text, NULL, 10);
	}
	return true;
}

/* DIALECT TEXT PACKET */
static void check_reply(const struct vector_row *row)
{
	struct host *host = host_start();
	uint64_t ret = host_function(host, "ret");
	struct vector_names names = {0};
	struct bytes data = {0};
	struct bytes packet = {0};
	TVMByteArray bytes;

	if (take_result(row->fields[1], &bytes, &data)) {
		put_u64(&packet, 16U);
		put_u32(&packet, RPC_CALL_FUNC);
		put_u64(&packet, ret);
		put_u32(&packet, 0U);
		CHECK(exchange(host, &packet));
		vector_match(row->fields[2], host->message.body.data, host->message.body.size,
			     &names);
	}
	bytes_free(&packet);
	bytes_free(&data);
	host_stop(host);
}

TEST(results_are_encoded)
{
	vectors_each("reply", check_reply);
}

CHECK_MAIN(CASE(frames_are_written), CASE(frames_are_read), CASE(sessions_are_held),
	   CASE(packets_are_answered), CASE(requests_tell_their_dialect), CASE(results_are_encoded))
