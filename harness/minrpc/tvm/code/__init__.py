# SPDX-License-Identifier: Apache-2.0
"""TVM's generated code and models on a device: modules, plans, C libraries."""
