/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The functions that the files of the bare-metal port call in each other. The differences between
 * machines are in machine.h.
 */
#ifndef PORT_H_
#define PORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <minrpc/counter.h>
#include <minrpc/minrpc_config.h>
#include <minrpc/server.h>

/* Size of the table of vectors, with which a Cortex-M's flash begins. */
#define VECTORS_BYTES 256U

/*
 * cpu_*.c: the processor. The short functions are in cpu_*.h: interrupts_off, interrupts_as,
 * interrupts_on, interrupts_were_on, wait_for_interrupt, memory_barrier, cpu_semihosting.
 */

/* Lets the receive interrupt of the link's UART through. */
void cpu_enable_link_interrupt(void);
/* Instructions were written to these bytes: makes them visible to instruction fetches. */
void cpu_code_ready(void *address, size_t size);
__attribute__((noreturn)) void cpu_reset(void);
/* Notes the processor's modes, for cpu_restore. */
void cpu_note_modes(void);
/* Puts back what link and runtime need; `all`: also the modes, and the protection of memory. */
void cpu_restore(bool all);
/*
 * The table of vectors that cpu_restore puts back. Loaded code that takes the vectors sets it, so
 * its name is public.
 */
extern uintptr_t minrpc_vectors;

/* link_*.c: the link that carries RPC. Sending waits for the link. */

/*
 * Bytes that came in, were read and were lost; beside each other, so that one register leads to
 * all.
 */
extern struct link_count {
	volatile uint32_t in;  /* written by the interrupt, or while that is off */
	volatile uint32_t out; /* written by the reader only */
	volatile uint32_t lost;
} link_count;

/* Changes when bytes arrive. RTT's is in link_rtt.h. */
#ifndef LINK_RECEIVED
#define LINK_RECEIVED (&link_count.in)
#endif

void link_init(void);
void link_write(const uint8_t *data, uint32_t size);
/*
 * Waits for received bytes, and returns the number that lie in one piece. link_consume frees
 * them.
 */
uint32_t link_wait(const uint8_t **data);
/* The same without waiting, past the first `from` bytes; 0 when there are no more. */
uint32_t link_peek(uint32_t from, const uint8_t **data);
void link_consume(uint32_t size);
/* Drops a full ring's bytes behind the first `held`; it counts as lost. */
void link_make_room(uint32_t held);
uint32_t link_overruns(void);
/* The receive interrupt, of a UART. */
void link_receive_isr(void);

/* console.c: text. These functions do nothing if the machine has no UART for it. */
void console_init(void);
void console_write(const char *text);
void console_put(char c);

/* clock_*.c: a counter of MACHINE_CLOCK_HZ that does not wrap. */

void clock_init(void);
uint64_t clock_cycles(void);
/* Puts the clock's registers back. Returns the name of one that had changed; NULL: none. */
const char *clock_restore(void);

/*
 * second_*.c: a slower clock of the same oscillator, of second_hz, which needs no interrupt. It
 * tells the rounds of the first clock that were lost while interrupts were off. CLOCK_ROUND: the
 * cycles of a round of the first clock. Without MACHINE_SECOND there is none.
 */
extern const uint32_t second_hz;
void second_init(void);
uint64_t second_ticks(void);

/* stack.c: the stack of MACHINE_STACK_BYTES. Handlers of faults have another. */

#define STACK_OVERFLOW "stack overflow: "

extern uint32_t minrpc_stack[];
void stack_paint(void);
void stack_use(uint32_t *size, uint32_t *peak);
/* True if the stack was too small for an access to this address; 0: the address is unknown. */
bool stack_ran_out(uintptr_t pointer, uintptr_t address);
/* callers_text (../callers.h) of the stack from the pointer up. */
void stack_callers(uintptr_t pointer, char *text, uint32_t room);

/* heap.c: bytes allocated by malloc, now and the most since the last reset of the peak. */
void heap_use(uint32_t *used, uint32_t *peak, bool reset);
/*
 * Returns the first written place that belongs to no block; NULL: there is none. `where` is set to
 * its kind, the text after "wrote". Repairs guards and fills.
 */
const void *heap_inspect(const char **where);

/* From now on, a layout can give arrays the memory behind the heap. */
void heap_init(struct minrpc_config *server);

/* server.c: the server's buffer, of MACHINE_PACKET_BYTES. */
extern uint8_t receive_buffer[];

/* stdio.c: sends text of printf whose line has not ended. */
void console_flush(void);

/*
 * counters_*.c: the processor's counters, with MINRPC_COUNTERS; the last has no name.
 */
extern const struct minrpc_counter processor_counters[];

/*
 * fault.c: writes `text` and the callers of the faulty function, whose stack pointer is `pointer`,
 * to console and link, and restarts the device. May be called at any time, also before main.
 */
__attribute__((noreturn)) void fault_report(const char *text, uintptr_t pointer);

#endif /* PORT_H_ */
