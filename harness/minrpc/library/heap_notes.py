# SPDX-License-Identifier: Apache-2.0
"""malloc for loaded code whose accesses are recorded: the record has the begin and end of each block.

The linker passes the library's calls of malloc and free to these functions. A freed block is kept back for a
while, so that a late access does not meet another block.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from minrpc.library.compiling import Compiled, compile_text
from minrpc.library.toolset import Toolset

FUNCTIONS: Final = ("malloc", "calloc", "realloc", "free")
"""The functions of the C library that are wrapped."""

_SOURCE: Final = """\
typedef __SIZE_TYPE__ size;
extern void *__real_malloc(size), *__real_calloc(size, size), *__real_realloc(void *, size);
extern void __real_free(void *);

#ifdef __clang__
#define apart __attribute__((noinline, optnone))
#else
#define apart __attribute__((noipa))
#endif
#define HELD 16

static void *minrpc_held[HELD];
static unsigned minrpc_next;

apart void minrpc_given(const volatile char *begin, size count)
{
	(void)begin[0];
	(void)begin[count];
}

apart void minrpc_taken(const volatile char *begin)
{
	(void)begin[0];
}

static int minrpc_release(void)
{
	int released = 0;

	for (unsigned i = 0; i < HELD; i++) {
		void *block = minrpc_held[i];

		minrpc_held[i] = 0;
		released |= block != 0;
		__real_free(block);
	}
	return released;
}

void *__wrap_malloc(size count)
{
	void *block = __real_malloc(count);

	if (block == 0 && minrpc_release()) {
		block = __real_malloc(count);
	}
	if (block != 0) {
		minrpc_given(block, count);
	}
	return block;
}

void *__wrap_calloc(size number, size each)
{
	void *block = __real_calloc(number, each);

	if (block == 0 && minrpc_release()) {
		block = __real_calloc(number, each);
	}
	if (block != 0) {
		minrpc_given(block, number * each);
	}
	return block;
}

void __wrap_free(void *block)
{
	void *oldest = minrpc_held[minrpc_next];

	if (block == 0) {
		return;
	}
	minrpc_taken(block);
	for (unsigned i = 0; i < HELD; i++) {
		if (minrpc_held[i] == block) { /* The heap tells that it was freed before. */
			__real_free(block);
			__real_free(block);
		}
	}
	minrpc_held[minrpc_next] = block;
	minrpc_next = (minrpc_next + 1) % HELD;
	__real_free(oldest);
}

void *__wrap_realloc(void *block, size count)
{
	void *moved;

	if (block == 0) {
		return __wrap_malloc(count);
	}
	moved = __real_realloc(block, count);
	if (moved == 0 && count != 0 && minrpc_release()) {
		moved = __real_realloc(block, count);
	}
	if (moved != 0 || count == 0) {
		minrpc_taken(block);
	}
	if (moved != 0) {
		minrpc_given(moved, count);
	}
	return moved;
}
"""


def with_heap_notes(compiled: Compiled, toolset: Toolset) -> Compiled:
    """The objects, with functions that tell the blocks of malloc to the record."""
    notes = compile_text(_SOURCE, toolset)
    *objects, thunks = compiled.objects
    return replace(
        compiled,
        objects=(*objects, notes, thunks),
        key=hashlib.sha256(f"{compiled.key}{notes.parent.name}".encode()).hexdigest(),
        generated=compiled.generated + 1,
        wrapped=FUNCTIONS,
    )
