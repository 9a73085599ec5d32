"""Puts layers down turn by turn: only what has changed since the last turn is dumped, compared and written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dagbok.agents.layers.durable.written import FORMAT, VERSION, written_layer
from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.kept_state import KeptState, UnreadLists, growing_lists, valid_state
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.diff import LayerOutcome, SnapshotDiff
from dagbok.agents.layers.snapshots.identity import graph_digest, state_version_of, type_of
from dagbok.agents.workers.sessions.beside import beside
from dagbok.agents.workers.sessions.difference import difference, same
from dagbok.agents.workers.sessions.operations import Cut, Drop, Operation, add, put
from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.agents.workers.sessions.unread import Path
from dagbok.events.errors import InvalidInput


class _Kept(NamedTuple):
    """What the session has of one layer; `lists` are those of the layer that it has the beginning of."""

    lifecycle: str
    state: KeptState
    lists: Mapping[str, Growing[Any]]
    cleanly: bool = True


_Mark = tuple[Growing[Any], int]


class LayersKeeper:
    """Between the layers of one run and the session of its task.

    A turn costs what was appended to a `Growing`, or changed in it; the rest of a state is compared as a whole."""

    def __init__(self, nodes: Sequence[LayerNode], slots: Mapping[str, LayerRunSlot], session: TaskSession) -> None:
        self._nodes, self._slots, self._session = {node.name: node for node in nodes}, slots, session
        self._graph = graph_digest(nodes)
        self._kept: dict[str, _Kept] = {}
        self._begun = False
        self._one_at_a_time = asyncio.Lock()
        self._changed_graph: list[Operation] = []

    def resumed(self, written: Mapping[str, Any], unread: Mapping[str, UnreadLists], diff: SnapshotDiff) -> bool:
        """The layers were entered with what the session has, as `apart` gives it: what their hooks did to it since is
        to be written. Those that were deleted are new, and those that are not as they were are written anew.

        Returns True when the session is of another graph: put down at once what became of it."""
        self._begun = True
        changed = any(each.changes for each in diff.layers)
        if changed:
            gone = [each.name for each in diff.layers if each.name not in self._nodes]
            self._changed_graph = [put(("graph",), self._graph), put(("order",), list(self._nodes))]
            self._changed_graph += [Drop(("layers", name)) for name in gone]
        as_it_was = {each.name for each in diff.layers if each.outcome is LayerOutcome.RESUME}
        for name, slot in self._slots.items():
            if name not in as_it_was or written["layers"][name]["lifecycle"] == LifecycleState.CLOSED:
                continue
            self._kept[name] = _as_resumed(slot.layer, written["layers"][name], unread.get(name, {}))
        return changed

    async def put_down(self) -> None:
        """Write what has changed, when all of it can be resumed from. One that is cancelled while it writes goes on
        beside, and the next one waits for it.

        Raises what `TaskSession.change` raises and, with a note that says of which layer, what `valid_state` raises."""
        await self._one_at_a_time.acquire()
        try:
            now = {name: kept for name, slot in self._slots.items() if (kept := _now(name, slot)) is not None}
            operations = self._operations(now)
            marks = [mark for kept in now.values() for mark in _marked(kept)]
        except BaseException:
            self._one_at_a_time.release()
            raise
        await beside(self._write(now, operations, marks), self._one_at_a_time.release)

    def _operations(self, now: Mapping[str, _Kept]) -> Sequence[Operation]:
        if self._begun:
            changes = [operation for name, kept in now.items() for operation in _of(name, self._changes(name, kept))]
            return [*self._changed_graph, *changes]
        layers = {name: self._layer(name, now.get(name)) for name in self._slots}
        for name, layer in layers.items():
            _of(name, map(put, [("layers", name)], [layer]))
        head = {"format": FORMAT, "v": VERSION, "graph": self._graph, "order": list(self._nodes)}
        return [put((), {**head, "layers": layers})]

    async def _write(self, now: Mapping[str, _Kept], operations: Sequence[Operation], marks: Sequence[_Mark]) -> None:
        try:
            await self._session.change(operations)
        except BaseException:
            for found, before in marks:
                found.written = min(before, found.written)
            raise
        self._begun, self._changed_graph = True, []
        self._kept |= now

    def _changes(self, name: str, now: _Kept) -> Iterator[Operation]:
        before, path = self._kept.get(name), ("layers", name)
        if before is None:
            yield put(path, self._layer(name, now))
            return
        if now.lifecycle != before.lifecycle:
            yield put((*path, "lifecycle"), now.lifecycle)
        if now.cleanly != before.cleanly:
            yield Drop((*path, "cleanly")) if now.cleanly else put((*path, "cleanly"), False)
        yield from difference(before.state.rest, now.state.rest, (*path, "state"))
        for key, items in now.lists.items():
            had = len(before.state.lists[key]) if before.lists.get(key) is items else None
            yield from _grown((*path, "state", key), now.state, had, items)

    def _layer(self, name: str, now: _Kept | None) -> dict[str, Any]:
        """A layer as it is, or as it was valid last."""
        node = self._nodes[name]
        kind, version = type_of(node), state_version_of(node)
        if now is None:
            return written_layer(kind, version, LifecycleState.SUSPENDED, self._slots[name].kept_state, cleanly=False)
        return written_layer(kind, version, now.lifecycle, now.state.json(), cleanly=now.cleanly)


def _of(name: str, changes: Iterable[Operation]) -> list[Operation]:
    """Changes of a layer. What no session takes is told as of that layer."""
    try:
        return list(changes)
    except InvalidInput as refused:
        raise InvalidInput(
            f"the state of layer '{name}': {refused.message}",
            code=refused.code,
            advice="keep it in the state as JSON that can be written, as a text say; what was put down before stays",
        ) from refused


def _now(name: str, slot: LayerRunSlot) -> _Kept | None:
    """None: it failed on its way out and left no valid state; what the session has of it stays."""
    try:
        state = valid_state(slot.layer)
    except ValueError as invalid:
        if slot.exit_error is not None:
            return None
        invalid.add_note(f"The state of layer '{name}' cannot be put down; what was put down before stays.")
        raise
    return _Kept(_lifecycle(slot), state, growing_lists(slot.layer), slot.exit_error is None)


def _as_resumed(layer: AnyLayer, written: Mapping[str, Any], unread: UnreadLists) -> _Kept:
    """What the session has. A list of which a hook has changed what that has is left out, and so written anew."""
    was: Mapping[str, Any] = written["state"]
    lists, had = growing_lists(layer), dict[str, tuple[Any, ...]]()
    model = layer.runtime_state_type
    for key, found in lists.items():
        if key in unread:
            had[key] = tuple(unread[key])
            continue
        known, now = was.get(key), KeptState({}, {key: found.frozen()}, model).items(key)
        if isinstance(known, list) and same(now[: len(known)], known):
            found.written = len(known)
            had[key] = tuple(known)
    rest = {key: value for key, value in was.items() if key not in lists}
    state, known_lists = KeptState(rest, had, model), {key: lists[key] for key in had}
    return _Kept(LifecycleState.SUSPENDED, state, known_lists, written.get("cleanly", True))


def _grown(path: Path, state: KeptState, had: int | None, items: Growing[Any]) -> Iterator[Operation]:
    """A list of a state, of which the session has so many items as they were; None: it has another list."""
    key = path[-1]
    if had is None:
        yield put(path, state.items(key))
        return
    kept = min(had, items.written)
    if kept < had:
        yield Cut(path, kept)
    if len(items) > kept:
        yield add(path, state.items(key, kept))


def _marked(kept: _Kept) -> Iterator[_Mark]:
    """Says of growing lists that they are written as far as they go now, and how far they were. What is changed while
    they are being written shows then."""
    for found in kept.lists.values():
        yield found, found.written
        found.written = len(found)


def _lifecycle(slot: LayerRunSlot) -> str:
    """An active layer that is never heard of again was suspended, as far as the next attempt can know; so is one that
    could not be deleted."""
    suspended = slot.lifecycle_state is LifecycleState.ACTIVE or slot.exit_error is not None
    return LifecycleState.SUSPENDED if suspended else slot.lifecycle_state
