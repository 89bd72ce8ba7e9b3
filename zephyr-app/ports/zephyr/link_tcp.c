/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The link by a TCP socket, which one client at a time is connected to. Only the server's thread
 * looks at the socket: when it waits, and between the calls of a measurement.
 */
#include "link.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/net/socket.h>

/* Zephyr before 4.4 has POSIX' names only, which a later one may leave out. */
#if !defined(NET_AF_INET)
#define NET_AF_INET         AF_INET
#define NET_IPPROTO_TCP     IPPROTO_TCP
#define NET_SOCK_STREAM     SOCK_STREAM
#define ZSOCK_SOL_SOCKET    SOL_SOCKET
#define ZSOCK_SO_KEEPALIVE  SO_KEEPALIVE
#define ZSOCK_SO_REUSEADDR  SO_REUSEADDR
#define ZSOCK_TCP_KEEPCNT   TCP_KEEPCNT
#define ZSOCK_TCP_KEEPIDLE  TCP_KEEPIDLE
#define ZSOCK_TCP_KEEPINTVL TCP_KEEPINTVL
#define ZSOCK_TCP_NODELAY   TCP_NODELAY
#define net_htons           htons
#define net_sockaddr        sockaddr
#define net_sockaddr_in     sockaddr_in
#endif
#if !defined(ZVFS_F_SETFL)
#include <zephyr/posix/fcntl.h>
#define ZVFS_F_SETFL    F_SETFL
#define ZVFS_O_NONBLOCK O_NONBLOCK
#endif

#define RX_SIZE    CONFIG_MINRPC_RX_RING_SIZE
#define NO_SOCKET  (-1)
#define FOR_EVER   (-1)
/* The network stack's own threads send the bytes that it has accepted. */
#define SENDING_MS 100
/* Seconds without bytes until keep-alive probes are sent, and between the probes. */
#define IDLE_S     5
#define PROBE_S    2
#define PROBES     3

/* Received bytes, from the start of `bytes`. */
static struct {
	uint32_t size;
	uint8_t bytes[RX_SIZE];
} rx;

static int listener = NO_SOCKET;
static int client = NO_SOCKET;
static uint32_t dropped;
static bool is_silent;

static void set(int fd, int level, int option, int value)
{
	(void)zsock_setsockopt(fd, level, option, &value, sizeof(value));
}

/* Replies are sent at once, and a client that died without a close is dropped. */
static void set_options(int fd)
{
	set(fd, NET_IPPROTO_TCP, ZSOCK_TCP_NODELAY, 1);
	set(fd, ZSOCK_SOL_SOCKET, ZSOCK_SO_KEEPALIVE, 1);
	set(fd, NET_IPPROTO_TCP, ZSOCK_TCP_KEEPIDLE, IDLE_S);
	set(fd, NET_IPPROTO_TCP, ZSOCK_TCP_KEEPINTVL, PROBE_S);
	set(fd, NET_IPPROTO_TCP, ZSOCK_TCP_KEEPCNT, PROBES);
}

static void drop_client(void)
{
	(void)zsock_close(client);
	client = NO_SOCKET;
}

/* A second client is refused while the first is connected. */
static void accept_client(void)
{
	int accepted = zsock_accept(listener, NULL, NULL);

	if (accepted < 0) {
		return;
	}
	if (client != NO_SOCKET) {
		(void)zsock_close(accepted);
		return;
	}
	client = accepted;
	set_options(client);
}

/* Reads all bytes for which there is room; the client's end comes after its bytes. */
static void receive(void)
{
	ssize_t got = 1;

	while (got > 0 && rx.size < RX_SIZE) {
		got = zsock_recv(client, &rx.bytes[rx.size], RX_SIZE - rx.size, ZSOCK_MSG_DONTWAIT);
		rx.size += got > 0 ? (uint32_t)got : 0U;
	}
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
		drop_client();
	}
}

static void take(int timeout_ms)
{
	struct zsock_pollfd sockets[] = {
		{.fd = listener, .events = ZSOCK_POLLIN},
		{.fd = client, .events = ZSOCK_POLLIN},
	};

	if (zsock_poll(sockets, client == NO_SOCKET ? 1 : 2, timeout_ms) <= 0) {
		return;
	}
	if (client != NO_SOCKET && sockets[1].revents != 0) {
		receive();
	}
	if (sockets[0].revents != 0) {
		accept_client();
	}
}

static void take_now(void)
{
	if (!IS_ENABLED(CONFIG_ARCH_POSIX)) {
		take(0);
		return;
	}
	/* poll() of a process needs interrupts, which wait while a function runs. */
	if (client != NO_SOCKET) {
		receive();
	}
	accept_client();
}

static int listen_at(int fd)
{
	struct net_sockaddr_in address = {
		.sin_family = NET_AF_INET,
		.sin_port = net_htons(CONFIG_MINRPC_LINK_TCP_PORT),
	};

	/* The host of a simulated board may still have connections from before the restart. */
	set(fd, ZSOCK_SOL_SOCKET, ZSOCK_SO_REUSEADDR, 1);
	/* zsock_accept() must not wait for a client that has gone before. */
	(void)zsock_fcntl(fd, ZVFS_F_SETFL, ZVFS_O_NONBLOCK);
	if (zsock_bind(fd, (struct net_sockaddr *)&address, sizeof(address)) < 0) {
		return -errno;
	}
	return zsock_listen(fd, 1) < 0 ? -errno : 0;
}

int minrpc_link_init(void)
{
	int error;

	listener = zsock_socket(NET_AF_INET, NET_SOCK_STREAM, NET_IPPROTO_TCP);
	if (listener < 0) {
		return -errno;
	}
	error = listen_at(listener);
	if (error != 0) {
		(void)zsock_close(listener);
		listener = NO_SOCKET;
	}
	return error;
}

uint32_t minrpc_link_wait(const uint8_t **data)
{
	while (rx.size == 0U) {
		take(FOR_EVER);
	}
	*data = rx.bytes;
	/* A part of the buffer stays free for the message that ends a measurement. */
	return MIN(rx.size, RX_SIZE / 2U);
}

uint32_t minrpc_link_peek(uint32_t held, uint32_t from, const uint8_t **data)
{
	if (rx.size == held + from) {
		take_now();
	}
	*data = &rx.bytes[held + from];
	if (rx.size == RX_SIZE && rx.size == held + from && from != 0U) {
		rx.size = held;
		dropped += from;
		return 0U;
	}
	return rx.size - held - from;
}

void minrpc_link_consume(uint32_t size)
{
	rx.size -= size;
	(void)memmove(rx.bytes, &rx.bytes[size], rx.size);
}

/* No-op: this link has no waiting text, since the console is elsewhere. */
void minrpc_link_wake(void)
{
}

void minrpc_link_write(const uint8_t *data, uint32_t size)
{
	while (size != 0U && client != NO_SOCKET && !is_silent) {
		ssize_t sent = zsock_send(client, data, size, 0);

		if (sent < 0) {
			drop_client();
			return;
		}
		data += sent;
		size -= (uint32_t)sent;
	}
}

void minrpc_link_poll_only(void)
{
	is_silent = true;
}

void minrpc_link_finish(void)
{
	if (is_silent) {
		return;
	}
	if (client != NO_SOCKET) {
		drop_client();
		(void)k_msleep(SENDING_MS);
	}
	minrpc_link_poll_only();
}

const char *minrpc_link_name(void)
{
	return "TCP port " STRINGIFY(CONFIG_MINRPC_LINK_TCP_PORT);
}

uint32_t minrpc_link_overruns(void)
{
	return dropped;
}
