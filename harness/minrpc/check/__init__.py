# SPDX-License-Identifier: Apache-2.0
"""`minrpc check`: build, boot, call, compare with numpy, time on the device's own clock."""
