"""What a session has of layers, with the lists that grow apart from the rest: they are not read on resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dagbok.agents.layers.durable.written import is_of_layers, problem_of
from dagbok.agents.layers.growing_fields import growing_fields
from dagbok.agents.layers.kept_state import UnreadLists
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.snapshots.identity import is_of_type, state_version_of
from dagbok.agents.workers.sessions.unread import Unread, read


def apart(value: Any, nodes: Sequence[LayerNode]) -> tuple[Any, dict[str, UnreadLists]]:
    """The value of a session (`TaskSession.load_unread`) as plain JSON without some lists, and those by node and name.

    Taken out is what is unread and goes into a `Growing` of a suspended layer of the same name, type and version of the
    state; a layer that is to be migrated or deleted otherwise is whole.
    """
    lists: dict[str, UnreadLists] = {}
    layers: Mapping[str, Any] = value["layers"] if is_of_layers(value) and problem_of(value) is None else {}
    for node in nodes:
        written = layers.get(node.name)
        if written is not None and _goes_on(written, node):
            lists[node.name] = _taken_out(node, written["state"])
    return read(value), lists


def _goes_on(written: dict[str, Any], node: LayerNode) -> bool:
    is_suspended = written.get("lifecycle") == LifecycleState.SUSPENDED
    is_read_as_it_is = written.get("state_version", 1) == state_version_of(node)
    return is_suspended and is_read_as_it_is and is_of_type(node, written.get("type"))


def _taken_out(node: LayerNode, state: dict[str, Any]) -> UnreadLists:
    fields = growing_fields(node.provider.layer_type.runtime_state_type)
    return {key: state.pop(key) for key in fields if isinstance(state.get(key), Unread)}
