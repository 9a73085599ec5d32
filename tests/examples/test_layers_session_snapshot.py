"""The example of snapshots: a session outlives its program, and nothing that it held is left over."""

from __future__ import annotations

import layers_session_snapshot


async def test_a_session_goes_on_in_a_program_with_other_layers() -> None:
    assert await layers_session_snapshot.main() == [
        "sandboxes: ['box-1']",
        "without rules refused: search, sandbox",
        "  rules    plain.prompt     goes on",
        "+ search   example.search   starts new",
        "~ notes    example.notes    goes on, migrated: notes has version 2 of its state, had 1",
        "- sandbox  example.sandbox  deleted: sandbox is gone",
        "can be resumed",
        "sandboxes: []",
        "notes: ['buy ink', 'write to Selma', 'post it']",
        "a second time: go on with the snapshot that this ended with, or with a fork of it (Snapshot.fork)",
        "a fork can be resumed: True",
        "disposed of: ['closed', 'closed', 'closed'], sandboxes: []",
    ]
