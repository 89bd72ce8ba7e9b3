# SPDX-License-Identifier: Apache-2.0
"""Neural networks on a device, compiled by TVM: `model_of` reads one, `load_model` loads it, `export_library`
writes it as C. The command is `minrpc model`.

The package uses names only that `minrpc` and its public modules export. Names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from minrpc_models.errors import ModelError
    from minrpc_models.models import LoadedModel, Model, ModelRun, export_library, load_model, model_of

__all__ = ["LoadedModel", "Model", "ModelError", "ModelRun", "export_library", "load_model", "model_of"]

COMMAND: Final = ("run a neural network, time its operators; or export it as C", "minrpc_models.command")
"""The command `model`, see `minrpc.extension`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "errors" if name.endswith("Error") else "models"
    return getattr(import_module(f"{__name__}.{home}"), name)
