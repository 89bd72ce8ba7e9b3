/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The link that carries the protocol: a UART (also over USB), or a TCP socket.
 */
#ifndef LINK_H_
#define LINK_H_

#include <stdint.h>

#include <zephyr/devicetree.h>

/*
 * The UART that the board chooses, else the UART that Zephyr's own boards reserve for data, else
 * the only UART.
 */
#if DT_HAS_CHOSEN(minrpc_uart)
#define LINK_NODE DT_CHOSEN(minrpc_uart)
#elif DT_HAS_CHOSEN(zephyr_uart_pipe)
#define LINK_NODE DT_CHOSEN(zephyr_uart_pipe)
#else
#define LINK_NODE DT_CHOSEN(zephyr_console)
#endif

/**
 * @brief Start receiving.
 *
 * @retval 0 if the link works from now on
 * @retval -ENODEV if the UART failed to start
 * @retval -ENOTSUP if its driver has no interrupts
 * @retval -errno of the network stack, for a socket
 */
int minrpc_link_init(void);

/**
 * @brief Wait for bytes, or for a call of minrpc_link_wake().
 *
 * @param[out] data The bytes, valid until minrpc_link_consume().
 *
 * @return Number of bytes; 0 if woken without bytes.
 */
uint32_t minrpc_link_wait(const uint8_t **data);

/**
 * @brief Get the bytes after the bytes of minrpc_link_wait(), without waiting.
 *
 * When all of a full ring has been read in this way, its bytes are dropped and counted as lost: a
 * client that waits for an answer sends less, and a new client's messages need room.
 *
 * @param held Number of bytes that minrpc_link_wait() gave; they stay valid.
 * @param from Number of following bytes to pass over.
 * @param[out] data The bytes, valid until minrpc_link_consume().
 *
 * @return Number of bytes that lie there in one piece; 0 if there are no more.
 */
uint32_t minrpc_link_peek(uint32_t held, uint32_t from, const uint8_t **data);

/**
 * Links that do not notice incoming bytes: a process's interrupts wait while a function runs, and a
 * socket must be polled.
 */
#if defined(CONFIG_ARCH_POSIX) || defined(CONFIG_MINRPC_LINK_TCP)
#define LINK_RECEIVED NULL
#else
#define LINK_RECEIVED (&minrpc_link_received)
#endif

/** @brief A value that changes when bytes come in, also when there is no room for them. */
extern volatile uint32_t minrpc_link_received;

/** @brief Give back the first @p size bytes of minrpc_link_wait(). */
void minrpc_link_consume(uint32_t size);

/** @brief Make minrpc_link_wait() return. Callable from any context. */
void minrpc_link_wake(void);

/** @brief Send bytes, waiting until the last of them is in the ring. */
void minrpc_link_write(const uint8_t *data, uint32_t size);

/**
 * @brief Send the ring's bytes, and from now on everything, without interrupts.
 *
 * USB and the network need interrupts: over them nothing is sent from now on.
 */
void minrpc_link_poll_only(void);

/** @brief Send the waiting bytes, and nothing more by interrupt. For use before a restart. */
void minrpc_link_finish(void);

/** @brief Number of bytes that the link lost since boot, if it reports them. */
uint32_t minrpc_link_overruns(void);

/** @brief The link's name for messages. */
const char *minrpc_link_name(void);

#endif /* LINK_H_ */
