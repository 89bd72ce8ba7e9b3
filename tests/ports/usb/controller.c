/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A USB device controller whose wire is a UART: Zephyr's stack and its CDC ACM run on machines that
 * have no controller. tests/ports/usb/host.py is the host at the other end.
 *
 * A message is a kind, an endpoint, a length and so many bytes. The host sends a reset of the bus,
 * SETUP and OUT packets, and an ACK for each IN packet; the controller tells that it is attached,
 * and sends IN packets, STALL, and READY for an endpoint whose next OUT packet it can take. As on a
 * bus, an endpoint takes no packet before the last one was read.
 */
#include <string.h>

#include <zephyr/drivers/uart.h>
#include <zephyr/drivers/usb/usb_dc.h>
#include <zephyr/kernel.h>
#include <zephyr/usb/usb_device.h>

#define ENDPOINTS   8
#define PACKET      64
#define MESSAGES    8
#define HEAD        3
#define STACK_BYTES 2048

enum kind {
	KIND_ATTACHED = '+',
	KIND_RESET = 'B',
	KIND_SETUP = 'S',
	KIND_OUT = 'O',
	KIND_IN = 'I',
	KIND_ACK = 'A',
	KIND_READY = 'R',
	KIND_STALL = 'X',
};

struct message {
	uint8_t head[HEAD];
	uint8_t data[PACKET];
};

struct endpoint {
	usb_dc_ep_callback callback;
	uint16_t packet_size;
	bool enabled;
	bool stalled;
	/* An OUT endpoint holds a packet, `length` bytes not read yet; an IN endpoint has no ACK.
	 */
	bool waits;
	uint8_t length;
	uint8_t packet[PACKET];
};

static const struct device *const wire = DEVICE_DT_GET(DT_NODELABEL(uart1));
static struct endpoint endpoints[2][ENDPOINTS];
static usb_dc_status_callback status_callback;
static struct message incoming;
static uint32_t received;
K_MSGQ_DEFINE(messages, sizeof(struct message), MESSAGES, 4);
static K_KERNEL_STACK_DEFINE(stack, STACK_BYTES);
static struct k_thread thread;

static struct endpoint *endpoint_of(uint8_t address)
{
	return &endpoints[USB_EP_DIR_IS_IN(address)][USB_EP_GET_IDX(address) % ENDPOINTS];
}

static void tell(enum kind kind, uint8_t address, const uint8_t *data, uint32_t length)
{
	uint8_t head[HEAD] = {(uint8_t)kind, address, (uint8_t)length};
	unsigned int key = irq_lock();

	for (uint32_t i = 0U; i < HEAD; i++) {
		uart_poll_out(wire, head[i]);
	}
	for (uint32_t i = 0U; i < length; i++) {
		uart_poll_out(wire, data[i]);
	}
	irq_unlock(key);
}

/* Zeros stand between messages where the host does not know how many bytes were taken before. */
static void take(uint8_t byte)
{
	if (received == 0U && byte == 0U) {
		return;
	}
	if (received < HEAD) {
		incoming.head[received] = byte;
	} else {
		incoming.data[(received - HEAD) % PACKET] = byte;
	}
	received++;
	if (received >= HEAD && received == HEAD + (uint32_t)incoming.head[2]) {
		(void)k_msgq_put(&messages, &incoming, K_NO_WAIT);
		received = 0U;
	}
}

static void on_wire(const struct device *uart, void *context)
{
	uint8_t byte;

	ARG_UNUSED(context);
	while (uart_irq_update(uart) && uart_irq_rx_ready(uart)) {
		while (uart_fifo_read(uart, &byte, 1) == 1) {
			take(byte);
		}
	}
}

static void packet_came(const struct message *message, enum usb_dc_ep_cb_status_code status)
{
	uint8_t address = message->head[1];
	struct endpoint *endpoint = endpoint_of(address);

	memcpy(endpoint->packet, message->data, message->head[2]);
	endpoint->length = message->head[2];
	endpoint->waits = true;
	if (endpoint->callback != NULL) {
		endpoint->callback(address, status);
	}
}

static void serve(void *p1, void *p2, void *p3)
{
	struct message message;
	bool is_reset = false;

	ARG_UNUSED(p1);
	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	for (;;) {
		struct endpoint *endpoint;

		(void)k_msgq_get(&messages, &message, K_FOREVER);
		is_reset = is_reset || message.head[0] == KIND_RESET;
		if (!is_reset) {
			continue; /* for the device before a restart */
		}
		switch (message.head[0]) {
		case KIND_RESET:
			status_callback(USB_DC_RESET, NULL);
			break;
		case KIND_SETUP:
			packet_came(&message, USB_DC_EP_SETUP);
			break;
		case KIND_OUT:
			packet_came(&message, USB_DC_EP_DATA_OUT);
			break;
		case KIND_ACK:
			endpoint = endpoint_of(message.head[1]);
			endpoint->waits = false;
			if (endpoint->callback != NULL) {
				endpoint->callback(message.head[1], USB_DC_EP_DATA_IN);
			}
			break;
		default:
			break;
		}
	}
}

int usb_dc_attach(void)
{
	(void)uart_irq_callback_user_data_set(wire, on_wire, NULL);
	uart_irq_rx_enable(wire);
	(void)k_thread_create(&thread, stack, K_KERNEL_STACK_SIZEOF(stack), serve, NULL, NULL, NULL,
			      K_PRIO_COOP(2), 0, K_NO_WAIT);
	return 0;
}

int usb_dc_detach(void)
{
	return 0;
}

int usb_dc_reset(void)
{
	return 0;
}

int usb_dc_set_address(const uint8_t address)
{
	ARG_UNUSED(address);
	return 0;
}

void usb_dc_set_status_callback(const usb_dc_status_callback callback)
{
	status_callback = callback;
}

int usb_dc_ep_check_cap(const struct usb_dc_ep_cfg_data *const wanted)
{
	return USB_EP_GET_IDX(wanted->ep_addr) < ENDPOINTS && wanted->ep_mps <= PACKET ? 0
										       : -EINVAL;
}

int usb_dc_ep_configure(const struct usb_dc_ep_cfg_data *const wanted)
{
	endpoint_of(wanted->ep_addr)->packet_size = wanted->ep_mps;
	return usb_dc_ep_check_cap(wanted);
}

int usb_dc_ep_set_stall(const uint8_t address)
{
	endpoint_of(address)->stalled = true;
	tell(KIND_STALL, address, NULL, 0U);
	return 0;
}

int usb_dc_ep_clear_stall(const uint8_t address)
{
	endpoint_of(address)->stalled = false;
	return 0;
}

int usb_dc_ep_is_stalled(const uint8_t address, uint8_t *const stalled)
{
	*stalled = endpoint_of(address)->stalled;
	return 0;
}

int usb_dc_ep_halt(const uint8_t address)
{
	return usb_dc_ep_set_stall(address);
}

int usb_dc_ep_enable(const uint8_t address)
{
	endpoint_of(address)->enabled = true;
	if (address == USB_CONTROL_EP_IN) {
		/* The stack can answer now. */
		tell(KIND_ATTACHED, 0U, NULL, 0U);
	}
	return 0;
}

int usb_dc_ep_disable(const uint8_t address)
{
	endpoint_of(address)->enabled = false;
	return 0;
}

int usb_dc_ep_flush(const uint8_t address)
{
	ARG_UNUSED(address);
	return 0;
}

int usb_dc_ep_write(const uint8_t address, const uint8_t *const data, const uint32_t length,
		    uint32_t *const written)
{
	struct endpoint *endpoint = endpoint_of(address);
	uint32_t size = MIN(length, endpoint->packet_size);

	if (!endpoint->enabled) {
		return -EINVAL;
	}
	if (endpoint->waits) {
		return -EAGAIN;
	}
	endpoint->waits = true;
	tell(KIND_IN, address, data, size);
	if (written != NULL) {
		*written = size;
	}
	return 0;
}

int usb_dc_ep_read_wait(uint8_t address, uint8_t *data, uint32_t room, uint32_t *count)
{
	struct endpoint *endpoint = endpoint_of(address);
	uint32_t size = MIN(room, endpoint->length);

	if (data == NULL && room == 0U) {
		*count = endpoint->length;
		return 0;
	}
	memcpy(data, endpoint->packet, size);
	memmove(endpoint->packet, endpoint->packet + size, endpoint->length - size);
	endpoint->length -= (uint8_t)size;
	if (count != NULL) {
		*count = size;
	}
	return 0;
}

int usb_dc_ep_read_continue(uint8_t address)
{
	struct endpoint *endpoint = endpoint_of(address);

	if (endpoint->length == 0U) {
		endpoint->waits = false;
		tell(KIND_READY, address, NULL, 0U);
	}
	return 0;
}

int usb_dc_ep_read(const uint8_t address, uint8_t *const data, const uint32_t room,
		   uint32_t *const count)
{
	int result = usb_dc_ep_read_wait(address, data, room, count);

	return result != 0 || (data == NULL && room == 0U) ? result
							   : usb_dc_ep_read_continue(address);
}

int usb_dc_ep_set_callback(const uint8_t address, const usb_dc_ep_callback callback)
{
	endpoint_of(address)->callback = callback;
	return 0;
}

int usb_dc_ep_mps(uint8_t address)
{
	return endpoint_of(address)->packet_size;
}

int usb_dc_wakeup_request(void)
{
	return 0;
}
