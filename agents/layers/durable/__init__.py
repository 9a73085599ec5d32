"""Layers whose session lives in the log of a run: a worker that is killed goes on where it was put down."""

from dagbok.agents.layers.durable.artifacts import ARTIFACTS_LAYER_TYPE_ID, ArtifactsConfig, ArtifactsLayer
from dagbok.agents.layers.durable.worker import LayeredAttempt, LayeredWorker, Loop
from dagbok.agents.layers.durable.written import session_snapshot

__all__ = [
    "ARTIFACTS_LAYER_TYPE_ID",
    "ArtifactsConfig",
    "ArtifactsLayer",
    "LayeredAttempt",
    "LayeredWorker",
    "Loop",
    "session_snapshot",
]
