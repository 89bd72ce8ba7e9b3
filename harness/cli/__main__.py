# SPDX-License-Identifier: Apache-2.0
"""`python -m harness.cli` is `minrpc`."""

import sys

from harness.cli import main

sys.exit(main())
