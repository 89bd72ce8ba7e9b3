# SPDX-License-Identifier: Apache-2.0
"""The state of a pytest run, created when a test needs a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from minrpc.errors import HarnessError
from minrpc.firmware.zephyr_boards import resolved
from minrpc.host.deadline import Deadline
from minrpc.pipeline import Selection, lacking, select
from minrpc.pipeline.selection import reason
from minrpc.plugin.option_names import option_of, values
from minrpc.plugin.output import progress_line
from minrpc.plugin.shared import SharedDevice
from minrpc.plugin.tally import Tally
from minrpc.plugin.twister import as_twister_says
from minrpc.targets import Target, find_platform, load_platforms
from minrpc.targets.options import Options, options_from
from minrpc.targets.project import find_project_file


class PytestRun:
    """The options, the devices that they select, and the outcomes.

    broken: the reason why no device can be used: an unreadable file of platforms. Only tests that need a
        device fail by it.
    misused: the error of a wrong command line; it ends the run before the first test.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.tally = Tally()
        self.broken: HarnessError | None = None
        self.misused: HarnessError | None = None
        self.selection = Selection((), {})
        self.options = Options()
        self._config = config
        try:
            self.options = as_twister_says(config, options_from(values(config)))
        except HarnessError as error:
            self.misused = error
        self.total = Deadline("test run", self.options.total_timeout_s)
        if self.misused is None:
            self._select()
        self.tally.left_out = dict(self.selection.left_out)

    def _select(self) -> None:
        if self.options.platforms_file is None:
            file = find_project_file(Path.cwd(), self._config.rootpath)
            self.options = replace(self.options, platforms_file=file)
        try:
            load_platforms(self.options.platforms_file)
        except HarnessError as error:
            self.broken = error
            return
        try:
            self.selection = select(self.options)
        except HarnessError as error:
            self.misused = error

    @property
    def failure(self) -> HarnessError | None:
        """The reason why there are no devices; None if there may be devices."""
        return self.misused or self.broken

    def shared_device(self, target: Target) -> SharedDevice:
        """The device shared by the tests of `target`."""
        file = option_of(self._config, "coverage")
        coverage = Path(file).absolute() if file else None
        every = bool(option_of(self._config, "coverage-all"))
        return SharedDevice(
            target, self.total, lambda text: progress_line(self._config, text), coverage, every
        )

    def await_turn(self, test: str) -> None:
        """Raise DeadlineError if the run's time is up: a quick test never checks the deadline itself."""
        if self.total.expired():
            raise Deadline(test, 0.0, total=self.total).error("the test's turn")

    def has_device(self, node: pytest.Item, pinned_to: str = "") -> None:
        """Notes that a test got its device, perhaps only the first of several on which it should run."""
        self.tally.wanted.add(node.nodeid)
        self.tally.had.add(node.nodeid)
        parameters = getattr(node, "callspec", None)
        alone = parameters is None or "minrpc_shared" not in parameters.params
        others = len(self.selection.targets) > 1 and node.nodeid not in self.tally.pinned
        if pinned_to and alone and others:
            self.tally.pinned.append(node.nodeid)

    def target(self, what: str | Target) -> Target:
        """The target of a platform's name, with this run's options. Skips the test if it can't run here."""
        if isinstance(what, Target):
            return what
        for target in self.selection.targets:
            if target.name == what:
                return target
        platform = resolved(find_platform(load_platforms(self.options.platforms_file), what))
        why = reason(platform, self.options.given.get("timing"), lacking(platform))
        if why:
            self.tally.left_out[what] = why
            pytest.skip(f"{what} can't run here: {why}")
        return self.options.target(platform)
