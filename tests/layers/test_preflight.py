"""What is wrong with a request is told at once, all of it, before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dagbok import Outcome, TaskSpec
from dagbok.agents.layers import Compositor, LayerConfig, LayerNode, LayerProvider, NoLayerDeps, PlainLayer
from dagbok.agents.layers.durable import LayeredAttempt, LayeredWorker
from dagbok.events.run.events import AttemptFailed
from tests.layers.parts import Count
from tests.support.hosts import events_of, hosted

made: list[str] = []


class ModelConfig(LayerConfig):
    temperature: float = 0.0


class ModelLayer(PlainLayer[NoLayerDeps, ModelConfig, Count]):
    required_env = ("SOME_MODEL_KEY", "SOME_MODEL_URL")


def create(config: ModelConfig) -> ModelLayer:
    made.append("model")
    return ModelLayer()


PROVIDER = LayerProvider.from_factory(layer_type=ModelLayer, create=create)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_MODEL_URL", "https://example.org")
    monkeypatch.delenv("SOME_MODEL_KEY", raising=False)
    made.clear()


async def test_defect_16_three_faults_and_the_missing_setting_are_one_error() -> None:
    slot = {"name": "model", "lifecycle_state": "suspended", "runtime_state": {"count": "many"}}
    with pytest.raises(ExceptionGroup) as caught:
        async with Compositor([LayerNode("model", PROVIDER)]).enter(
            configs={"model": {"temperature": "hot"}, "nobody": {}},
            session_snapshot={"schema_version": 1, "layers": [slot]},
        ):
            raise AssertionError
    assert len(caught.value.exceptions) == 4
    told = str(caught.value)
    for each in (
        "Layer 'model' needs environment variables that are not set: SOME_MODEL_KEY;",
        "unknown layer node names: nobody",
        "in the config of layer 'model': temperature: ",
        "in the state of layer 'model': count: ",
    ):
        assert each in told
    assert made == []


async def test_an_empty_setting_is_missing_and_one_that_is_set_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_MODEL_KEY", "")
    with pytest.raises(ValueError, match=r"not set: SOME_MODEL_KEY$"):
        async with Compositor([LayerNode("model", PROVIDER)]).enter():
            raise AssertionError
    monkeypatch.setenv("SOME_MODEL_KEY", "k")
    async with Compositor([LayerNode("model", PROVIDER)]).enter():
        assert made == ["model"]


async def never(attempt: LayeredAttempt) -> Outcome:
    raise AssertionError


def test_a_worker_with_configs_that_no_run_takes_is_not_made() -> None:
    compositor: Compositor[Any, Any, Any] = Compositor([LayerNode("model", PROVIDER)])
    with pytest.raises(ExceptionGroup, match=r"nobody; in the config of layer 'model': temperature: "):
        LayeredWorker(compositor, never, configs={"model": {"temperature": "hot"}, "nobody": {}})
    LayeredWorker(compositor, never, configs={"model": {"temperature": 1}})
    assert made == []


async def test_an_attempt_without_its_setting_names_it(tmp_path: Path) -> None:
    worker = LayeredWorker(Compositor([LayerNode("model", PROVIDER)]), never).worker("asks")
    async with hosted(tmp_path, worker) as dagbok:
        result = await dagbok.run(TaskSpec(goal="ask", worker="asks", verifier="yes", max_attempts=1))
        (failed,) = await events_of(dagbok, AttemptFailed)
    assert result.status == "failed"
    assert "SOME_MODEL_KEY" in failed.failure.message
