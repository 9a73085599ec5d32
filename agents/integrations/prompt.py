"""A task in words for an agent."""

from __future__ import annotations

from dagbok.agents.integrations.json_outcome import OUTCOME_FORM
from dagbok.agents.workers.context import TaskContext
from dagbok.agents.workers.views import ArtifactView
from dagbok.events.canonical import canonical

MAX_ARTIFACT_BYTES = 16_000
"""A larger artifact is named with its size; the agent does not see its content."""


def prompt_of(task: TaskContext) -> str:
    """The task as JSON: goal, phase, inputs, contracts, what the tasks it waited for published, and what went wrong
    before; then the form of the answer (`OUTCOME_FORM`). Goal, inputs and contracts are never shortened.

    Of published artifacts, text and JSON up to `MAX_ARTIFACT_BYTES` are shown, anything else is named.
    """
    said: dict[str, object] = {
        "goal": task.goal,
        "phase": task.phase,
        "inputs": task.inputs,
        "acceptance_contract": task.contract,
        "composition_contract": task.composition,
        "published_before": {
            name: {artifact.name: _shown(artifact) for artifact in published.values()}
            for name, published in task.dependencies.items()
        },
        "wrong_with_the_last_attempt": task.diagnostics,
        "note_of_a_person": task.problem.note if task.problem is not None else "",
    }
    told = {name: value for name, value in said.items() if value not in (None, "", {})}
    return f"{canonical(told).decode()}\n\n{OUTCOME_FORM}"


def _shown(artifact: ArtifactView) -> object:
    ref = artifact.ref
    is_json = ref.media_type.endswith("json")
    if ref.size_bytes > MAX_ARTIFACT_BYTES or not (is_json or ref.media_type.startswith("text/")):
        return {"not_shown": ref.media_type, "size_bytes": ref.size_bytes, "sha256": ref.sha256}
    return artifact.json() if is_json else artifact.text()
