# SPDX-License-Identifier: Apache-2.0
"""`python -m minrpc` runs `minrpc`."""

import sys

from minrpc.cli import main

sys.exit(main())
