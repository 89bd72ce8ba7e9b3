# SPDX-License-Identifier: Apache-2.0
"""Errors of models."""

from minrpc.errors import ConfigurationError


class ModelError(ConfigurationError):
    """A model can't run as straight code on a device."""

    default_next_step = "docs/models.md lists the operators that a model may have"
