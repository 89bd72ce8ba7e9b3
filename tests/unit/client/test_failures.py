# SPDX-License-Identifier: Apache-2.0
"""Links lose and damage bytes, devices reboot and die: each case has its error, and the next call works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from minrpc import (
    DeadlineError,
    Device,
    DialectError,
    EmulatorExitedError,
    FunctionNotFoundError,
    HarnessError,
    LinkClosedError,
    LinkError,
    NothingHeardError,
    RegisterError,
    RemoteError,
    SessionEndedError,
    SessionError,
    SessionTerminatedError,
)
from minrpc.client import SessionLink, Unowned
from minrpc.transport import memory_pair
from minrpc.wire.framing import START, CrcMismatch, Deframer, encode_frame
from minrpc.wire.session_layer import MessageType, encode_message

from tests.unit.client.conftest import TIMEOUT_S, Bench
from tests.unit.client.device_model import DeviceModel
from tests.unit.client.model_transport import ModelTransport


def works(bench: Bench) -> bool:
    return bool(bench.device.system_lib()["inc"](1) == 2)


def test_nothing_heard(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    start_again = Mock(return_value="")
    monkeypatch.setattr(type(bench.device.owner), "start_again", start_again)
    bench.transport.spoil = lambda _: b""
    with pytest.raises(NothingHeardError, match="not one byte came") as caught:
        bench.device.connect()
    assert caught.value.stage == "session"
    bench.transport.spoil = bytes
    assert works(bench)
    bench.transport.spoil = lambda _: b""
    with pytest.raises(NothingHeardError):
        bench.device.rpc.restart()
    start_again.assert_not_called()


def test_nothing_heard_after_a_call_that_hangs(bench: Bench) -> None:
    call = bench.device.system_lib()["inc"]
    bench.transport.spoil = lambda _: b""
    with pytest.raises(DeadlineError):
        call.with_timeout(TIMEOUT_S)(1)
    with pytest.raises(NothingHeardError, match="'call inc' has not answered: it may still run") as caught:
        bench.device.connect()
    assert caught.value.next_step == "reset the device, or open it again"
    bench.transport.spoil = bytes
    assert works(bench)


def test_a_call_that_is_interrupted_gives_the_device_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C nobody waits for the function, which may never return."""
    start_again = Mock(return_value="")
    monkeypatch.setattr(type(bench.device.owner), "start_again", start_again)
    call = bench.device.system_lib()["inc"]
    bench.transport.spoil = lambda _: b""
    with pytest.raises(DeadlineError):  # No function of the user's runs.
        bench.device.get_function("lost")
    start_again.assert_not_called()
    bench.transport.spoil = bytes
    call = bench.device.system_lib()["inc"]
    bench.transport.spoil = Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        call(1)
    start_again.assert_called_once_with()
    bench.transport.spoil = bytes
    with pytest.raises(SessionEndedError, match="it ended in 'call inc': interrupted"):
        call(1)
    bench.device.rpc.restart()
    with pytest.raises(SessionEndedError) as caught:
        call(1)
    assert caught.value.details == ()
    assert works(bench)


def test_a_slow_answer_outlasts_its_deadline(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of an answer come without a pause, as those of a long copy over a slow link."""
    array = bench.device.array(np.arange(100, dtype=np.int8))
    read = bench.transport.read

    def slowly(timeout_s: float) -> bytes:
        bench.transport.clock.wait(TIMEOUT_S / 4)
        return read(timeout_s)

    monkeypatch.setattr(bench.transport, "_chunk", 10)
    monkeypatch.setattr(bench.transport, "read", slowly)
    assert array.numpy().tolist() == list(range(100))


@pytest.mark.parametrize("resend", [False, True])
@pytest.mark.parametrize("data", [b"tick ", encode_frame(encode_message(0, MessageType.LOG, b"tick"))])
def test_a_device_that_talks_without_end_has_a_deadline(
    bench: Bench, data: bytes, resend: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.device.rpc.resend = resend
    call, reads = bench.device.system_lib()["inc"], iter(range(1000))

    def talk(timeout_s: float) -> bytes:
        assert next(reads, None) is not None, "it waits for ever"
        bench.transport.clock.wait(0.01)
        return data

    with monkeypatch.context() as patched:
        patched.setattr(bench.transport, "read", talk)
        with pytest.raises(DeadlineError) as caught:
            call(1)
        assert caught.value.stage == "call inc"
        sent = len(bench.transport.written)
        with pytest.raises(SessionError, match="model: "):
            bench.device.connect()
    assert len(bench.transport.written) - sent > 1, "a lost start is sent again"
    assert works(bench)


def test_bytes_but_no_answer(bench: Bench) -> None:
    bench.model.dead = True
    bench.transport.say(b"login: ")
    with pytest.raises(SessionError, match="bytes came, but no answer") as caught:
        bench.device.connect()
    assert "login:" in str(caught.value)
    assert not isinstance(caught.value, SessionTerminatedError)


def test_a_start_that_was_lost_is_sent_again_when_the_device_boots(bench: Bench) -> None:
    sent: list[bytes] = []

    def lose_the_first(data: bytes) -> bytes:
        sent.append(data)
        if len(sent) == 1:
            bench.transport.say(b"*** Booting ***\r\n" + bench.model.boot())
        return b"" if len(sent) == 1 else data

    bench.transport.spoil = lose_the_first
    assert bench.connect(30.0).system_lib()["inc"](1) == 2


def test_the_device_restarts_in_mid_session(bench: Bench) -> None:
    bench.device.connect()
    bench.transport.say(bench.model.boot() + b"*** Booting ***\r\n")
    with pytest.raises(SessionTerminatedError, match="it restarted") as caught:
        bench.device.system_lib()["inc"]
    assert "Booting" in str(caught.value)
    assert works(bench)


def test_a_device_that_can_not_restart_says_so_and_halts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_again = Mock(return_value="")
    monkeypatch.setattr(type(bench.device.owner), "start_again", start_again)
    bench.device.connect()
    bench.transport.say(b"halted: it can't restart without CONFIG_REBOOT\r\n" + bench.model.boot())
    with pytest.raises(SessionTerminatedError, match="before it answered: it halted"):
        bench.device.system_lib()["inc"]
    start_again.assert_called_once_with()
    bench.device.connect()
    bench.transport.say(bench.model.boot())
    with pytest.raises(SessionTerminatedError, match="before it answered: it restarted"):
        bench.device.system_lib()["inc"]
    start_again.assert_called_once_with()


def test_no_answer(bench: Bench) -> None:
    library = bench.device.system_lib()
    array = bench.device.array(np.zeros(1, np.int8))
    inc = library["inc"]
    bench.transport.spoil = lambda _: b""
    with pytest.raises(DeadlineError) as caught:
        inc(1)
    assert caught.value.stage == "call inc"
    assert caught.value.waited_for == "the answer"
    assert caught.value.limit == "call"
    assert "function.with_timeout(SECONDS)" in caught.value.next_step
    bench.transport.spoil = bytes
    assert works(bench)
    with pytest.raises(ValueError, match="session that has ended"):
        array.numpy()


def test_a_late_answer_is_not_taken_for_the_next(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    held: list[bytes] = []
    bench.model.mangle = lambda data: held.append(data) or b""  # type: ignore[func-returns-value]
    with pytest.raises(DeadlineError):
        inc(41)
    bench.model.mangle = bytes
    bench.transport.say(held[0])
    assert works(bench)


def with_wrong_crc(frame: bytes) -> bytes:
    """`frame` with a change in its last byte that is not part of an escape."""
    at = max(i for i in range(1, len(frame)) if START[0] not in (frame[i], frame[i - 1]))
    return frame[:at] + (b"\1" if frame[at] == 0 else b"\0") + frame[at + 1 :]


@given(st.binary(min_size=1))
def test_a_wrong_crc_is_wrong_whatever_the_frame_holds(message: bytes) -> None:
    events = Deframer().feed(with_wrong_crc(encode_frame(message)))
    assert [type(event) for event in events] == [CrcMismatch]


def test_an_answer_with_a_wrong_crc(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    bench.model.mangle = with_wrong_crc
    with pytest.raises(LinkError, match="the answer came damaged: CRC") as caught:
        inc(1)
    assert caught.value.counts["crc_errors"] == 1
    bench.model.mangle = bytes
    assert works(bench)


def test_damage_that_was_seen_before_is_shown_in_other_failures(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    log = encode_frame(encode_message(0, MessageType.LOG, b"hot"))
    bench.model.mangle = lambda data: log[:-1] + b"\0" + data
    assert inc(1) == 2
    bench.model.dead = True
    bench.model.mangle = bytes
    bench.device.call_timeout_s = TIMEOUT_S
    bench.transport.say(bench.model.boot())
    with pytest.raises(SessionTerminatedError) as caught:
        inc(1)
    assert "the link was damaged before: frames" in str(caught.value)
    assert "crc_errors 1" in str(caught.value)


def test_an_answer_cut_short(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    log = encode_frame(encode_message(0, MessageType.LOG, b"watchdog"))
    bench.model.mangle = lambda data: data[:-6] + log
    with pytest.raises(LinkError, match="a frame was cut short") as caught:
        inc(1)
    assert "watchdog" in str(caught.value)
    bench.model.mangle = bytes
    assert works(bench)


def test_an_answer_so_damaged_that_only_the_deadline_tells(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    bench.model.mangle = lambda data: data[:2] + b"\x07\0\0\0\0\0\0\xff\x00" + data[20:]
    with pytest.raises(LinkError, match="no answer came, but damaged frames did"):
        inc(1)
    bench.model.mangle = bytes
    assert works(bench)


@pytest.mark.parametrize(
    "other",
    [encode_message(0, MessageType.LOG, b"hot"), b"", b"hi"],
    ids=["log", "nothing", "less than a header"],
)
def test_damage_to_another_message_does_not_disturb_the_answer(
    make_bench: Callable[..., Bench], other: bytes
) -> None:
    """The damaged message comes in one read with the answer, or long before it."""
    for chunk in (65536, 1):
        bench = make_bench(chunk=chunk)
        inc = bench.device.system_lib()["inc"]
        bench.model.mangle = lambda data: with_wrong_crc(encode_frame(other)) + data
        assert inc(1) == 2
        assert bench.device.link_counters.crc_errors == 1


def test_an_answer_that_makes_no_sense(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    session = bench.transport.written[-1][6:8]
    bench.model.mangle = lambda _: encode_frame(session + b"\x10" + b"nonsense")
    with pytest.raises(DialectError, match="call inc: the answer can't be read"):
        inc(1)
    bench.model.mangle = bytes
    assert works(bench)


def test_the_far_end_is_gone(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    bench.transport.close()
    with pytest.raises(LinkClosedError, match="gone") as caught:
        inc(1)
    assert caught.value.stage == "call inc"


@pytest.mark.parametrize(("takes_s", "told"), [(0.0, True), (0.5, True), (1e9, False)])
def test_a_device_that_is_slow_to_read_is_told_of_the_end_but_holds_nobody_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, takes_s: float, told: bool
) -> None:
    bench.device.connect()
    clock, write = bench.transport.clock, bench.transport.write

    def slowly(data: bytes, timeout_s: float) -> None:
        clock.wait(min(takes_s, timeout_s))
        if takes_s > timeout_s:
            raise DeadlineError("the model takes nothing")
        write(data, timeout_s)

    before, began = len(bench.transport.written), clock.s
    with monkeypatch.context() as patch:
        patch.setattr(bench.transport, "write", slowly)
        bench.device.close()
    assert (len(bench.transport.written) > before) == told
    assert clock.s - began < 5.0
    assert bench.transport.closed


@pytest.mark.parametrize("can_reset", [True, False])
def test_a_device_without_a_restart_is_reset_from_outside(can_reset: bool) -> None:
    model = DeviceModel()
    del model.globals["tvm.testing.reset_server"]
    transport = ModelTransport(model)

    class Resetting(Unowned):
        """The owner of a device that it can start again."""

        @property
        def can_reset(self) -> bool:
            return can_reset

        def start_again(self) -> str:
            model.boot()
            return "it was started again"

    with Device(transport, Resetting(clock=transport.clock), session_timeout_s=TIMEOUT_S) as device:
        inc = device.system_lib()["inc"]
        if not can_reset:
            with pytest.raises(FunctionNotFoundError, match="reset_server"):
                device.reset()
            assert inc(1) == 2
            return
        device.reset()
        with pytest.raises(ValueError, match="session that has ended"):
            inc(1)
        assert device.system_lib()["inc"](1) == 2


class DeadEmulator(Unowned):
    """The owner of a device that has ended."""

    def diagnose(self, error: HarnessError, said: str = "") -> HarnessError:
        ended = EmulatorExitedError("the emulator ended with status 1", status=1)
        return ended.add_context(stage=error.stage)


def test_a_dead_emulator_is_named_as_the_cause() -> None:
    transport = ModelTransport(DeviceModel())
    owner = DeadEmulator(clock=transport.clock, console_text="Segmentation fault\n")
    device = Device(transport, owner, session_timeout_s=TIMEOUT_S, call_timeout_s=TIMEOUT_S)
    device.connect()
    transport.close()
    with pytest.raises(EmulatorExitedError, match="status 1") as caught:
        device.system_lib()["inc"]
    assert isinstance(caught.value.__cause__, LinkClosedError)
    assert "Segmentation fault" in str(caught.value)
    device.close()


def test_output_of_an_earlier_session_is_no_crash_of_this_one() -> None:
    heard = []

    class Listening(Unowned):
        """Notes the output that it is given, and the sessions that have begun."""

        def session_began(self) -> None:
            heard.append("session")

        def diagnose(self, error: HarnessError, said: str = "") -> HarnessError:
            heard.append(said)
            return error

    model = DeviceModel()
    transport = ModelTransport(model)
    owner = Listening(clock=transport.clock)
    device = Device(transport, owner, session_timeout_s=TIMEOUT_S, call_timeout_s=TIMEOUT_S)
    device.connect()
    for words in (b"fatal: one\n", b""):
        transport.say(words + model.boot())
        with pytest.raises(SessionTerminatedError):
            device.empty((4,), np.int8)
        assert device.system_lib()["inc"](1) == 2
    assert heard == ["session", "fatal: one\n", "session", "", "session"]
    device.close()


class Damaged(Unowned):
    """The owner of a device that crashes in its own code."""

    def diagnose(self, error: HarnessError, said: str = "") -> HarnessError:
        error.own_code = isinstance(error, SessionTerminatedError)
        return error


def test_a_crash_in_the_devices_own_code_names_the_call_before() -> None:
    """The previous call, or the failed call, may have damaged the device's memory."""
    model = DeviceModel()
    transport = ModelTransport(model)
    owner = Damaged(clock=transport.clock)
    device = Device(transport, owner, session_timeout_s=TIMEOUT_S, call_timeout_s=TIMEOUT_S)
    inc = device.system_lib()["inc"]
    assert inc(1) == 2
    transport.say(model.boot())
    with pytest.raises(SessionTerminatedError) as caught:
        device.empty((4,), np.int8)
    assert caught.value.details[-1] == "the last call that came back was inc"
    device.close()


def test_a_write_that_is_cut_short(bench: Bench) -> None:
    inc = bench.device.system_lib()["inc"]
    bench.transport.room = 10
    with pytest.raises(DeadlineError, match="did not come to its end") as caught:
        inc(1)
    assert "the device to take" in str(caught.value.waited_for)
    bench.transport.room = None
    assert works(bench)
    starts = [wire for wire in bench.transport.written if wire.startswith(b"\xfe\xff\xfd")]
    assert len(starts) == 2


def test_an_interrupted_call_gives_the_session_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    inc = bench.device.system_lib()["inc"]

    def interrupt(timeout_s: float) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bench.transport, "read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            inc(1)
    assert works(bench)
    assert bench.device.sessions == 2


def test_a_call_after_close_says_so(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    inc = bench.device.system_lib()["inc"]
    bench.device.close()
    with pytest.raises(LinkClosedError):
        inc(1)


DAMAGE = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6)


@settings(max_examples=80)
@given(DAMAGE, st.booleans())
def test_any_damage_gives_the_right_answer_or_an_error(damage: list[tuple[int, int]], answers: bool) -> None:
    bench = Bench()
    array = bench.device.array(np.arange(20, dtype=np.int8))

    def spoil(data: bytes) -> bytes:
        spoiled = bytearray(data)
        for at, mask in damage:
            spoiled[at % len(spoiled)] ^= mask
        return bytes(spoiled)

    if answers:
        bench.model.mangle = spoil
    else:
        bench.transport.spoil = spoil
    try:
        np.testing.assert_array_equal(array.numpy(), np.arange(20))
    except HarnessError as error:
        assert error.stage  # noqa: PT017 - either outcome is right
    bench.model.mangle = bench.transport.spoil = bytes
    assert works(bench)
    bench.device.close()


def test_the_first_of_two_answers_counts(bench: Bench) -> None:
    """The second answer, to no request, came in the same bytes."""
    inc = bench.device.system_lib()["inc"]
    held: list[bytes] = []

    def twice(data: bytes) -> bytes:
        held.append(data)
        return data

    bench.model.mangle = twice
    assert inc(1) == 2
    other = held[-1]
    bench.model.mangle = lambda data: data + other
    assert inc(41) == 42
    bench.model.mangle = bytes
    assert works(bench)


def test_what_was_lost_to_a_boot_that_no_request_met_says_so(bench: Bench) -> None:
    array = bench.device.array(np.zeros(4, np.int8))
    bench.transport.say(bench.model.boot() + encode_frame(encode_message(0, MessageType.LOG, b"ready")))
    bench.device.console.expect_exact("ready")
    with pytest.raises(SessionEndedError, match="the device ended it: it restarted"):
        array.numpy()


def test_a_session_that_began_forgets_the_call_that_hung(bench: Bench) -> None:
    """Otherwise a later silence would be blamed on that call."""
    hang = bench.device.system_lib()["inc"]
    bench.model.dead = True
    with pytest.raises(DeadlineError):
        hang(1)
    bench.model.dead = False
    bench.device.connect()
    bench.model.dead = True
    with pytest.raises(NothingHeardError) as caught:
        bench.device.rpc.restart()
    assert "it may still run" not in str(caught.value)


def test_an_object_of_an_older_session_is_refused_by_name(bench: Bench) -> None:
    array = bench.device.array(np.zeros(4, np.int8))
    bench.device.rpc.restart()
    with pytest.raises(ValueError, match="belonged to a session that has ended"):
        array.check(bench.device.rpc)


def test_a_copy_of_what_was_freed_does_not_go_directly(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    rpc = bench.device.rpc
    array = bench.device.array(np.zeros(4, np.int8))
    address = array.address
    monkeypatch.setattr(rpc.facts.direct, "freed", freed.append)
    array.free()
    rpc.ready()
    assert freed == [address]


@pytest.mark.parametrize("keep_open", [True, False])
def test_the_end_of_a_session_closes_a_link_of_its_own_only(keep_open: bool) -> None:
    near, _ = memory_pair()
    SessionLink(near, keep_open=keep_open).close()
    if keep_open:
        near.write(b"still open", 1.0)
        return
    with pytest.raises(LinkClosedError):
        near.write(b"closed", 1.0)


def test_sessions_on_another_link_are_counted_on(bench: Bench, make_bench: Callable[..., Bench]) -> None:
    """Otherwise objects of the first session would seem to belong to the second."""
    rpc = bench.device.rpc
    rpc.restart()
    rpc.restart()
    before = rpc.generation
    assert before >= 2
    other = make_bench()
    rpc.move_to(SessionLink(other.transport, keep_open=True))
    assert rpc.generation == before
    rpc.restart()
    assert rpc.generation == before + 1


@dataclass(frozen=True)
class Straying(Unowned):
    """The owner of a device whose functions access what it does not have."""

    told: list[HarnessError] = field(default_factory=list)

    def stray_accesses(self) -> HarnessError | None:
        return self.told.pop() if self.told else None


def test_accesses_to_nothing_are_those_of_one_request() -> None:
    transport = ModelTransport(DeviceModel())
    owner = Straying(clock=transport.clock)

    def stray() -> None:
        owner.told.append(RegisterError("C read 0x40013800", details=["C wrote 0x8"]))

    with Device(transport, owner, session_timeout_s=TIMEOUT_S, call_timeout_s=TIMEOUT_S) as device:
        inc, fail = device.system_lib()["inc"], device.system_lib()["fail"]
        for ask in (lambda: inc(1), lambda: device.empty((4,), np.int8)):
            stray()
            with pytest.raises(RegisterError, match=r"C read 0x40013800(?s:.*)stage: "):
                ask()
            assert inc(1) == 2
        stray()
        with pytest.raises(RemoteError, match="boom") as failed:
            fail()
        assert failed.value.details[-2:] == ("C read 0x40013800", "C wrote 0x8")
        assert inc(1) == 2
        stray()
        assert device.rpc.call(inc.handle, (1,), "look for a part", probing=True) == 2
        stray()
        transport.spoil = lambda _: b""
        with pytest.raises(DeadlineError):
            inc.with_timeout(TIMEOUT_S)(1)
        assert not owner.told
        transport.spoil = bytes
