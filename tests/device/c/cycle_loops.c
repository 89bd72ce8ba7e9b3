/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Loops whose cycles follow from a core's timing table by hand: a round is the body, a subtraction
 * and a branch back.
 */
#include <stdint.h>

#define LOOP(name, body)                                                                           \
	__attribute__((naked)) void name(uint32_t rounds)                                          \
	{                                                                                          \
		(void)rounds;                                                                      \
		__asm__ volatile(BEGIN ".balign 16\n1:\n" body "\n" END);                          \
	}

/* With two operands: r3 and r4, a3 and a4. */
#define LOOP_OF_TWO(name, body)                                                                    \
	__attribute__((naked)) void name(uint32_t rounds, uint32_t first, uint32_t second)         \
	{                                                                                          \
		(void)rounds;                                                                      \
		(void)first;                                                                       \
		(void)second;                                                                      \
		__asm__ volatile(BEGIN_OF_TWO ".balign 16\n1:\n" body "\n" END);                   \
	}

#ifdef __arm__
/* r1 points at 32 bytes of the stack, of which the first word is the pointer itself; r5 is 0. */
#define BEGIN                                                                                      \
	".syntax unified\npush {r4-r7, lr}\nsub sp, #32\nmov r1, sp\nmov r7, sp\nstr r1, "         \
	"[r1]\nmovs r5, #0\n"
#define BEGIN_OF_TWO                                                                               \
	".syntax unified\npush {r4-r7, lr}\nsub sp, #32\nmovs r5, #0\nmov r3, r1\nmov r4, r2\n"
#define END "subs r0, #1\nbne 1b\nadd sp, #32\npop {r4-r7, pc}\n"

LOOP(nothing, "")
LOOP(data, "adds r2, #1")
LOOP(mul, "muls r2, r3, r2")
LOOP(load, "ldr r2, [r1]")
LOOP(load_load, "ldr r2, [r1]\nldr r3, [r1, #4]")
LOOP(load_to_address, "ldr r2, [r1]\nldr r3, [r2, #4]")
LOOP(load_replaces_index, "movs r3, #0\nldr r2, [r1]\nldr r3, [r1, r3]")
LOOP(store_load, "str r2, [r1, #4]\nldr r3, [r1]")
LOOP(store, "str r2, [r1, #4]")
LOOP(store_register, "str r2, [r1, r5]\nstr r1, [r1]")
LOOP(load_store_register, "ldr r2, [r1]\nstr r2, [r1, r5]")
LOOP(push_pop, "push {r2, r3, r4}\npop {r2, r3, r4}")
LOOP(load_multiple, "mov r6, r1\nldmia r6!, {r2, r3}")
LOOP(branch, "b 2f\nnop\n2:")
LOOP(branch_not_taken, "cmp r5, #1\nbeq 2f\nnop\n2:")
LOOP(call, "bl 3f\nb 4f\n3: bx lr\n4:")
/* 16 bytes, and 4 of the round's end; 8 bytes with a constant of 4, and 4 of the end. */
LOOP(straight, ".rept 8\nadds r2, #1\n.endr")
LOOP(constant, "ldr r2, 5f\nb 6f\n5: .word 7\n6:")
LOOP(pop_pc, "mov r3, pc\nadds r3, #7\npush {r3}\npop {pc}\nnop\n2:")

#if __ARM_ARCH >= 7
LOOP(mla, "mla r2, r3, r2, r3")
LOOP(mul_long, "umull r2, r3, r4, r6")
LOOP(mla_long, "umlal r2, r3, r4, r6")
LOOP(divide, "udiv r2, r3, r4")
LOOP(load_double, "ldrd r2, r3, [r1]")
LOOP(store_double, "strd r2, r3, [r1, #8]")
LOOP(compare_branch, "cbnz r0, 2f\nnop\n2:")
LOOP(load_updates, "mov r6, r1\nldr r2, [r1]\nldr r3, [r6], #4")
LOOP(address_made, "adds r6, r1, #4\nldr r2, [r6]")
LOOP(access_straddles, "nop\nldr.w r2, [r1]\nnop")
LOOP(straddles_behind_access, "ldr r2, [r1]\nadd.w r3, r3, #1\nnop")
LOOP(data_straddles, "nop\nadd.w r3, r3, #1\nnop")
LOOP(unaligned_word, "ldr r2, [r1, #1]")
LOOP(unaligned_half, "ldrh r2, [r1, #3]")
LOOP(word_at_odd_half, "ldr r2, [r1, #2]")
LOOP(unaligned_store, "str r2, [r1, #9]")
LOOP(unaligned_half_store, "strh r2, [r1, #9]")
LOOP(if_then, "cmp r5, #0\nit ne\naddne r2, #1")
/*
 * The last instruction before a page's end is short, and the next instruction lies across the end:
 * QEMU translates it separately.
 */
LOOP(across_a_page, "b 2f\n.balign 1024\n.skip 1014\n2: adds r2, #1\nadds r2, #1\nadds r2, #1\n"
		    "adds r2, #1\nbl 3f\nb 4f\n3: bx lr\n4:")
LOOP(table_branch, "tbb [pc, r5]\n.byte 1, 1\n2:")
LOOP_OF_TWO(unsigned_division, "udiv r2, r3, r4")
LOOP_OF_TWO(signed_division, "sdiv r2, r3, r4")
LOOP_OF_TWO(unsigned_product, "umull r2, r7, r3, r4")
LOOP_OF_TWO(signed_product, "smull r2, r7, r3, r4")
LOOP_OF_TWO(unsigned_sum, "umlal r2, r7, r3, r4")
LOOP_OF_TWO(signed_sum, "smlal r2, r7, r3, r4")
LOOP_OF_TWO(skipped_division, "cmp r5, #0\nit ne\nudivne r2, r3, r4")
#endif
#ifdef __ARM_FP
LOOP(fp_add, "vadd.f32 s0, s1, s2\nvadd.f32 s3, s1, s2")
LOOP(fp_dependent, "vadd.f32 s0, s1, s2\nvadd.f32 s3, s0, s2")
LOOP(fp_mla, "vmla.f32 s0, s1, s2")
LOOP(fp_divide, "vdiv.f32 s0, s1, s2")
LOOP(fp_load, "vldr s0, [r1]")
LOOP(fp_store, "vstr s0, [r1, #4]")
LOOP(fp_double_move, "vmov s0, s1, r2, r3")
LOOP(fp_load_multiple, "mov r6, r1\nvldmia r6!, {s0-s3}")
#endif
#else
/* a1 points at 16 bytes of the stack. */
#define BEGIN        "addi sp, sp, -32\nsw ra, 28(sp)\nmv a1, sp\nsw a1, 0(a1)\n"
#define BEGIN_OF_TWO "addi sp, sp, -32\nsw ra, 28(sp)\nmv a3, a1\nmv a4, a2\n"
#define END          "addi a0, a0, -1\nbnez a0, 1b\nlw ra, 28(sp)\naddi sp, sp, 32\nret\n"

LOOP(nothing, "")
LOOP(data, "addi a2, a2, 1")
LOOP(mul, "mul a2, a3, a2")
LOOP(mul_high, "mulhu a2, a3, a4")
LOOP(divide, "divu a2, a3, a4")
LOOP_OF_TWO(unsigned_division, "divu a2, a3, a4")
LOOP_OF_TWO(signed_division, "div a2, a3, a4")
LOOP_OF_TWO(unsigned_remainder, "remu a2, a3, a4")
LOOP_OF_TWO(signed_remainder, "rem a2, a3, a4")
LOOP(load, "lw a2, 0(a1)")
LOOP(load_used, "lw a2, 0(a1)\naddi a3, a2, 1")
LOOP(store, "sw a2, 4(a1)")
LOOP(unaligned_word, "lw a2, 1(a1)")
LOOP(half_in_word, "lhu a2, 1(a1)")
LOOP(unaligned_half, "lhu a2, 3(a1)")
LOOP(unaligned_store, "sw a2, 5(a1)")
LOOP(unaligned_half_store, "sh a2, 7(a1)")
LOOP(jump, "j 2f\nnop\n.balign 4\n2:")
LOOP(branch, "beqz zero, 2f\nnop\n.balign 4\n2:")
LOOP(branch_not_taken, "bnez zero, 2f\nnop\n2:")
LOOP(call, "jal 3f\nj 4f\n.balign 4\n3: ret\n.balign 4\n4:")
LOOP(csr, "csrr a2, mscratch")
LOOP(straight, ".option rvc\n.rept 8\nc.addi a2, 1\n.endr")
#endif
