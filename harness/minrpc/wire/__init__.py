# SPDX-License-Identifier: Apache-2.0
"""microTVM's serial protocol, sans I/O: bytes in, events out; no clock, no file, no thread.

Three layers, each a module that knows only the one below: `framing`, `session`, and the RPC messages
(`requests`, `replies`) over the packed `values` that they carry. `dtypes` translates numpy's types.
"""
