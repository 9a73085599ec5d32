"""The example of layers: a session of two turns, with a count that survives between them."""

from __future__ import annotations

import layers_basics


async def test_a_session_goes_on_where_it_was_suspended() -> None:
    first, second = await layers_basics.main()
    assert first == [
        "You know books.",
        "This is turn 1.",
        "Answer in one line.",
        "What is there?",
        "books_of: ['Gösta Berlings saga']",
    ]
    assert second == ["This is turn 2." if line == "This is turn 1." else line for line in first]
