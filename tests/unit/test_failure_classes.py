# SPDX-License-Identifier: Apache-2.0
"""Every class of failure, and the test that provokes it: each class must have a test.

A new exception in `minrpc` needs a row here, and a next step that a user can take.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from minrpc import HarnessError, errors

TESTS = Path(__file__).parent.parent

PROVOKED_BY: dict[type[HarnessError], str] = {
    errors.ConfigurationError: "unit/targets/test_options.py::test_what_does_not_fit_together",
    errors.BuildError: "unit/firmware/test_build.py::"
    "test_the_compilers_first_error_is_shown_and_the_next_build_works",
    errors.ToolchainMissingError: "unit/firmware/test_toolchain.py::test_missing_compilers_name_the_command",
    errors.ZephyrMissingError: "unit/firmware/test_zephyr_workspace.py::test_none_says_how_to_get_one",
    errors.QemuMissingError: "unit/running/test_start.py::test_no_qemu",
    errors.EmulatorExitedError: "device/test_death.py::test_a_killed_device_is_named",
    errors.NothingHeardError: "unit/client/test_failures.py::test_nothing_heard",
    errors.ResetError: "unit/plugin/test_boards.py::test_a_reset_that_fails",
    errors.SessionError: "unit/client/test_failures.py::test_bytes_but_no_answer",
    errors.SessionTerminatedError: "device/test_death.py::test_a_function_that_faults_says_what_and_where",
    errors.SessionEndedError: "device/test_c_deaths.py::test_a_loop_without_end",
    errors.RemoteError: "device/test_errors.py::test_a_wrong_argument_is_named_with_what_was_expected",
    errors.FunctionNotFoundError: "unit/client/test_device.py::test_functions_that_are_not_there",
    errors.DeviceMemoryError: "device/test_errors.py::test_allocation_larger_than_the_memory",
    errors.ClockError: "device/test_disturbed.py::test_a_changed_clock_is_named_and_put_back",
    errors.LinkError: "unit/client/test_failures.py::test_an_answer_with_a_wrong_crc",
    errors.LinkClosedError: "unit/client/test_failures.py::test_the_far_end_is_gone",
    errors.PortGoneError: "unit/transport/test_serial_port.py::test_unplugged_in_use",
    errors.PortDeniedError: "unit/transport/test_urls.py::test_a_port_without_permission_names_the_group",
    errors.PortBusyError: "unit/transport/test_serial_port.py::test_the_holder_is_named",
    errors.AmbiguousBoardError: "unit/transport/test_serial_port.py::test_several_boards_are_listed",
    errors.FlashError: "unit/firmware/test_flash.py::test_the_runners_last_lines_are_shown",
    errors.DialectError: "unit/client/test_failures.py::test_an_answer_that_makes_no_sense",
    errors.TimerError: "unit/client/test_time_evaluator.py::test_a_timer_that_is_at_fault",
    errors.DeadlineError: "device/test_death.py::test_a_function_that_never_returns_is_given_up",
    errors.CompileError: "device/test_c_functions.py::test_a_compilers_error_has_the_files_own_line",
    errors.LinkerError: "device/test_c_functions.py::test_what_does_not_link",
    errors.UndefinedSymbolsError: "device/test_c_functions.py::test_symbols_that_are_nowhere",
    errors.LoadError: "device/test_c_functions.py::test_a_device_whose_firmware_is_not_known",
    errors.RegisterError: "device/test_registers.py::test_what_no_model_covers_is_an_error_with_its_line",
    errors.GuardError: "device/test_c_functions.py::test_writing_outside_of_an_array_is_found",
    errors.AccessError: "device/test_access_check.py::test_an_access_outside_is_told_and_the_next_call_works",
    errors.ProgramFileError: "unit/program/test_damage.py::test_a_cut_file",
    errors.NoSuchBoardError: "unit/firmware/test_zephyr_boards.py::test_a_board_that_zephyr_has_not",
    errors.ModuleError: "unit/library/test_tvm_modules.py::test_what_is_no_module",
    errors.BoardBusyError: "unit/plugin/test_board_rack.py::test_boards_of_another_process_are_waited_for",
    errors.WrongBoardError: "unit/client/test_board_identity.py::test_another_board_is_refused",
    errors.BoardLostError: "unit/tuning/test_boards.py::"
    "test_a_candidate_that_ends_the_last_board_has_its_verdict",
    errors.MonitorError: "unit/running/test_start.py::"
    "test_what_qemu_refuses_is_an_error_and_its_monitor_goes_on",
}

# A base class: each kind of missing program has a class of its own.
BASES = {errors.MissingError}


def failures() -> set[type[HarnessError]]:
    classes = (var for var in vars(errors).values() if inspect.isclass(var))
    return {item for item in classes if issubclass(item, HarnessError) and item is not HarnessError}


def test_every_class_has_its_row() -> None:
    assert failures() - BASES == set(PROVOKED_BY)


def test_every_class_is_in_minrpc_errors() -> None:
    names = {failure.__name__ for failure in failures()} | {"HarnessError"}
    package = Path(errors.__file__).parent
    elsewhere = [
        f"{file.name}: {node.name}"
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and file != Path(errors.__file__)
        if any(ast.unparse(base).rpartition(".")[2] in names for base in node.bases)
    ]
    assert elsewhere == []


@pytest.mark.parametrize("failure", PROVOKED_BY, ids=lambda failure: failure.__name__)
def test_the_test_is_there_and_expects_it(failure: type[HarnessError]) -> None:
    path, name = PROVOKED_BY[failure].split("::")
    functions = {
        node.name: ast.unparse(node)
        for node in ast.walk(ast.parse((TESTS / path).read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert "raises" in functions[name]
    assert failure.__name__ in functions[name]


@pytest.mark.parametrize("failure", PROVOKED_BY, ids=lambda failure: failure.__name__)
def test_it_says_the_next_step(failure: type[HarnessError]) -> None:
    report = str(failure("it went wrong"))
    assert report.startswith("it went wrong")
    step = report.splitlines()[-1]
    assert step.startswith("  next: ")
    assert len(step) > 30
