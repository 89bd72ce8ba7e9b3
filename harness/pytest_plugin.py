# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin `minrpc`: options, the `device` fixture, the report's header and failure sections."""
