"""A run in parts: a head, and its tasks in segments of 1,000, so that a snapshot writes only what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from dagbok.events.run.values import Spec
from dagbok.projections.partition import Remembered
from dagbok.projections.task_graph.state import RunState, TaskNode

SEGMENT_TASKS: Final = 1_000
FOLD_VERSION: Final = 1
"""Raised whenever state or folds change: snapshots of another version are not read."""

# JSON, because the payloads inside a spec are JSON already and go through as they are.
_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(RunState).decode
_decode_segment = msgspec.json.Decoder(list[TaskNode]).decode
_decode_remembered = msgspec.json.Decoder(dict[str, Remembered]).decode


def encode_head(run: RunState) -> bytes:
    """Everything but the tasks."""
    return _encode(msgspec.structs.replace(run, tasks={}))


def encode_segment(tasks: Sequence[TaskNode]) -> bytes:
    """The tasks of one segment, in their order."""
    return _encode(tasks)


def encode_remembered(remembered: dict[str, Remembered]) -> bytes:
    """The remembered commands of a partition, oldest first."""
    return _encode(remembered)


def decode_remembered(data: bytes) -> dict[str, Remembered]:
    """The same."""
    return _decode_remembered(data)


def decode_run(head: bytes, segments: Sequence[bytes]) -> RunState:
    """The run, equal to the one that was encoded. Equal ids share one string, as they do in a folded run."""
    run = _decode_head(head)
    nodes = [node for segment in segments for node in _decode_segment(segment)]
    run.tasks = {node.id: node for node in nodes}
    shared = {task: task for task in run.tasks}
    for node in nodes:
        node.deps = [shared.get(task, task) for task in node.deps]
        node.dependents = [shared.get(task, task) for task in node.dependents]
        node.spec = _own_payloads(node.spec)
    run.active = {shared.get(task, task): None for task in run.active}
    run.ready = [(priority, order, shared.get(task, task)) for priority, order, task in run.ready]
    return run


def _own_payloads(spec: Spec) -> Spec:
    """A decoded `Raw` is a view that keeps the whole segment in memory; its copy is not."""
    return msgspec.structs.replace(
        spec, contract=spec.contract.copy(), inputs=spec.inputs.copy(), metadata=spec.metadata.copy()
    )
