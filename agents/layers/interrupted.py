"""What a model is told of a call that was stopped, whichever library the call is of."""

from __future__ import annotations

from typing import Final

INTERRUPTED: Final = "interrupted: this call was stopped, and nobody knows how far it got"
"""It takes the place of the answer that the call never had."""
