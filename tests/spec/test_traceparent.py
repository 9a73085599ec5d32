"""The header `traceparent`, as the W3C recommendation *Trace Context* has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagbok.events.traceparent import Parent, passed_on, read_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
WRITTEN = f"00-{TRACE}-{SPAN}-01"
NAMED = Parent(int(TRACE, 16), int(SPAN, 16), True)


@given(st.builds(Parent, st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans()))
def test_what_was_written_is_read(parent: Parent) -> None:
    assert read_traceparent(parent.told()) == parent


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        (WRITTEN, NAMED),
        (f"00-{TRACE}-{SPAN}-00", Parent(NAMED.trace_id, NAMED.span_id, False)),
        (f"00-{TRACE}-{SPAN}-03", NAMED),  # flags that nobody has named yet
        (f"cc-{TRACE}-{SPAN}-01-what will be", NAMED),  # a version that nobody has written yet
    ],
)
def test_it_names_a_span(text: str, parent: Parent) -> None:
    assert read_traceparent(text) == parent


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f" {WRITTEN}",
        f"{WRITTEN}\n",
        f"cc-{TRACE}-{SPAN}-01-" + "x" * 10_000,
    ],
)
def test_what_is_not_well_formed_names_nothing_and_is_not_written_on(text: str | None) -> None:
    assert (read_traceparent(text), passed_on(text)) == (None, None)


def test_what_is_written_on_has_the_form_that_everybody_reads() -> None:
    assert passed_on(f"cc-{TRACE}-{SPAN}-01-what will be") == WRITTEN
