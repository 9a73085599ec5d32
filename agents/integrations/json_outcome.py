"""Outcomes that an agent writes as JSON. Text that is no outcome is refused: nothing guesses what was meant."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dagbok.events.canonical import canonical
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.specs import Content, Outcome, TaskSpec
from dagbok.events.written import TITLE, JsonValue, TaskId, Written, problems_of

OUTCOME_FORM = """\
Answer with one JSON object and nothing else, in one of these forms:
{"kind": "candidate", "content": <the result, any JSON value>}
{"kind": "decompose", "tasks": [{"goal": "…", "worker": "…", "verifier": "…", "id": "…", "depends_on": ["…"], \
"inputs": <any JSON value>}, …], "rationale": "…"}
{"kind": "blocked", "reason": "what a person has to do first"}
Of a task in "tasks", only goal, worker and verifier are required."""
"""What an agent is told; `parse_outcome` reads it."""

MAX_SHOWN_CHARS = 200

_FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


class NotAnOutcome(InvalidInput):
    """An agent's answer has not the form of an outcome.

    Code `invalid_outcome`, and yet retried: an agent that is told the form may keep to it. So it spends an attempt, and
    the message, which names the form, reaches the next one in `TaskContext.diagnostics`.
    """

    default_code = Code.INVALID_OUTCOME

    @property
    def retry(self) -> bool:
        """True: asked again, an agent may answer otherwise."""
        return True


class _Candidate(Written, title=TITLE + "_Candidate"):
    kind: Literal["candidate"]
    content: Content
    media_type: str | None = None
    outputs: JsonValue = None


class _Decompose(Written, title=TITLE + "_Decompose"):
    kind: Literal["decompose"]
    tasks: tuple[TaskSpec, ...] = Field(min_length=1)
    reuse: tuple[TaskId, ...] = ()
    rationale: str = ""
    composition_contract: JsonValue = None


class _Blocked(Written, title=TITLE + "_Blocked"):
    kind: Literal["blocked"]
    reason: Annotated[str, Field(pattern=r"\S")]


_FORM: TypeAdapter[_Candidate | _Decompose | _Blocked] = TypeAdapter(
    Annotated[_Candidate | _Decompose | _Blocked, Field(discriminator="kind")]
)


def parse_outcome(text: str) -> Outcome:
    """The outcome that an agent's answer is: a JSON object as in `OUTCOME_FORM`, bare or in one code fence.

    Also read, though agents are not told: `media_type` and `outputs` of a candidate; `reuse` and `composition_contract`
    of a decomposition; the other fields of `TaskSpec`. A name that is not known is refused. Raises `NotAnOutcome`.
    """
    fenced = _FENCED.match(text.strip())
    try:
        said = _FORM.validate_json(fenced[1] if fenced else text)
        canonical(said.model_dump(mode="python"))  # what JSON can say is more than what a log keeps: large integers
    except ValidationError as error:
        raise NotAnOutcome(_complaint(text, error)) from error
    except InvalidInput as error:
        raise NotAnOutcome(f"{error.message}. {OUTCOME_FORM}") from error
    if isinstance(said, _Candidate):
        return Outcome.candidate(said.content, media_type=said.media_type, outputs=said.outputs)
    if isinstance(said, _Blocked):
        return Outcome.blocked(said.reason)
    return Outcome.decompose(
        said.tasks,
        reuse=said.reuse,
        rationale=said.rationale,
        composition_contract=said.composition_contract,
    )


def _complaint(text: str, error: ValidationError) -> str:
    if error.errors(include_url=False, include_input=False, include_context=False)[0]["type"] == "json_invalid":
        shown = " ".join(text.split())[:MAX_SHOWN_CHARS]
        return f"the answer is no JSON object, free text is not an outcome: {shown!r}. {OUTCOME_FORM}"
    return f"the answer is not an outcome: {problems_of(error)}. {OUTCOME_FORM}"
