# SPDX-License-Identifier: Apache-2.0
"""Makes inputs to check if a function's time depends on its secrets: calls that differ only in secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.errors import ConfigurationError

LEAST: Final = 64
"""Smallest number of inputs to try."""

_SEED: Final = 20260
_ZEROS, _ONES, _OWN = "all zeros", "all ones", "given"
_SAME, _BIT, _RANDOM = "equal to another argument", "with one bit different", "random"
_FLIPS: Final = 24

SecretValue = npt.NDArray[Any] | np.generic
Call = tuple[str, list[Any]]


@dataclass(frozen=True)
class SecretInputs:
    """The arguments of each call, and the secrets among them.

    calls: the arguments of each call. kinds: number of inputs of each kind.
    """

    calls: Sequence[Sequence[Any]]
    secret: Sequence[str]
    public: Sequence[str]
    kinds: Counter[str]

    def __str__(self) -> str:
        kinds = ", ".join(
            kind if kind in (_ZEROS, _ONES) else f"{count} {kind}" for kind, count in self.kinds.items()
        )
        public = f"; public: {', '.join(self.public)}" if self.public else ""
        return f"tried: {kinds}; secret: {', '.join(self.secret)}{public}"


def secret_inputs(
    arguments: Sequence[Any],
    secret: Collection[int],
    *,
    own: Sequence[Sequence[Any]] = (),
    tries: int = LEAST,
    names: Sequence[str] = (),
) -> SecretInputs:
    """`tries` calls: secrets of zeros, of ones, your own, single-bit differences, full-range random.

    arguments: of one call: arrays, and numbers. A secret number needs a numpy type, which defines its bits.
    secret: indices of the secret arguments, from 0; all other arguments are the same in each call.
    own: further calls of the caller. names: of the arguments, for the report.

    A secret is also tried equal to each other argument of its size, and with one bit different: an early exit
    of a comparison is then at another place.

    Raises ConfigurationError if no argument is secret, or `tries` is below 64.
    """
    if not secret:
        raise ConfigurationError("no argument is secret", next_step="name the secret arguments")
    for place in secret:
        if not 0 <= place < len(arguments) or not isinstance(arguments[place], np.ndarray | np.generic):
            raise ConfigurationError(
                f"argument {place} can't be secret: it is neither an array nor a number of a numpy type",
                next_step="write numpy.uint8(0) for a number of 8 bits",
            )
    if tries < LEAST:
        raise ConfigurationError(f"at least {LEAST} inputs are tried, not {tries}")
    rng = np.random.default_rng(_SEED)
    places = sorted(secret)
    made = [(_OWN, list(given)) for given in own]
    made += _made(arguments, places, rng, max(tries - len(made), LEAST // 2))
    called = [names[place] if place < len(names) else str(place + 1) for place in range(len(arguments))]
    return SecretInputs(
        [[_plain(value) for value in call] for _, call in made],
        [called[place] for place in places],
        [name for place, name in enumerate(called) if place not in secret],
        Counter(kind for kind, _ in made),
    )


def _made(
    arguments: Sequence[Any], places: Sequence[int], rng: np.random.Generator, tries: int
) -> list[Call]:
    def call(values: Sequence[SecretValue]) -> list[Any]:
        return [
            values[places.index(place)] if place in places else value for place, value in enumerate(arguments)
        ]

    def random() -> list[SecretValue]:
        return [_of_bytes(arguments[place], rng.bytes(_size(arguments[place]))) for place in places]

    calls: list[Call] = []
    for kind, byte in ((_ZEROS, b"\0"), (_ONES, b"\xff")):
        calls.append((kind, call([_of_bytes(arguments[at], byte * _size(arguments[at])) for at in places])))
    base = random()
    calls.append((_RANDOM, call(base)))
    alike = list(_alike(arguments, places, base))
    calls += [(_SAME, call(values)) for values in alike]
    bases = [base, *alike]
    flips = min(_FLIPS, tries - len(calls) - LEAST // 4)
    for number in range(flips):
        calls.append((_BIT, call(_one_bit_other(bases[number % len(bases)], number // len(bases), rng))))
    while len(calls) < tries:
        calls.append((_RANDOM, call(random())))
    return calls


def _alike(
    arguments: Sequence[Any], places: Sequence[int], base: Sequence[SecretValue]
) -> Iterator[list[SecretValue]]:
    """The secrets `base`, with a secret set equal to another argument of its size."""
    for index, place in enumerate(places):
        for other, value in enumerate(arguments):
            if other == place or not isinstance(value, np.ndarray | np.generic):
                continue
            if other in places:
                value = base[places.index(other)]
            if _size(value) == _size(arguments[place]):
                values = list(base)
                values[index] = _of_bytes(arguments[place], value.tobytes())
                yield values


def _one_bit_other(values: Sequence[SecretValue], number: int, rng: np.random.Generator) -> list[SecretValue]:
    """The values with one bit of each secret changed: in its first, last or middle byte, or any."""
    changed: list[SecretValue] = []
    for value in values:
        data = bytearray(value.tobytes())
        if data:
            spread = [0, len(data) - 1, len(data) // 2]
            at = spread[number] if number < len(spread) else int(rng.integers(len(data)))
            data[at] ^= 1 << int(rng.integers(8))
        changed.append(_of_bytes(value, bytes(data)))
    return changed


def _size(value: SecretValue) -> int:
    return int(value.nbytes)


def _of_bytes(like: SecretValue, data: bytes) -> SecretValue:
    """A value of the type and shape of `like`; a bool takes only the lowest bit."""
    if like.dtype == np.bool_:
        data = bytes(byte & 1 for byte in data)
    made = np.frombuffer(data, np.uint8).view(like.dtype).reshape(like.shape)
    return made if isinstance(like, np.ndarray) else made[()]


def _plain(value: Any) -> Any:  # noqa: ANN401 - any argument
    """A number as a Python number; arrays unchanged."""
    return value.item() if isinstance(value, np.generic) else value
