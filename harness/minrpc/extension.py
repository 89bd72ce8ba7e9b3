# SPDX-License-Identifier: Apache-2.0
"""Names for packages that extend this program, beside those of `minrpc`, `minrpc.library` and `minrpc.tvm`.

A package adds a command by an entry point of the group "minrpc.commands". The entry point has the command's
name, and gives a pair: the purpose in a line, and the name of a module with `add_arguments(parser)` and
`main(arguments)`.
"""

from minrpc.cli.json_output import add_json_option, write_json
from minrpc.cli.selected import selected
from minrpc.cli.source_options import add_sandbox_option
from minrpc.cli.time import counter_names
from minrpc.firmware.cache import kept_file, scratch
from minrpc.host.deadline import Deadline
from minrpc.host.process import ask_tool, describe_status, output_tail, spawn, stop_group
from minrpc.library.archives import members
from minrpc.program.elf import Elf
from minrpc.reports.document import failure_json
from minrpc.reports.figures import check_target, new_figure, save_figure
from minrpc.reports.markdown import table
from minrpc.targets.options import Options, add_device_options, options_from
from minrpc.timing.comparison_text import counter_title
from minrpc.timing.units import count, quantity
from minrpc.wire.dtypes import BOOLEAN, DataType, to_dtype, to_numpy

__all__ = [
    "BOOLEAN",
    "DataType",
    "Deadline",
    "Elf",
    "Options",
    "add_device_options",
    "add_json_option",
    "add_sandbox_option",
    "ask_tool",
    "check_target",
    "count",
    "counter_names",
    "counter_title",
    "describe_status",
    "failure_json",
    "kept_file",
    "members",
    "new_figure",
    "options_from",
    "output_tail",
    "quantity",
    "save_figure",
    "scratch",
    "selected",
    "spawn",
    "stop_group",
    "table",
    "to_dtype",
    "to_numpy",
    "write_json",
]
