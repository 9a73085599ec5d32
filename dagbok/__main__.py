"""`python -m dagbok`."""

from __future__ import annotations

import sys

from dagbok.cli import main

sys.exit(main())
