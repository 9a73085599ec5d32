"""How a user's function says that trying again is of no use."""

from __future__ import annotations


class Terminal(Exception):
    """Raised by a worker: the task fails at once (code `worker_failed`, with this message), however many attempts it
    has left. Raised by a verifier: it is not asked again, and the task is blocked. Any other exception may be tried
    again."""
