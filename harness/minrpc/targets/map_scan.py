# SPDX-License-Identifier: Apache-2.0
"""A hardware map of the connected USB serial ports: new, or an earlier map with its boards at their ports."""

from __future__ import annotations

import os
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from serial.tools.list_ports_common import ListPortInfo, numsplit

from minrpc.targets.hardware_map import NO_IDS, runner_of
from minrpc.targets.map_file import MapLoader
from minrpc.transport.ports import by_id, interface_in, interface_of, matches

UNKNOWN: Final = "unknown"
_BOARD: Final = {
    "connected": True,
    "id": UNKNOWN,
    "platform": UNKNOWN,
    "product": UNKNOWN,
    "runner": UNKNOWN,
}
_ANEW: Final = (
    "the map is written anew, without its comments, anchors and line breaks: "
    "values of it can't be changed in their places"
)


@dataclass(frozen=True, slots=True)
class MapScan:
    """A map's text; its boards without a name; lines for a person."""

    text: str
    unnamed: tuple[str, ...]
    notes: tuple[str, ...]


def scan(
    ports: Sequence[ListPortInfo],
    text: str = "",
    entries: Sequence[dict[str, Any]] = (),
    link: str = "",
    probe: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda entry: {},
) -> MapScan:
    """The map of `ports`, and of the `entries` of an earlier map's `text`.

    An entry is found again by its ids. It keeps all but its `connected` and, if its port has another name
    now, `serial`; the text also keeps its comments. Entries that are at no USB port of this machine, such as
    one at a URL, stay as they are.

    link: one more board, at a port of any kind. probe: gives further values of a connected board's entry.
    """
    usb = sorted(port for port in ports if port.vid is not None)
    changes, taken, notes = _places(entries, usb)
    new = [_entry(port) for port in usb if _device(port) not in taken]
    if link and not any(_is_at(entry, link) for entry in [*entries, *new]):
        new.append({**_BOARD, "serial": link})
    for entry, change in zip(entries, changes, strict=True):
        if (entry | change).get("connected") is True:
            change |= probe(entry | change)
    new = [entry | probe(entry) for entry in new]
    wanted = [entry | change for entry, change in zip(entries, changes, strict=True)] + new
    names = [str(entry.get("serial")) for entry in wanted if entry.get("platform") == UNKNOWN]
    written, anew = _written(text, entries, changes, new, wanted)
    if anew:
        notes.append(_ANEW)
    return MapScan(written, tuple(names), tuple(notes))


def _entry(port: ListPortInfo) -> dict[str, Any]:
    """The entry of a board that no map has."""
    product = port.product or port.description or UNKNOWN
    return _BOARD | {
        "id": port.serial_number or UNKNOWN,
        "product": product,
        "runner": runner_of(product) or UNKNOWN,
        "serial": _link(port),
    }


def _is_at(entry: Mapping[str, Any], link: str) -> bool:
    serial = str(entry.get("serial") or "")
    return serial == link or ("://" not in link and os.path.realpath(serial) == os.path.realpath(link))


def _link(port: ListPortInfo) -> str:
    return by_id(port) or str(port.device)


def _device(port: ListPortInfo) -> tuple[str, str]:
    """The USB device of a port, the same for each of its interfaces."""
    place = (port.location or "").partition(":")[0]
    return port.serial_number or "", place or ("" if port.serial_number else port.device)


def _places(
    entries: Sequence[Mapping[str, Any]], ports: Sequence[ListPortInfo]
) -> tuple[list[dict[str, Any]], set[tuple[str, str]], list[str]]:
    """Each entry's change, the devices that have entries, and notes."""
    changes: list[dict[str, Any]] = [{} for _ in entries]
    taken: set[tuple[str, str]] = set()
    notes = []
    several: dict[tuple[ListPortInfo, ...], list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        serial = str(entry.get("serial") or "")
        if entry.get("serial_pty") or "://" in serial:
            continue
        here = [port for port in ports if _is_named(port, serial)]
        fitting = [port for port in here if _may_be(port, entry)] or _by_ids(entry, ports)
        if not fitting and not here and os.path.exists(serial):
            continue  # A port without USB, or a link of `minrpc serve`.
        taken |= {_device(port) for port in fitting}
        if len(fitting) > 1:
            several[tuple(fitting)].append(number)
            continue
        changes[number] = _change(serial, fitting[0] if fitting else None)
        if here and not fitting:
            about = f"{here[0].product} {here[0].serial_number}"
            notes.append(f"{entry.get('id')} is not connected: at {serial} is {about} now")
    for among, numbers in several.items():
        before = {number: str(entries[number].get("serial") or f"#{number}") for number in numbers}
        order = sorted(dict.fromkeys(before.values()), key=numsplit)
        alike = len({_device(port) for port in among}) == 1 and len(order) == len(among)
        for number in numbers:
            changes[number] = _change(before[number], among[order.index(before[number])] if alike else None)
        if not alike:
            names = ", ".join(map(_link, among))
            about = f"{entries[numbers[0]].get('id')} is at {len(among)} ports ({names})"
            notes.append(f"{about}: write one for serial: of its entry, and connected: true")
    return changes, taken, notes


def _change(serial: str, port: ListPortInfo | None) -> dict[str, Any]:
    if port is None:
        return {"connected": False}
    return {"connected": True, "serial": serial if _is_named(port, serial) else _link(port)}


def _is_named(port: ListPortInfo, serial: str) -> bool:
    """True if `serial`, a path or a serial number, names the port."""
    same = bool(serial) and os.path.realpath(serial) == os.path.realpath(port.device)
    return same or ("/" not in serial and bool(serial) and matches(port, serial))


def _ids(entry: Mapping[str, Any]) -> set[Any]:
    return {entry.get("id"), entry.get("probe_id")} - NO_IDS


def _may_be(port: ListPortInfo, entry: Mapping[str, Any]) -> bool:
    """False if the entry's path is one that the system numbers, and the port is another board's."""
    numbered = entry.get("serial") == port.device and port.serial_number
    return not numbered or not _ids(entry) or port.serial_number in _ids(entry)


def _by_ids(entry: Mapping[str, Any], ports: Sequence[ListPortInfo]) -> list[ListPortInfo]:
    """The ports of the entry's board, of its interface and product if these decide."""
    interface = interface_in(str(entry.get("serial") or ""))
    fitting = [port for port in ports if port.serial_number in _ids(entry)]
    if interface:
        fitting = [port for port in fitting if interface_of(port) in (interface, "")]
    return [port for port in fitting if port.product == entry.get("product")] or fitting


def _written(
    text: str,
    entries: Sequence[dict[str, Any]],
    changes: Sequence[dict[str, Any]],
    new: Sequence[dict[str, Any]],
    wanted: Sequence[dict[str, Any]],
) -> tuple[str, bool]:
    """The wanted map: `text` with changed values, or all anew where the text can't be changed that way.

    True if it is all anew.
    """
    if not entries:
        return _dumped(wanted), False
    root = yaml.compose(text, yaml.SafeLoader)
    edits = set(_added(text, root, new)) if new else set()
    for node, entry, change in zip(root.value, entries, changes, strict=True):
        edits |= set(_edits(text, node, entry, change))
    edited, line_end = text, "\r\n" if "\r\n" in text else "\n"
    for first, last, value in sorted(edits, reverse=True):
        edited = edited[:first] + value.replace("\n", line_end) + edited[last:]
    try:
        in_place = yaml.load(edited, MapLoader) == wanted
    except yaml.YAMLError:
        in_place = False
    return (edited, False) if in_place else (_dumped(wanted), True)


def _dumped(entries: Sequence[dict[str, Any]]) -> str:
    return str(yaml.safe_dump(list(entries), sort_keys=False, allow_unicode=True))


def _in_a_line(value: object) -> str:
    """The value as it can stand anywhere in a map's text."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text.removesuffix("...\n").strip()


def _added(
    text: str, root: yaml.SequenceNode, new: Sequence[dict[str, Any]]
) -> Iterator[tuple[int, int, str]]:
    """The range behind the last entry, and the new entries."""
    if root.flow_style:
        end = root.value[-1].end_mark.index
        yield end, end, "".join(f", {_in_a_line(entry)}" for entry in new)
        return
    end = root.end_mark.index
    added = textwrap.indent(_dumped(new), " " * root.start_mark.column)
    yield end, end, added if text[:end].endswith("\n") else f"\n{added}"


def _edits(
    text: str, node: yaml.MappingNode, entry: Mapping[str, Any], change: Mapping[str, Any]
) -> Iterator[tuple[int, int, str]]:
    """Ranges of the text, and their new values; a key that is not there becomes the first."""
    places = {key.value: (key, value) for key, value in node.value}
    for name, value in change.items():
        if entry.get(name) == value:
            continue
        new = _in_a_line(value)
        if name in places:
            _, old = places[name]
            first, last = old.start_mark.index, old.end_mark.index
            # A folded text ends with its last line.
            line_end = "\n" if text[first:last].endswith("\n") else ""
            yield first, last, f" {new}" if first == last else f"{new}{line_end}"
        else:
            first = node.value[0][0].start_mark
            after = ", " if node.flow_style else f"\n{' ' * first.column}"
            yield first.index, first.index, f"{name}: {new}{after}"
