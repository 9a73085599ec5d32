"""Snapshots of Agenton with a history: a call that waited for a person when `ask_human` was a layer is interrupted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic_core import from_json, to_json

from dagbok.agents.layers.pydantic_ai.history import PydanticAIHistoryState
from dagbok.agents.layers.pydantic_ai.open_calls import closed
from dagbok.agents.layers.slot import StateJson
from dagbok.agents.layers.snapshots.importing import ASK_HUMAN, HISTORY, ImportedValue
from dagbok.agents.layers.snapshots.importing import import_snapshot as import_with
from dagbok.agents.layers.snapshots.schema import Snapshot


def import_snapshot(
    value: ImportedValue,
    *,
    tool_names: Collection[str] = (ASK_HUMAN,),
    histories: Collection[str] = (HISTORY,),
    removed: Collection[str] = (ASK_HUMAN,),
    state_versions: Mapping[str, int] | None = None,
) -> Snapshot:
    """`dagbok.agents.layers.import_snapshot` that closes calls: where a removed layer was there, open calls of
    `tool_names` in a history are answered as interrupted. Calls of other tools stay open."""

    def close(state: StateJson) -> StateJson:
        found = PydanticAIHistoryState.model_validate_json(to_json(state))
        found.messages = closed(found.messages, tool_names)
        written: StateJson = from_json(found.model_dump_json())
        return written

    return import_with(
        value, close_calls=close, histories=histories, removed=removed, state_versions=state_versions
    )
