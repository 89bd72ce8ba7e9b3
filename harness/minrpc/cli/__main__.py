# SPDX-License-Identifier: Apache-2.0
"""`python -m minrpc.cli` runs `minrpc`."""

import sys

from minrpc.cli import main

sys.exit(main())
