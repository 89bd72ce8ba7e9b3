# SPDX-License-Identifier: Apache-2.0
"""Model files as TVM's importers can read them: shapes fixed, constants folded, operators rewritten."""
