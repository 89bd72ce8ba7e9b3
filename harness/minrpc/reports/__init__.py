# SPDX-License-Identifier: Apache-2.0
"""What results look like: Markdown tables, figures."""
