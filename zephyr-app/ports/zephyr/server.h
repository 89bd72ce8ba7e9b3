/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The server of this image, its thread and its buffer for requests.
 */
#ifndef SERVER_H_
#define SERVER_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/kernel.h>

extern struct k_thread minrpc_server_thread;
extern uint8_t minrpc_receive_buffer[CONFIG_MINRPC_RECEIVE_SIZE];

/**
 * @brief Send a session log at any time; a frame in progress is given up. It is for the last
 * message before a restart; the link must already be polling.
 */
void minrpc_device_last_words(const char *text, uint32_t size);
/** @brief The same, and the session's end. */
void minrpc_device_last_message(const char *text);
/* Callers of the current thread's function with stack pointer `pointer`; also printed. */
void minrpc_device_callers(uintptr_t pointer);
/* True on the server's thread, which may send logs. */
bool minrpc_on_device_thread(void);

#endif /* SERVER_H_ */
