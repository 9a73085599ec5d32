"""What must hold of every trace that arrived, however often a process was killed."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.otlp import Arrived

ABOVE = {"run": ("run",), "task": ("run", "task"), "work": ("task",), "verify": ("task",)}


def check_trace(spans: Sequence[Arrived], run: str) -> None:
    """The spans of dagbok for one run that is over: one connected tree, with the ids as attributes and times in order.

    A span may have arrived more than once, if it is the same."""
    by_id = {span.id: span for span in spans}
    assert all(by_id[span.id] == span for span in spans), "one id for different spans"
    assert {span.trace for span in spans} == {run}
    roots = [span for span in by_id.values() if not span.parent]
    assert [span.name for span in roots] == ["run"]
    for span in by_id.values():
        kind = span.name.split()[0]
        assert span.attributes["dagbok.run_id"] == run
        assert ("dagbok.task_id" in span.attributes) == (kind != "run")
        assert ("dagbok.attempt" in span.attributes) == (kind in ("work", "verify"))
        assert span.start_ns <= span.end_ns
        if span.parent:
            parent = by_id[span.parent]
            assert parent.name.split()[0] in ABOVE[kind]
            assert parent.start_ns <= span.start_ns
            assert span.end_ns <= parent.end_ns
            if kind in ("work", "verify"):
                assert parent.attributes["dagbok.task_id"] == span.attributes["dagbok.task_id"]
