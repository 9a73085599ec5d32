"""How conditions on edges are written, and that what is written is what the log keeps."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from dagbok.events.canonical import Json
from dagbok.events.errors import InvalidInput
from dagbok.events.specs import TaskSpec
from dagbok.events.when import When, written_as

WRITTEN = [
    When("review", "decision", equals="approve"),
    When("review", "decision", equals=None),
    When("review", "/score/mean", at_least=0.8),
    When("review", "score", below=3),
    When("review", "score", at_most=3),
    When("review", "score", above=3),
    When("review", "", differs={"a": [1, 2]}),
    When("review", "kind", one_of=["a", "b"]),
    When("review", "kind", none_of=["a", "b"]),
    When("review", "a/b~c", equals=1),
]


@pytest.mark.parametrize("when", WRITTEN, ids=[str(when.model_fields_set) for when in WRITTEN])
def test_a_condition_comes_back_as_it_was_written(when: When) -> None:
    assert written_as(when.condition).condition == when.condition


def test_a_name_is_a_pointer_to_the_top_of_the_outputs() -> None:
    assert When("review", "a/b~c", equals=1).condition.output == "/a~1b~0c"
    assert When("review", "/a/b", equals=1).condition.output == "/a/b"


def test_a_condition_can_be_read_from_json() -> None:
    spec = TaskSpec.model_validate(
        {
            "goal": "ship",
            "worker": "w",
            "verifier": "v",
            "depends_on": ["build", {"task": "review", "output": "decision", "equals": "approve"}],
        }
    )
    assert spec.depends_on == ("build", When("review", "decision", equals="approve"))


@pytest.mark.parametrize(
    "comparison",
    [{}, {"equals": 1, "below": 2}, {"eqals": 1}, {"below": "x"}, {"equals": float("nan")}],
    ids=["none", "two", "misspelt", "no number", "no JSON"],
)
def test_exactly_one_comparison_is_named(comparison: dict[str, Json]) -> None:
    with pytest.raises((ValidationError, InvalidInput)):
        When("review", "decision", **comparison)


@pytest.mark.parametrize("written", [{}, {"task": "t"}, {"self": 1}, {"task": "t", "output": "o", "equals": 1, "x": 2}])
def test_a_condition_from_data_that_lacks_something_is_told_like_any_mistake(written: dict[str, Json]) -> None:
    with pytest.raises(ValidationError):
        TaskSpec.model_validate({"goal": "g", "worker": "w", "verifier": "v", "depends_on": [written]})
