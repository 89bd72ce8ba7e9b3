# SPDX-License-Identifier: Apache-2.0
"""What a run found, for others to read: pages, other programs' formats, limits of a project."""
