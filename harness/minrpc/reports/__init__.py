# SPDX-License-Identifier: Apache-2.0
"""The form of results: Markdown tables, figures."""
