/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The Zephyr port's TCP link, over this machine's own sockets in place of Zephyr's.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cases.h"

#define ZSOCK_POLLIN       POLLIN
#define ZSOCK_MSG_DONTWAIT MSG_DONTWAIT
#define zsock_pollfd       pollfd
#define zsock_poll         poll
#define zsock_socket       socket
#define zsock_bind         bind
#define zsock_listen       listen
#define zsock_accept       accept
#define zsock_setsockopt   setsockopt
#define zsock_recv         recv
#define zsock_send         send
#define zsock_close        close
#define zsock_fcntl        fcntl

#if defined(ZEPHYR_44)
#define NET_AF_INET         (AF_INET)
#define NET_IPPROTO_TCP     (IPPROTO_TCP)
#define NET_SOCK_STREAM     (SOCK_STREAM)
#define ZSOCK_SOL_SOCKET    (SOL_SOCKET)
#define ZSOCK_SO_KEEPALIVE  (SO_KEEPALIVE)
#define ZSOCK_SO_REUSEADDR  (SO_REUSEADDR)
#define ZSOCK_TCP_KEEPCNT   (TCP_KEEPCNT)
#define ZSOCK_TCP_KEEPIDLE  (TCP_KEEPIDLE)
#define ZSOCK_TCP_KEEPINTVL (TCP_KEEPINTVL)
#define ZSOCK_TCP_NODELAY   (TCP_NODELAY)
#define net_htons(port)     htons(port)
#define net_sockaddr        sockaddr
#define net_sockaddr_in     sockaddr_in
#define ZVFS_F_SETFL        (F_SETFL)
#define ZVFS_O_NONBLOCK     (O_NONBLOCK)
#endif

#define CONFIG_MINRPC_LINK_TCP      1
/* The port that the kernel chose. */
#define CONFIG_MINRPC_LINK_TCP_PORT 0

#include "link_tcp.c"

static uint8_t bytes[2U * RX_SIZE];

static int connected(void)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	int made = socket(AF_INET, SOCK_STREAM, 0);

	if (listener == NO_SOCKET) {
		CHECK(minrpc_link_init() == 0);
	}
	CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
	CHECK(connect(made, (struct sockaddr *)&address, size) == 0);
	return made;
}

/* Reads all bytes on their way, as the server's thread does. */
static void receive_all(uint32_t size)
{
	const uint8_t *data;

	while (size != 0U) {
		uint32_t got = minrpc_link_wait(&data);

		CHECK(got <= size);
		CHECK(memcmp(data, &bytes[sizeof(bytes) - size], got) == 0);
		minrpc_link_consume(got);
		size -= got;
	}
}

static void fill(void)
{
	for (uint32_t i = 0U; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i * 7U + i / 256U);
	}
}

TEST(bytes_arrive_in_their_order)
{
	int far = connected();

	fill();
	CHECK(send(far, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
	receive_all(sizeof(bytes));
	(void)close(far);
}

static int option(int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	CHECK(getsockopt(client, level, name, &value, &size) == 0);
	return value;
}

TEST(an_answer_goes_to_the_client)
{
	int far = connected();
	uint8_t answer[3];
	const uint8_t *data;

	CHECK(send(far, "x", 1, 0) == 1);
	CHECK(minrpc_link_wait(&data) == 1U);
	minrpc_link_consume(1U);
	minrpc_link_write((const uint8_t *)"yes", 3U);
	CHECK(recv(far, answer, sizeof(answer), MSG_WAITALL) == 3);
	CHECK(memcmp(answer, "yes", 3) == 0);
	CHECK(option(IPPROTO_TCP, TCP_NODELAY) == 1 && option(SOL_SOCKET, SO_KEEPALIVE) == 1);
	CHECK(option(IPPROTO_TCP, TCP_KEEPIDLE) == IDLE_S);
	CHECK(option(IPPROTO_TCP, TCP_KEEPINTVL) == PROBE_S);
	CHECK(option(IPPROTO_TCP, TCP_KEEPCNT) == PROBES);
	(void)close(far);
}

TEST(a_second_client_is_turned_away_and_a_later_one_is_not)
{
	int first = connected();
	int second;
	uint8_t byte;
	const uint8_t *data;

	CHECK(send(first, "a", 1, 0) == 1);
	CHECK(minrpc_link_wait(&data) == 1U);
	minrpc_link_consume(1U);
	second = connected();
	CHECK(minrpc_link_peek(0U, 0U, &data) == 0U);
	CHECK(recv(second, &byte, 1, 0) == 0);
	(void)close(second);
	/* The client is gone, with bytes that were not read. */
	CHECK(send(first, "z", 1, 0) == 1);
	(void)close(first);
	second = connected();
	CHECK(minrpc_link_peek(0U, 0U, &data) == 1U);
	minrpc_link_consume(1U);
	CHECK(send(second, "b", 1, 0) == 1);
	CHECK(minrpc_link_wait(&data) == 1U);
	CHECK(data[0] == 'b');
	minrpc_link_consume(1U);
	(void)close(second);
}

TEST(what_is_looked_through_and_fills_all_room_is_dropped_and_counted)
{
	int far = connected();
	uint32_t held;
	uint32_t from = 0U;
	uint32_t size;
	const uint8_t *data;

	fill();
	CHECK(send(far, bytes, 8, 0) == 8);
	held = minrpc_link_wait(&data);
	CHECK(send(far, &bytes[8], sizeof(bytes) - 8U, 0) == (ssize_t)sizeof(bytes) - 8);
	while ((size = minrpc_link_peek(held, from, &data)) != 0U) {
		from += size;
		CHECK(held + from <= RX_SIZE);
	}
	CHECK(from == RX_SIZE - held);
	CHECK(minrpc_link_overruns() == from);
	/* There is room again, and held bytes are unchanged. */
	CHECK(minrpc_link_peek(held, 0U, &data) != 0U);
	CHECK(minrpc_link_wait(&data) >= held);
	CHECK(memcmp(data, bytes, held) == 0);
	(void)close(far);
}

CHECK_MAIN(CASE(bytes_arrive_in_their_order), CASE(an_answer_goes_to_the_client),
	   CASE(a_second_client_is_turned_away_and_a_later_one_is_not),
	   CASE(what_is_looked_through_and_fills_all_room_is_dropped_and_counted))
