"""What every command of a client is sent in."""

from __future__ import annotations

import secrets

from dagbok.events.envelope import Command, Sender, run_command
from dagbok.events.ids import run_stream
from dagbok.events.log.clock import system_ms
from dagbok.events.run.commands import RunCommand


def client_command(run: str, command: RunCommand, *, tenant: str, project: str, user: str) -> Command:
    """A command to a run under a fresh id, in the name of a user of the tenant and project."""
    sender = Sender(tenant, project, f"user:{user}")
    return run_command(sender, run_stream(run), command, id=secrets.token_hex(16), now_ms=system_ms())
