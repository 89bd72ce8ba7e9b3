# SPDX-License-Identifier: Apache-2.0
"""For all tests."""

pytest_plugins = ["pytester"]
