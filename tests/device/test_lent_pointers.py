# SPDX-License-Identifier: Apache-2.0
"""Pointers that C returns into a call's arguments: an error after a call has used that memory again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import (
    CFunctions,
    Device,
    GuardError,
    HarnessError,
    allow_kept_pointers,
    fakes,
    out,
    place,
    read,
    types,
    write,
)

SOURCE = """\
#include <stdint.h>
struct queue { int length; };
struct user { struct queue *queue; };

struct queue *create(struct queue *storage, int length) { storage->length = length; return storage; }
void create_at(struct queue *storage, int length, struct queue **made) { *made = create(storage, length); }
int length(struct queue *queue) { return queue->length; }
int sum(struct queue *queue, const int *more) { return queue->length + *more; }
int use(struct user *user) { return user->queue->length; }
int ask(void);
struct node { int value; struct node *next; };
struct node *search(struct node *node, int value)
{ while (node && node->value != value) node = node->next; return node; }
int value(struct node *node) { return node->value; }
void hal_send(const void *data, int size);
void send(const uint8_t *data, int size) { hal_send(data, size); }
void send_twice(const uint8_t *data, int size) { send(data, size); send(data, size); }
int run(void) { return ask(); }
void crash(void) { ((void (*)(void))4)(); }
const char *find(const char *text, char c) { while (*text && *text != c) text++; return text; }
"""


@pytest.fixture
def lib(device: Device, tmp_path: Path) -> CFunctions:
    (tmp_path / "queue.c").write_text(SOURCE)
    return device.load(tmp_path / "queue.c", fakes="zero")


def test_a_pointer_is_right_until_the_memory_is_used_again(lib: CFunctions) -> None:
    queue = lib.create(types(lib).queue(), 5)
    assert (lib.length(queue), read(lib, queue).length, lib.length(queue)) == (5, 5, 5)
    other = lib.create(types(lib).queue(), 7)
    assert lib.length(other) == 7
    over = "into the arguments of an earlier call of create"
    for call in (
        lambda: lib.length(queue),
        lambda: read(lib, queue),
        lambda: read(lib, queue, 4),
        lambda: write(lib, queue, b"abcd"),
        lambda: lib.use(types(lib).user(queue=queue)),
    ):
        with pytest.raises(GuardError, match=over):
            call()
    assert lib.length(other) == 7  # The refused calls sent nothing.


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, queue: lib.sum(queue, np.array([1], np.int32)),
        lambda lib, queue: lib.use(types(lib).user(queue=queue)),
        lambda lib, queue: place(lib, types(lib).user(queue=queue)),
    ],
    ids=["beside an array", "in a struct", "in an object that stays"],
)
def test_a_call_that_uses_the_memory_itself(
    lib: CFunctions, call: Callable[[CFunctions, object], object]
) -> None:
    queue = lib.create(types(lib).queue(), 5)
    with pytest.raises(GuardError, match=r"earlier call of create[\s\S]*minrpc\.place\(lib, value\)"):
        call(lib, queue)
    assert lib.length(queue) == 5


def test_a_pointer_that_out_gives(lib: CFunctions) -> None:
    queue = lib.create_at(types(lib).queue(), 5, out())
    lib.find("some text", "x")
    with pytest.raises(GuardError, match="earlier call of create_at"):
        lib.length(queue)


def test_a_pointer_into_the_stack_of_a_function_that_waits(lib: CFunctions) -> None:
    made: list[Any] = []

    def ask() -> int:
        made.append(lib.create(types(lib).queue(), 5))
        return int(lib.length(made[0]) + read(lib, made[0]).length)

    fakes(lib).ask.answer = ask
    assert lib.run() == 10
    calls: list[Callable[[], object]] = [lambda: lib.length(made[0]), lambda: read(lib, made[0])]
    for call in calls:
        with pytest.raises(GuardError, match="earlier call of create"):
            call()


def test_a_pointer_in_a_struct_that_is_read(lib: CFunctions) -> None:
    """It is as right as the pointer to the struct."""
    node = types(lib).node
    found = lib.search(node(1, node(2, node(3))), 2)
    last = read(lib, found).next
    assert (read(lib, last).value, read(lib, last).next) == (3, None)
    lib.value(node(7, node(8, node(9))))
    calls: list[Callable[[], object]] = [lambda: lib.value(last), lambda: read(lib, last)]
    for call in calls:
        with pytest.raises(GuardError, match="earlier call of search"):
            call()


def test_a_pointer_that_a_fake_got(lib: CFunctions) -> None:
    """A driver may keep the pointer meanwhile; after the next call other bytes lie there."""
    kept: list[Any] = []
    fakes(lib).hal_send.answer = lambda data, _: kept.append(data)
    lib.send_twice(b"hello", 5)
    assert [bytes(read(lib, data, 5)) for data in kept] == [b"hello"] * 2
    lib.send(b"world", 5)
    assert bytes(read(lib, kept[2], 5)) == b"world"
    for data in kept[:2]:
        with pytest.raises(GuardError, match="earlier call of send_twice"):
            read(lib, data, 5)


def test_a_pointer_into_a_call_that_a_fake_made(lib: CFunctions) -> None:
    """Its memory ends when the function that waits goes on, also for a later function that waits there."""
    kept: list[Any] = []

    def ask() -> int:
        if kept:
            with pytest.raises(GuardError, match="earlier call of send"):
                read(lib, kept[0], 5)
        lib.send(b"hello", 5)
        return int(bytes(read(lib, kept[-1], 5)) == b"hello")

    fakes(lib).hal_send.answer = lambda data, _: kept.append(data)
    fakes(lib).ask.answer = ask
    assert (lib.run(), lib.run(), len(kept)) == (1, 1, 2)


def test_objects_that_stay_keep_their_pointers(lib: CFunctions) -> None:
    queue = lib.create(place(lib, types(lib).queue()), 5)
    lib.find("some text", "x")
    assert lib.sum(queue, np.array([2], np.int32)) == 7
    assert lib.use(types(lib).user(queue=queue)) == 5


def test_a_pointer_of_a_session_that_has_ended(device: Device, lib: CFunctions, tmp_path: Path) -> None:
    queue = lib.create(types(lib).queue(), 5)
    with pytest.raises(HarnessError):
        lib.crash()
    again = device.load(tmp_path / "queue.c", fakes="zero")
    calls: list[Callable[[], object]] = [lambda: again.length(queue), lambda: read(again, queue)]
    for call in calls:
        with pytest.raises(GuardError, match="earlier call of create"):
            call()
    assert again.length(again.create(types(again).queue(), 7)) == 7


def test_memory_is_read_twice(lib: CFunctions) -> None:
    found = lib.find("0123456789", "2")
    assert [bytes(read(lib, found, 8)) for _ in range(2)] == [b"23456789"] * 2


def test_code_that_means_it_is_allowed(lib: CFunctions) -> None:
    allow_kept_pointers(lib)
    queue = lib.create(types(lib).queue(), 5)
    lib.create(types(lib).queue(), 7)  # It lies at the first queue's place.
    assert lib.length(queue) == 7
