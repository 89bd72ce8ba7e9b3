/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The end of a simulated board whose link is closed.
 */
#ifndef HANG_UP_H_
#define HANG_UP_H_

/**
 * @brief To be called when the UART refuses bytes, or has no byte although it reported a byte. On a
 * simulated board this means that the tty was closed, and the process ends. A real UART can't
 * disappear: nothing happens.
 */
void minrpc_link_hung_up(void);

#endif /* HANG_UP_H_ */
