"""What people write wrongly is refused in one readable line, with a code that says whose it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import BaseModel, ValidationError

from dagbok.agents.workers.encode import encode_failure
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.specs import Artifact, Outcome, TaskSpec, Usage, Verdict
from dagbok.events.written import TITLE, Written

WHOLE = {"goal": "g", "worker": "w", "verifier": "v"}


class Reading(BaseModel):
    """A model of the user's own."""

    count: int


class UsersOutcome(BaseModel):
    """Of the same name as one of dagbok's, in the user's program."""

    count: int


UsersOutcome.__name__ = "Outcome"


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("field", ["inputs", "contract", "metadata"])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("half \ud800", "lone surrogate"),
        ({"half \udfff": 1}, "lone surrogate"),
        ({"a": [{"\ud800": None}]}, "lone surrogate"),
        (deep(255), "254 levels"),
        ({"key": deep(255)}, "254 levels"),
        (deep(100_000), "254 levels"),
        (2**64, "beyond 64 bits"),
        ([-(2**63) - 1], "beyond 64 bits"),
        (float("nan"), "NaN"),
        ({1: 2}, "a key of an object is no text"),
        ({"a": {1}}, "set is not JSON"),
    ],
)
def test_a_value_of_a_spec_that_is_no_json_is_an_invalid_spec(field: str, value: object, why: str) -> None:
    with pytest.raises(InvalidInput, match=f"{field} of a TaskSpec is not a JSON value: .*{why}") as refused:
        TaskSpec.model_validate({**WHOLE, field: value})
    assert refused.value.code == Code.INVALID_SPEC
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("field", ["goal", "worker", "verifier", "pool", "proposal_verifier", "id"])
def test_a_text_of_a_spec_that_is_no_unicode_is_an_invalid_spec(field: str) -> None:
    failure = encode_failure(built_wrongly(lambda: TaskSpec.model_validate({**WHOLE, field: "half \ud800"})))
    assert (failure.failure, failure.code) == ("terminal", Code.INVALID_SPEC)
    assert failure.message.startswith(f"TaskSpec is not valid: {field}: ")


def proposed(*tasks: object) -> Outcome:
    return Outcome.model_validate({"kind": "decompose", "tasks": tasks})


def built_wrongly(build: Callable[[], object]) -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        build()
    return raised.value


@pytest.mark.parametrize(
    ("build", "code", "says"),
    [
        (
            lambda: TaskSpec.model_validate({"goal": "g", "worker": "w"}),
            Code.INVALID_SPEC,
            "TaskSpec is not valid: verifier: Field required",
        ),
        (lambda: TaskSpec.model_validate({**WHOLE, "goal": ""}), Code.INVALID_SPEC, "goal: String should have"),
        (lambda: TaskSpec.model_validate({**WHOLE, "gaol": 1}), Code.INVALID_SPEC, "gaol: Extra inputs are not"),
        (lambda: Outcome.model_validate({"kind": "done"}), Code.INVALID_OUTCOME, "Outcome is not valid: kind: Input"),
        (lambda: proposed(WHOLE, {"goal": 1}), Code.INVALID_OUTCOME, "tasks.1.worker: Field required"),
        (lambda: Verdict.model_validate({"verdict": "fine"}), Code.INVALID_OUTCOME, "Verdict is not valid: verdict:"),
        (lambda: Usage(tokens=-1), Code.INVALID_OUTCOME, "Usage is not valid: tokens:"),
        (lambda: Artifact.model_validate({}), Code.INVALID_OUTCOME, "Artifact is not valid: content: Field required"),
    ],
)
def test_a_model_of_dagboks_that_is_built_wrongly_fails_for_good_and_says_where(
    build: Callable[[], object], code: Code, says: str
) -> None:
    failure = encode_failure(built_wrongly(build))
    assert (failure.failure, failure.code) == ("terminal", code)
    assert says in failure.message
    assert "\n" not in failure.message


def test_many_problems_are_told_in_part() -> None:
    failure = encode_failure(built_wrongly(lambda: proposed({}, {}, {}, {})))
    assert failure.message.endswith("; and 7 more")


@pytest.mark.parametrize("model", [Reading, UsersOutcome])
def test_a_model_of_the_users_may_be_tried_again(model: type[BaseModel]) -> None:
    failure = encode_failure(built_wrongly(lambda: model.model_validate({"count": "many"})))
    assert (failure.failure, failure.code) == ("retryable", Code.WORKER_FAILED)


def test_every_model_of_dagboks_can_be_told_from_the_users() -> None:
    assert {kind.model_config.get("title") for kind in Written.__subclasses__()} == {
        TITLE + kind.__name__ for kind in Written.__subclasses__()
    }
