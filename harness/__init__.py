"""Build, boot, call and time functions on microTVM-compatible devices.

SPDX-License-Identifier: Apache-2.0
"""
