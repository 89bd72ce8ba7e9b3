# SPDX-License-Identifier: Apache-2.0
"""What stands behind the pytest plugin: the devices that tests share, and what a report shows."""
