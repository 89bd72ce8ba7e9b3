# SPDX-License-Identifier: Apache-2.0
"""The main job for a person: build, boot, call, compare with numpy, time on the device's own clock."""
