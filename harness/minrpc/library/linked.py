# SPDX-License-Identifier: Apache-2.0
"""Libraries by name: linked into the firmware, or listed in minrpc.toml and loaded when used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol, TypedDict, Unpack
from weakref import WeakKeyDictionary, ref

from minrpc.client.session import Session
from minrpc.errors import ConfigurationError, LoadError
from minrpc.firmware import Firmware
from minrpc.firmware.build import LIBRARIES
from minrpc.host.files import Stamp, stamp_of
from minrpc.library.c_functions import CFunctions
from minrpc.library.c_library import CLibrary
from minrpc.library.compiling import PathText, Sources, check_frame, paths_of, words_of
from minrpc.library.fake_functions import Fake, FakeAnswer, FakeFunction
from minrpc.library.faking import ALL_OTHERS, FakesGiven, ReplacementsGiven, made_fake
from minrpc.library.linked_in import declared_in, packed_name
from minrpc.library.loading import Callbacks, firmware_of, load
from minrpc.library.stack_bound import CallGraph, linked_graph, stack_frames
from minrpc.library.stubs import declared_fake
from minrpc.library.thunks import linked_thunk, thunk_name
from minrpc.library.toolset import program_facts, toolset_of
from minrpc.program import read_program
from minrpc.program.c_types import Declarations, FunctionDeclaration
from minrpc.targets.flags import flags_at
from minrpc.targets.libraries import NamedLibrary, find_library
from minrpc.targets.target import require


class LoadFields(TypedDict, total=False):
    """Options for C files to load; each as in `Device.load`, except `linked`.

    linked: True for only linked into the firmware, False for only loaded; overrides minrpc.toml.
    """

    include: PathText | Sequence[PathText]
    flags: str | Sequence[str]
    defines: Mapping[str, object] | str | Sequence[str]
    libraries: PathText | Sequence[PathText]
    headers: PathText | Sequence[PathText]
    declare: str | Sequence[str]
    firmware: Firmware | None
    fakes: FakesGiven | None
    replace: ReplacementsGiven | None
    statics: bool
    linked: bool | None


class Load(Protocol):
    """The type of the fixture `load`."""

    def __call__(self, *sources: str | PathLike[str], **given: Unpack[LoadFields]) -> CFunctions:
        """The functions of C files, or of a library of minrpc.toml. Raises as `Device.load` does."""
        ...


# The library that gave a fake its answer.
_GIVEN_BY: Final[WeakKeyDictionary[object, ref[CLibrary]]] = WeakKeyDictionary()
# Flags of a calling convention; the thunks in the firmware have the firmware's own.
_CONVENTION: Final = re.compile(
    r"-(fpcc-struct-return|freg-struct-return|ffixed-|fcall-|mregparm=|mrtd$|mabi=|mfloat-abi=).*"
)


class LinkedLibrary(CLibrary):
    """C functions, variables and types that are part of the firmware: each function is an attribute."""

    def __init__(
        self, session: Session, name: str, firmware: Firmware, fakes: Mapping[str, FakeFunction]
    ) -> None:
        """fakes: Python functions by the C function's name."""
        functions, declarations = _declared(firmware, name)
        module = session.system_lib()
        facts = program_facts(firmware.elf)
        self._program, self._build_dir = read_program(firmware.elf), firmware.build_dir
        symbols = self._program.symbols
        callbacks = Callbacks(session, toolset_of(firmware), functions.values())
        super().__init__(
            session, name, functions, declarations, symbols, facts, module, callbacks.address, fakes=fakes
        )
        callbacks.library = self.calling
        for function in fakes.values():
            if function.name in symbols.addresses:  # A fake without a linked caller is never called.
                self._answer(function, symbols.addresses[function.name])

    def _answer(self, function: FakeFunction, address: int) -> None:
        """Let the fake answer the firmware's function at the address. Raises ConfigurationError if another
        library that is in use has given the function, of which the firmware has one, an answer."""
        answers = self.session.rpc.facts.fakes
        before = answers.get(address)
        giver = _GIVEN_BY.get(before) if before is not None else None
        other = giver() if giver is not None else None
        is_given = not (isinstance(function.answer, partial) and function.answer.func is _unanswered)
        if other is not None and other.name != self.name:
            if not is_given:
                return
            raise ConfigurationError(
                f"{other.name} and {self.name} are linked into the firmware, which has one {function.name}: "
                f"{other.name}, which is in use, would get the answers for {self.name}",
                next_step=f"load one of them: linked=False, or `linked = false` of [libraries.{self.name}]",
            )
        answers[address] = function
        if is_given:
            _GIVEN_BY[function] = ref(self)

    def thunk_frame(self, name: str) -> int:
        """By the compiler's report beside the object, if the build keeps it."""
        return self._thunk_frames.get(thunk_name("", self.packed_name(name)), 0)

    @cached_property
    def _thunk_frames(self) -> Mapping[str, int]:
        """By the thunks' C names without their number."""
        report = next(self._build_dir.rglob(f"{LIBRARIES}/thunks*.su"), Path())
        return {re.sub(r"\d+", "", name, count=1): size for name, size in stack_frames(report).items()}

    def stack_bound(self, name: str) -> int | None:
        """By the call graph beside the objects, if the build keeps it."""
        return self._graph.bound(self._declared[name].symbol)

    @cached_property
    def _graph(self) -> CallGraph:
        return linked_graph(self._build_dir, self.name)

    @property
    def check_frame(self) -> int:
        """By the compiler's report beside the thunks, if the build keeps it."""
        return check_frame(self._thunk_frames)

    def thunk_address(self, name: str) -> int | None:
        """By its symbol."""
        return self._thunks.get(linked_thunk(self.packed_name(name)))

    @cached_property
    def _thunks(self) -> Mapping[str, int]:
        """Addresses by symbols, among others those of thunks, which C can't name."""
        return {symbol.name: symbol.value for symbol in self._program.elf.symbols}

    def packed_name(self, name: str) -> str:
        """The name in the system library of the packed function that calls `name`."""
        return packed_name(self.name, name)


def named(
    session: Session, name: str, *, linked: bool | None = None, fakes: FakesGiven | None = None
) -> CLibrary:
    """The library `name` of minrpc.toml: the running firmware's, or loaded if the firmware lacks it.

    linked: True for only the firmware's, False for only loaded. fakes: as for `Device.load`.

    Raises LoadError, ConfigurationError, and as `load` does.
    """
    firmware = firmware_of(session)
    libraries = firmware.platform.named_libraries
    parts = linked_names(firmware)
    if linked is not False and name in parts:
        known = next((item for item in libraries if item.name == name), NamedLibrary(name, ()))
        _require_calls(known, firmware)
        return LinkedLibrary(session, name, firmware, _fakes(firmware, known, fakes))
    if linked and any(library.name == name for library in libraries):
        raise LoadError(
            f"the library {name} is not in the firmware of {session.name}",
            stage="load",
            next_step=f"leave out `linked = false` of [libraries.{name}], and --libraries-as loaded",
        )
    try:
        library = find_library(libraries, name)
        answers = _answers(library, fakes) or None
        return load(session, sources_of(library), firmware=firmware, fakes=answers)
    except ConfigurationError as error:
        error.details += (f"linked in: {', '.join(parts)}",) if parts else ()
        raise


def _require_calls(library: NamedLibrary, firmware: Firmware) -> None:
    """Raise ConfigurationError for a library whose functions are called otherwise than the firmware's."""
    flags = [flag for flag in library.flags if _CONVENTION.match(flag)]
    own = toolset_of(firmware).code_flags if flags else ()
    others = [flag for flag in flags if flag not in own]
    if others:
        raise ConfigurationError(
            f"{library.name} is compiled with {' '.join(others)}: its functions are called otherwise than "
            "those of the firmware that it is linked into",
            next_step="leave out the flag, or load the library: "
            f"`linked = false` of [libraries.{library.name}]",
        )


def _fakes(firmware: Firmware, library: NamedLibrary, given: FakesGiven | None) -> Mapping[str, FakeFunction]:
    """The fakes of a linked-in library. Raises ConfigurationError for a fake that the firmware lacks."""
    answers = _answers(library, given)
    for unknown in answers.keys() - {*library.fakes, ALL_OTHERS}:
        raise ConfigurationError(
            f"{library.name} is linked into the firmware without a fake of {unknown}",
            next_step=f"add it to fakes = [...] of [libraries.{library.name}], or load it: linked=False",
        )
    _, declarations = _declared(firmware, library.name)
    return {
        name: made_fake(declared_fake(declarations, library.name, name), answers[name])
        for name in library.fakes
    }


def _answers(library: NamedLibrary, given: FakesGiven | None) -> Mapping[str, FakeAnswer | Fake]:
    """The given answers; other fakes of the library raise an error when C calls them."""
    answers: Mapping[str, FakeAnswer | Fake] = {ALL_OTHERS: given} if isinstance(given, str) else given or {}
    others = {
        name: answers.get(ALL_OTHERS, partial(_unanswered, library.name, name)) for name in library.fakes
    }
    return {**others, **answers}


def _unanswered(library: str, fake: str, *_: object) -> NoReturn:
    raise ConfigurationError(
        f"{library} called {fake}, which has no answer",
        next_step=f'give a function in Python: fakes={{"{fake}": ...}} where the library is taken',
    )


def load_or_find(
    session: Session, directory: Path, files: Sequence[str | PathLike[str]], fields: LoadFields
) -> CLibrary:
    """The library that `files` names, or that minrpc.toml builds from exactly these files; else loads them.

    directory: base of relative paths. fields: as for `Device.load`, and `linked` as for `named`. Raises as
    these do.
    """
    given: dict[str, Any] = {**require(fields, LoadFields, "load() has no")}
    linked: bool | None = given.pop("linked", None)
    fakes: FakesGiven | None = given.pop("fakes", None)
    if len(files) == 1 and not Path(files[0]).suffix and not given:
        return named(session, str(files[0]), linked=linked, fakes=fakes)
    firmware: Firmware | None = given.pop("firmware", None)
    replaced: ReplacementsGiven | None = given.pop("replace", None)
    for key in ("include", "libraries", "headers"):
        if key in given:
            given[key] = [directory / path for path in paths_of(given[key])]
    if "flags" in given:
        given["flags"] = flags_at(words_of(given["flags"]), directory)
    sources = Sources.of([directory / file for file in files], **given)
    target = session.owner.target
    known = target.platform.named_libraries if target is not None else ()
    same = next((item for item in known if sources_of(item) == sources), None)
    if same is None or replaced is not None or (fakes is not None and not same.fakes):
        return load(session, sources, firmware=firmware, fakes=fakes, replaced=replaced)
    return named(session, same.name, linked=linked, fakes=fakes)


def linked_names(firmware: Firmware) -> list[str]:
    """The libraries that are part of the firmware."""
    directory = firmware.build_dir / LIBRARIES
    return sorted(path.name for path in directory.iterdir() if path.is_dir()) if directory.is_dir() else []


def sources_of(library: NamedLibrary) -> Sources:
    """The sources of a library of minrpc.toml, as `load` takes them."""
    return Sources.of(
        library.sources,
        include=library.include,
        flags=library.flags,
        defines=library.defines,
        libraries=library.libraries,
        headers=library.headers,
    )


def _declared(firmware: Firmware, name: str) -> tuple[Mapping[str, FunctionDeclaration], Declarations]:
    return _declared_in(firmware.build_dir / LIBRARIES / name, stamp_of(firmware.elf))


@lru_cache(maxsize=32)
def _declared_in(directory: Path, stamp: Stamp) -> tuple[Mapping[str, FunctionDeclaration], Declarations]:
    """The functions, and the other declarations; cached."""
    declarations, functions, _ = declared_in(directory)
    return functions, declarations
