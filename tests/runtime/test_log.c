/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Logs: their length, and their place: never between the bytes of another message.
 */
#include "check.h"
#include "functions.h"
#include "host.h"

/* Clients survive no empty log and none over 1,023 bytes. */
TEST(long_logs_go_out_in_pieces_that_clients_survive)
{
	static const uint32_t sizes[] = {0U, 1U, 1022U, 1023U, 1024U, 2046U, 4000U};
	struct host *host = host_start();
	uint64_t talk = host_function(host, "talk");

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t left = sizes[i];
		struct bytes wire = {0};

		host_functions.log_size = left;
		put_call(&wire, host->session, talk);
		host_give(host, &wire);
		while (left != 0U) {
			uint32_t piece = left < 1023U ? left : 1023U;

			host_expect_log(host, "x");
			CHECK_EQ(host->message.body.size, piece);
			left -= piece;
		}
		CHECK(host_take(host));
		CHECK_EQ(host->message.type, TYPE_NORMAL);
		host_expect_silence(host);
	}
	host_stop(host);
}

static int (*write_plainly)(void *context, const uint8_t *data, uint32_t size);
static uint32_t refused;

/* The port acts like a driver that prints from inside its write. */
static int write_and_log(void *context, const uint8_t *data, uint32_t size)
{
	int result = write_plainly(context, data, size);

	refused += minrpc_server_log(&host_current()->server, "in between", 10U) < 0;
	return result;
}

TEST(a_log_in_mid_frame_is_refused_and_the_frame_is_whole)
{
	struct host *host =
		host_boot((struct host_sizes){.receive = 8192U, .send = 4U, .arena = 65536U});
	struct bytes wire = {0};
	uint64_t tick;

	CHECK(host_take(host));
	host_open(host, 7U);
	tick = host_function(host, "tick");
	write_plainly = host->platform.write;
	host->platform.write = write_and_log;
	host->server.writer.write = write_and_log;
	refused = 0U;
	put_call(&wire, host->session, tick);
	host_give(host, &wire);
	CHECK(refused > 1U);
	CHECK(host_take(host));
	CHECK_EQ(host->message.type, TYPE_NORMAL);
	host_expect_silence(host);
	host->server.writer.write = write_plainly;
	host_still_serves(host);
	host_stop(host);
}

static uint32_t writes_left;

static int write_until(void *context, const uint8_t *data, uint32_t size)
{
	if (writes_left == 0U) {
		writes_left = UINT32_MAX;
		return -1;
	}
	writes_left--;
	return write_plainly(context, data, size);
}

/* The link may refuse any of its pieces, even if it would take the next. */
TEST(a_log_of_which_a_piece_is_refused_has_failed)
{
	static char text[3000];
	struct host *host =
		host_boot((struct host_sizes){.receive = 8192U, .send = 4096U, .arena = 65536U});

	memset(text, 'x', sizeof(text));
	write_plainly = host->platform.write;
	host->platform.write = write_until;
	for (uint32_t piece = 0U; piece < 3U; piece++) {
		writes_left = UINT32_MAX;
		host_reboot(host);
		writes_left = piece;
		CHECK_EQ(minrpc_server_log(&host->server, text, sizeof(text)), -1);
		CHECK_EQ(minrpc_server_log(&host->server, text, sizeof(text)), 0);
	}
	CHECK_EQ(minrpc_server_log(&host->server, text, 0U), 0);
	host_stop(host);
}

TEST(the_pieces_of_a_log_are_its_text)
{
	char text[2500];
	uint32_t at = 0U;
	struct host *host = host_start();

	for (uint32_t i = 0U; i < sizeof(text); i++) {
		text[i] = (char)('a' + i / 7U % 26U);
	}
	CHECK_EQ(minrpc_server_log(&host->server, text, sizeof(text)), 0);
	while (host_take(host)) {
		CHECK_EQ(host->message.type, TYPE_LOG);
		CHECK_MEM(host->message.body.data, text + at, host->message.body.size);
		at += host->message.body.size;
	}
	CHECK_EQ(at, sizeof(text));
	host_stop(host);
}

CHECK_MAIN(CASE(a_log_of_which_a_piece_is_refused_has_failed),
	   CASE(the_pieces_of_a_log_are_its_text),
	   CASE(long_logs_go_out_in_pieces_that_clients_survive),
	   CASE(a_log_in_mid_frame_is_refused_and_the_frame_is_whole))
