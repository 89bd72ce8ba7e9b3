# SPDX-License-Identifier: Apache-2.0
"""What stands behind the pytest plugin: options, targets, and the devices that tests share."""
