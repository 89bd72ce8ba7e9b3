# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: the devices that tests share, and the plugin's reports."""
