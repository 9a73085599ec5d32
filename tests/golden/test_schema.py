"""Every event that was ever released fits the schema that is exported now."""

from __future__ import annotations

import pytest

from dagbok.events.run.events import EVENTS
from tests.golden.files import formats, read_values
from tests.support import schemas


@pytest.mark.parametrize("format", formats())
def test_events_of_a_golden_log_fit(format: int) -> None:
    found = list(schemas.recorded_events(read_values(format)))
    assert found
    for event in found:
        schemas.events().validate(event)


def test_every_event_was_held_against_the_schema() -> None:
    assert {event["type"] for format in formats() for event in schemas.recorded_events(read_values(format))} == {
        *EVENTS
    }
