# SPDX-License-Identifier: Apache-2.0
"""Today's TVM as a client: its RPC over TCP, a tracker and a pipe, translated to what a device speaks."""
