/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The functions of Zephyr that its port's link uses, on one thread of the host: in place of a wait,
 * interrupts come.
 */
#ifndef ZEPHYR_API_H_
#define ZEPHYR_API_H_

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_MINRPC_RX_RING_SIZE 2048
#define CONFIG_MINRPC_TX_RING_SIZE 1024

#define IS_ENABLED(option)        0
#define ARG_UNUSED(name)          ((void)(name))
#define BIT(number)               (1U << (number))
#define STRINGIFY(text)           #text
#define MIN(a, b)                 ((a) < (b) ? (a) : (b))
#define FUNC_NORETURN             _Noreturn
#define barrier_dmem_fence_full() __asm__ volatile("" ::: "memory")
#define BUILD_ASSERT(holds, text) _Static_assert(holds, text)

#define DT_HAS_CHOSEN(name)              CHOSEN_##name
#define CHOSEN_minrpc_uart               1
#define DT_CHOSEN(name)                  name
#define DT_NODE_HAS_STATUS(node, status) 1
#define DT_NODE_HAS_COMPAT(node, name)   0
#define DEVICE_DT_GET(node)              (&serial)

struct device {
	const char *name;
};

extern const struct device serial;

bool device_is_ready(const struct device *device);

/* Runs once at boot, before there are threads and interrupts. */
#define SYS_INIT(function, level, priority) int (*const init_at_boot)(void) = (function)

extern int (*const init_at_boot)(void);

static inline bool k_is_in_isr(void)
{
	return false;
}

static inline unsigned int irq_lock(void)
{
	return 0U;
}

static inline void irq_unlock(unsigned int key)
{
	ARG_UNUSED(key);
}

typedef int atomic_t;
typedef int atomic_val_t;

static inline int atomic_get(const atomic_t *value)
{
	return *value;
}

static inline int atomic_set(atomic_t *value, int set)
{
	int before = *value;

	*value = set;
	return before;
}

static inline int atomic_add(atomic_t *value, int more)
{
	int before = *value;

	*value += more;
	return before;
}

static inline int atomic_inc(atomic_t *value)
{
	return atomic_add(value, 1);
}

struct k_sem {
	unsigned int count;
	unsigned int limit;
};

#define K_SEM_DEFINE(name, first, most) struct k_sem name = {first, most}
#define K_FOREVER                       (-1)

void k_sem_give(struct k_sem *sem);
int k_sem_take(struct k_sem *sem, int timeout);

static inline int32_t k_msleep(int32_t milliseconds)
{
	ARG_UNUSED(milliseconds);
	return 0;
}

#define USEC_PER_MSEC 1000U

void k_busy_wait(uint32_t microseconds);

#define UART_ERROR_OVERRUN BIT(0)

typedef void (*uart_irq_callback_user_data_t)(const struct device *device, void *context);

int uart_irq_callback_user_data_set(const struct device *device,
				    uart_irq_callback_user_data_t callback, void *context);
void uart_irq_update(const struct device *device); /* as from Zephyr 4.5 on */
int uart_irq_rx_ready(const struct device *device);
int uart_irq_tx_ready(const struct device *device);
void uart_irq_rx_enable(const struct device *device);
void uart_irq_rx_disable(const struct device *device);
void uart_irq_tx_enable(const struct device *device);
void uart_irq_tx_disable(const struct device *device);
int uart_irq_tx_complete(const struct device *device);
int uart_err_check(const struct device *device);
int uart_fifo_read(const struct device *device, uint8_t *data, int size);
int uart_fifo_fill(const struct device *device, const uint8_t *data, int size);
void uart_poll_out(const struct device *device, unsigned char byte);

#endif /* ZEPHYR_API_H_ */
