# SPDX-License-Identifier: Apache-2.0
"""Code that arrives over the link: a module of the session.

The loaded block is a registry as a linker lays it out, whose functions lie in the test."""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct, pack

import pytest
from minrpc.wire.replies import RemoteException
from minrpc.wire.requests import CopyFromRemote, CopyToRemote, alloc_data, free_data
from minrpc.wire.values import Argument, Handle, Module, TypeCode

from tests.runtime.door import Door
from tests.runtime.host import I8, Host, free, tensor

U32_MAX, U64_MAX = (1 << 32) - 1, (1 << 64) - 1
GONE = "no live function"
ELSEWHERE = "another address"
MOST_FUNCTIONS = 4095


@dataclass(frozen=True)
class Image:
    """A block that the client uploads: 16 bytes, the registry, two functions, names.

    names_at, functions_at: where the registry says that they are, if not where they are.
    """

    block: int
    functions: tuple[int, ...]
    names: bytes = b"\2\0answer\0tick"
    size_of_names: int = 16
    names_at: int = 0
    functions_at: int = 0
    word: str = "Q"

    @property
    def registry(self) -> int:
        """Offset of the registry."""
        return 16

    @property
    def size(self) -> int:
        """Bytes of the block."""
        return 16 + self.layout.size + self.size_of_names

    @property
    def layout(self) -> Struct:
        """The registry and the functions."""
        return Struct(f"<{2 + len(self.functions)}{self.word}")

    def content(self) -> bytes:
        """The block's bytes."""
        functions = self.functions_at or self.block + 16 + 2 * Struct("<" + self.word).size
        names = self.names_at or self.block + 16 + self.layout.size
        table = self.layout.pack(names, functions, *self.functions)
        return bytes(16) + table + self.names.ljust(self.size_of_names, b"\0")


class Loader:
    """A device that takes code. readied: the size of the block that the port made executable last."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.readied = 0
        self.ready_result = 0
        self.answer = host.door.callback(self._answer)
        self.tick = self.registered(0)
        host.platform.code_ready = host.door.callback(self._ready)

    def _ready(self, _context: int, _block: int, size: int, *_: int) -> int:
        self.readied = size & U32_MAX
        return self.ready_result

    def _answer(self, _args: int, _codes: int, _count: int, value: int, code: int, resource: int) -> int:
        self.host.door.write(value, pack("<q", 42 if resource == 0 else 0))
        self.host.door.write(code, pack("<i", TypeCode.INT))
        return 0

    def registered(self, index: int) -> int:
        """The address of a function of host_registry."""
        door = self.host.door
        size = door.bits // 8
        registry = door.at("host_registry", "TVMFuncRegistry")
        return int.from_bytes(door.read(registry.funcs + size * index, size), "little")

    def image(self, block: int) -> Image:
        return Image(block, (self.answer, self.tick), word="Q" if self.host.door.bits == 64 else "I")

    def alloc(self, size: int) -> int:
        """A block for code."""
        return self.host.handle_of(self.host.call(self.host.find("minrpc.code_alloc"), size))

    def put(self, image: Image) -> None:
        """Writes the block."""
        self.host.write(image.block, image.content())

    def upload(self) -> int:
        """A block with a good image."""
        block = self.alloc(self.image(0).size)
        assert block % 64 == 0
        self.put(self.image(block))
        return block

    def load(self, block: int, offset: int = 16) -> Module:
        """The module in a block."""
        return Module(
            self.host.handle_of(self.host.call(self.host.find("minrpc.code_load"), Handle(block), offset))
        )

    def refusal(self, block: int, offset: int = 16) -> str:
        """The text with which a block is refused."""
        number = offset - (1 << 64) if offset >> 63 else offset
        return self.host.fails(self.host.find("minrpc.code_load"), Handle(block), number)

    def answers(self, module: Module) -> bool:
        """True if the module's function gives its result."""
        return self.host.call(self.host.function("answer", module)) == 42


def lookup(module: Module, name: str) -> tuple[Argument, ...]:
    """Arguments of a look-up."""
    return module, name, 0


@pytest.fixture
def loader(host: Host) -> Loader:
    return Loader(host)


def test_a_loaded_module_works_like_the_system_library(host: Host, loader: Loader) -> None:
    module = loader.load(loader.upload())
    assert loader.readied == loader.image(0).size
    assert loader.answers(module)
    assert host.call(host.function("tick", module)) is None
    assert host.functions.calls == 1
    get_function = host.find("tvm.rpc.server.ModuleGetFunction")
    assert host.call(get_function, *lookup(module, "nothing")) is None
    timing = host.evaluator("tick", module)
    assert isinstance(host.call(timing), bytes)
    # The module is no part of the system library.
    assert host.find(":answer") == 0
    host.free_handle(host.function("answer", module), TypeCode.FUNCTION)
    host.free_handle(timing, TypeCode.FUNCTION)
    host.free_handle(module.handle, TypeCode.MODULE)
    assert host.blocks() == 0


def test_what_is_freed_takes_its_functions_and_evaluators_along(host: Host, loader: Loader) -> None:
    block = loader.upload()
    module = loader.load(block)
    answer, timing = host.function("answer", module), host.evaluator("tick", module)
    other = loader.load(loader.upload())
    host.free_handle(module.handle, TypeCode.MODULE)
    assert GONE in host.fails(answer)
    assert GONE in host.fails(timing)
    assert GONE in host.error(free(answer, TypeCode.FUNCTION))
    assert "no live module" in host.error(free(module.handle, TypeCode.MODULE))
    get_function = host.find("tvm.rpc.server.ModuleGetFunction")
    assert "no live module" in host.fails(get_function, *lookup(module, "answer"))
    assert "no live module" in host.error(host.evaluating("answer", module))
    assert "no live tensor" in host.error(free_data(block))
    assert loader.answers(other)
    assert host.serves()


def test_code_restores_the_processor_before_it_is_freed(host: Host, loader: Loader) -> None:
    """A module's function undoes what its code has done to the processor."""
    unloads: list[int] = []
    unload = host.door.callback(lambda _args, _codes, count, *_: unloads.append(count & U32_MAX))

    def load_with_end() -> Module:
        image = replace(loader.image(loader.alloc(loader.image(0).size)), names=b"\1\0minrpc_unload")
        loader.put(replace(image, functions=(unload, loader.tick)))
        return loader.load(image.block)

    host.free_handle(load_with_end().handle, TypeCode.MODULE)
    assert unloads == [0]
    load_with_end()
    host.open(0x24)
    assert unloads == [0, 0]


def test_the_session_end_frees_it(host: Host, loader: Loader) -> None:
    answer = host.function("answer", loader.load(loader.upload()))
    loader.upload()
    host.open(0x24)
    assert host.blocks() == 0
    assert GONE in host.fails(answer)


def test_its_memory_can_be_read_and_written_at_any_offset(host: Host, loader: Loader) -> None:
    place = tensor(loader.upload(), 4, 4)
    loader.load(place.data)
    assert host.result(CopyToRemote(place, b"ZZZZ")) is None
    assert host.result(CopyFromRemote(place, 4)) == b"ZZZZ"
    assert host.call(host.function("tick"), place) is None


def test_a_block_that_is_not_loaded_is_freed_like_data(host: Host, loader: Loader) -> None:
    block = loader.upload()
    host.free(block)
    assert "no live tensor" in host.error(free_data(block))
    assert "no live handle" in loader.refusal(block)
    # A loaded function is freed with its module only.
    block = loader.upload()
    loader.load(block)
    assert "no live tensor" in host.error(free_data(block))
    assert "no live handle" in loader.refusal(block)


def test_what_is_no_registry_is_refused(host: Host, loader: Loader) -> None:
    block = loader.upload()
    image = loader.image(block)
    for offset in (1, 8, 0, image.size, image.size - 8, U32_MAX, 1 << 32, U64_MAX, 1 << 63):
        assert ELSEWHERE in loader.refusal(block, offset)
    assert "no live handle" in loader.refusal(host.alloc(64), 0)
    host.write(block, loader.image(block + 4096).content())
    assert ELSEWHERE in loader.refusal(block)
    assert ELSEWHERE in loader.refusal(loader.alloc(2), 0)


def test_no_room_and_no_permission(host: Host, loader: Loader) -> None:
    block = loader.upload()
    alloc = host.find("minrpc.code_alloc")
    assert "asked for 1073741824 bytes" in host.fails(alloc, 1 << 30)
    assert "asked for" in host.fails(alloc, -1)
    loader.ready_result = -1
    assert "executable" in loader.refusal(block)
    loader.ready_result = 0
    loader.load(block)
    # An arena that is full has no room for the module; the block stays the client's.
    block = loader.upload()
    while not isinstance(host.request(alloc_data(1, I8, 1)), RemoteException):
        pass
    assert "memory" in loader.refusal(block)
    host.free(block)


def test_a_port_may_have_memory_of_its_own_for_code(host: Host, loader: Loader) -> None:
    memory = host.door.aligned(4096)
    host.config.code, host.config.code_size = memory, 4096
    host.reboot()
    block = loader.upload()
    assert memory <= block < memory + 4096
    module = loader.load(block)
    assert loader.answers(module)
    assert host.blocks("code") == 1
    assert "of 4096" in host.fails(host.find("minrpc.code_alloc"), 4096)
    host.free_handle(module.handle, TypeCode.MODULE)
    assert host.blocks("code") == 0
    loader.load(loader.upload())
    host.free(loader.upload())
    host.open(0x24)
    assert host.blocks("code") == host.blocks() == 0


def test_code_begins_an_emulators_page_while_one_is_free(host: Host, loader: Loader) -> None:
    memory = -(-host.door.aligned(33 * 1024) // 1024) * 1024
    for pages, aligned in ((32, 31), (31, 0)):
        host.config.code, host.config.code_size, host.config.code_page = memory, pages * 1024, 1024
        host.reboot()
        blocks = [loader.alloc(600) for _ in range(32)]
        assert sum(block % 1024 == 0 for block in blocks) >= aligned
        assert {block % 1024 == 0 for block in blocks[:aligned]} <= {True}
        assert {block % 64 for block in blocks} == {0}
        assert blocks[aligned] % 1024


def test_handles_of_what_is_gone_are_not_given_out_again_soon(host: Host) -> None:
    """Handles go round after 2^18 objects; a handle in use is left out."""
    kept, first = host.evaluator("tick"), host.evaluator("tick")
    host.free_handle(first, TypeCode.FUNCTION)
    following = host.evaluator("tick")
    assert following not in (first, kept)
    host.free_handle(following, TypeCode.FUNCTION)
    host.server.object_serial = (kept - 1) & 0x3FFFFFFF
    assert host.evaluator("tick") == first
    host.server.object_serial = 0xFFFFF000
    for _ in range(3):
        following = host.evaluator("tick")
        assert following >= 0xC0000000
        assert isinstance(host.call(following), bytes)


def test_functions_get_their_resource(host: Host) -> None:
    assert host.call(host.function("resource")) == 1


def test_code_from_before_a_layout_is_given_back(host: Host, loader: Loader) -> None:
    """Code loaded among the arrays is given back, also when code has had memory of its own since."""
    module = loader.load(loader.upload())
    at = host.config.arena
    assert host.call(host.find("minrpc.layout"), Handle(at), 16384, Handle(at + 16384), 16384) == 1
    host.free_handle(loader.load(loader.upload()).handle, TypeCode.MODULE)
    assert host.blocks("code") == 0
    assert loader.answers(module)
    host.free_handle(module.handle, TypeCode.MODULE)
    assert host.blocks() == 0
    assert host.arena.used == 0


def test_nothing_is_freed_by_a_wrong_handle(host: Host, loader: Loader) -> None:
    """An object is freed by the handle and the type that it was given out with, and by no other."""
    module, timing = loader.load(loader.upload()).handle, host.evaluator("tick")
    used = host.arena.used
    for handle, kind, text in [
        (module + 1, TypeCode.MODULE, "no live module"),
        (module, TypeCode.FUNCTION, GONE),
        (module + 3, TypeCode.FUNCTION, GONE),
        (timing - 1, TypeCode.FUNCTION, GONE),
        (timing + 1, TypeCode.FUNCTION, GONE),
        (timing, TypeCode.MODULE, "no live module"),
        (timing - 1, TypeCode.MODULE, "no live module"),
        (module, TypeCode.NDARRAY, "no live tensor"),
        (module, TypeCode.HANDLE, "bad type code 3"),
    ]:
        assert text in host.error(free(handle, kind))
    # A function is freed with its module.
    host.free_handle(module + 1, TypeCode.FUNCTION)
    assert host.arena.used == used
    assert isinstance(host.call(timing), bytes)
    assert host.call(module + 1) == 42


@pytest.mark.parametrize("names", [b"\0\0", b"\0A"])
def test_a_registry_without_functions(host: Host, loader: Loader, names: bytes) -> None:
    """Without functions a registry has a count, in either form."""
    block = loader.upload()
    # Memory in which a count would go on.
    used = host.alloc(8192)
    host.door.write(used, b"\1" * 8192)
    host.free(used)
    image = loader.image(block)
    end = block + image.size
    loader.put(replace(image, names=names.rjust(16, b"\0"), names_at=end - 2, functions_at=block))
    module = loader.load(block)
    get_function = host.find("tvm.rpc.server.ModuleGetFunction")
    assert host.call(get_function, *lookup(module, "answer")) is None
    assert host.call(get_function, *lookup(module, "")) is None
    assert GONE in host.fails(module.handle + 1)
    assert host.serves()


def test_a_registry_may_be_the_end_of_its_block(host: Host, loader: Loader) -> None:
    form = f"<2{loader.image(0).word}"
    functions = pack(form, loader.answer, loader.tick)
    block = loader.alloc(16 + 2 * len(functions))
    registry = pack(form, block, block + 16)
    host.write(block, b"\2\0answer\0tick".ljust(16, b"\0") + functions + registry)
    assert loader.answers(loader.load(block, 16 + len(functions)))


def test_a_registry_whose_count_is_a_byte(host: Host, loader: Loader) -> None:
    """In the form of TVM up to v0.8, the count is one byte."""
    block = loader.upload()
    loader.put(replace(loader.image(block), names=b"\2answer\0tick"))
    module = loader.load(block)
    assert loader.answers(module)
    assert host.call(host.function("tick", module)) is None
    assert GONE in host.fails(module.handle + 3)


def test_a_registry_lies_in_its_block_as_a_whole(host: Host, loader: Loader) -> None:
    """A registry that ends beyond the block, by a byte or by far, is refused."""
    block = loader.upload()
    good = loader.image(block)
    end, word = block + good.size, host.door.bits // 8
    most = (1 << host.door.bits) - 1
    names = [
        b"\2\0answer\0".ljust(16, b"x"),  # the last name has no NUL
        b"\2\0".ljust(16, b"x"),  # nor has any
        b"\6\0answer\0tick",  # more names than there are
        b"\5\1answer\0tick",
    ]
    for bad in [
        *[replace(good, names=text) for text in names],
        # The count's second byte is outside, and so on.
        *[replace(good, names_at=at) for at in (end - 1, end, block - 1, 8, most)],
        # Half of the last address is outside, and so on.
        *[
            replace(good, functions_at=at)
            for at in (end - 3 * word // 2, end - word, end, block - word, 8, most & ~7)
        ],
    ]:
        loader.put(bad)
        assert ELSEWHERE in loader.refusal(block)
        assert loader.readied == 0
    loader.put(good)
    assert loader.answers(loader.load(block))
    assert host.serves()


@pytest.mark.parametrize("count", [MOST_FUNCTIONS, MOST_FUNCTIONS + 1])
def test_a_registry_has_as_many_functions_as_there_are_handles(door: Door, count: int) -> None:
    """An object has 4095 handles for functions: with more, the next object would be meant."""
    host = Host(door, arena=1 << 17)
    loader = Loader(host)
    names = pack("<H", count) + b"a\0" * (count - 1) + b"b\0"
    many = replace(
        loader.image(0),
        functions=(*[loader.tick] * (count - 1), loader.answer),
        names=names,
        size_of_names=len(names),
    )
    image = replace(many, block=loader.alloc(many.size))
    host.door.write(image.block, image.content())
    if count > MOST_FUNCTIONS:
        assert ELSEWHERE in loader.refusal(image.block)
    else:
        module = loader.load(image.block)
        last = host.function("b", module)
        assert last == module.handle + MOST_FUNCTIONS
        assert host.call(last) == 42
    host.stop()


def test_what_overwrites_a_loaded_table_changes_nothing(host: Host, loader: Loader) -> None:
    """Once a module is there the block's table is no longer read: overwritten by a copy, or by a function, it
    changes neither look-ups nor calls nor the names in texts."""
    block = loader.upload()
    module = loader.load(block)
    answer, timing = host.function("answer", module), host.evaluator("tick", module)
    get_function = host.find("tvm.rpc.server.ModuleGetFunction")
    for value in range(0, 256, 51):
        host.write(block, bytes([value]) * loader.image(block).size)
        assert host.function("answer", module) == answer
        assert host.call(answer) == 42
        assert host.call(host.function("tick", module)) is None
        assert host.call(get_function, *lookup(module, "nothing")) is None
        assert isinstance(host.call(timing), bytes)
        assert GONE in host.fails(module.handle + 3)
        host.free_handle(host.evaluator("answer", module), TypeCode.FUNCTION)
    host.free_handle(module.handle, TypeCode.MODULE)
    assert host.blocks() == 0


def test_a_loaded_functions_failure_has_its_name(host: Host, loader: Loader) -> None:
    """The name in the text of a failure is of the copied table, too."""
    block = loader.upload()
    loader.put(replace(loader.image(block), functions=(loader.answer, loader.registered(1))))
    module = loader.load(block)
    host.write(block, b"\xff" * loader.image(block).size)
    host.functions.fail_at = 1
    assert "tick returned -1, no message" in host.fails(host.function("tick", module))
