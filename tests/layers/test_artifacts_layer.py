"""An agent reads what its task depends on, and what it writes is its candidate, also when an attempt fails between."""

from __future__ import annotations

import pytest
from pydantic_ai import Tool

from dagbok import Artifact, Outcome
from dagbok.agents.layers import Compositor, LayerNode, LayerProvider
from dagbok.agents.layers.durable import ArtifactsLayer, LayeredAttempt, LayeredWorker
from dagbok.agents.layers.pydantic_ai import PYDANTIC_AI_TRANSFORMERS
from dagbok.testing import context

NOTES = Artifact(content=b"0123456789", media_type="text/plain")
PICTURE = Artifact(content=b"\x89\xff", media_type="image/png")


def layer(**config: int) -> ArtifactsLayer:
    made = LayerProvider.from_layer_type(ArtifactsLayer).create_layer(config)
    made.bind(context(dependencies={"notes": NOTES, "picture": PICTURE}))
    return made


async def test_it_lists_what_the_task_depends_on_and_nothing_else() -> None:
    assert sorted(str(item["task"]) for item in await layer().list_artifacts()) == ["notes", "picture"]
    assert await layer().read_artifact("other") == (
        "There is no 'result' of 'other'. You may read: 'result' of 'notes', 'result' of 'picture'."
    )


async def test_it_reads_a_page_at_a_time() -> None:
    paged = layer(page_chars=6)
    assert await paged.read_artifact("notes") == "012345\n[4 characters more: start=6]"
    assert await paged.read_artifact("notes", start=6) == "6789"


async def test_what_is_no_text_is_said_to_be_none() -> None:
    assert await layer().read_artifact("picture") == "'result' of 'picture' is image/png, not text."


async def test_what_is_too_long_or_has_no_proper_name_is_not_written() -> None:
    small = layer(max_draft_bytes=4)
    assert "'../x' is not 1 to 64 letters" in await small.write_artifact("x", name="../x")
    assert await small.write_artifact("häst") == "Not written: 5 bytes are more than 4."
    with pytest.raises(ValueError, match="wrote no 'result'"):
        small.outcome()


async def test_a_layer_without_a_task_says_what_to_call() -> None:
    with pytest.raises(RuntimeError, match="bind"):
        await ArtifactsLayer().list_artifacts()


async def test_what_was_written_is_the_candidate_of_the_attempt_after_the_one_that_failed() -> None:
    async def loop(attempt: LayeredAttempt) -> Outcome:
        artifacts = attempt.run.get_layer("artifacts", ArtifactsLayer)
        artifacts.bind(attempt.task)
        assert [tool.name for tool in attempt.run.tools] == ["list_artifacts", "read_artifact", "write_artifact"]
        assert all(isinstance(tool, Tool) for tool in attempt.run.tools)
        if not artifacts.runtime_state.drafts:
            await artifacts.write_artifact(await artifacts.read_artifact("notes"))
            raise ConnectionError
        await artifacts.write_artifact("more", name="appendix")
        return artifacts.outcome()

    plan = Compositor([LayerNode("artifacts", ArtifactsLayer)], **PYDANTIC_AI_TRANSFORMERS)
    worker, first = LayeredWorker(plan, loop), context(dependencies={"notes": NOTES})
    with pytest.raises(ConnectionError):
        await worker.work(first)
    outcome = await worker.work(context(dependencies={"notes": NOTES}, session=first.session.load()))
    written = {name: artifact.content for name, artifact in outcome.artifacts.items()}
    assert written == {"result": b"0123456789", "appendix": b"more"}
