"""Puts layers down turn by turn: only what has changed since the last turn is dumped, compared and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw
from pydantic import BaseModel

from dagbok.agents.layers.durable.written import FORMAT, VERSION, written_layer
from dagbok.agents.layers.growing import Growing
from dagbok.agents.layers.kept_state import UnreadLists, growing_fields, items_adapter
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.diff import LayerOutcome, SnapshotDiff
from dagbok.agents.layers.snapshots.identity import graph_digest, state_version_of, type_of
from dagbok.agents.workers.sessions.difference import difference, same
from dagbok.agents.workers.sessions.operations import Cut, Drop, Operation, add, put
from dagbok.agents.workers.sessions.session import TaskSession
from dagbok.agents.workers.sessions.unread import Path


@dataclass(slots=True)
class _Kept:
    """What the session has of one layer: all of its state but the lists that grow, and how far those are written."""

    lifecycle: str
    small: dict[str, Any]
    lists: dict[str, tuple[Any, int]] = field(default_factory=dict)


class LayersKeeper:
    """Between the layers of one run and the session of its task.

    A layer may name lists of its state in the class attribute `growing`: it only appends to such a list, or puts
    another list in its place. A turn then costs what was appended. What is a `Growing` need not be named, may be
    changed everywhere, and is not read on resume."""

    def __init__(self, nodes: Sequence[LayerNode], slots: Mapping[str, LayerRunSlot], session: TaskSession) -> None:
        self._nodes, self._slots, self._session = {node.name: node for node in nodes}, slots, session
        self._graph = graph_digest(nodes)
        self._kept: dict[str, _Kept] = {}
        self._begun = False
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
            was, growing, filled = written["layers"][name]["state"], _growing(slot), unread.get(name, {})
            small = {of: value for of, value in was.items() if of not in growing}
            lists = {of: self._as_resumed(name, of, was, filled.get(of)) for of in growing}
            self._kept[name] = _Kept(LifecycleState.SUSPENDED, small, lists)
        return changed

    async def put_down(self) -> None:
        """Write what has changed. Raises what `TaskSession.change` raises, and what a state raises that is no JSON."""
        now = {name: self._now(slot, _lifecycle(slot)) for name, slot in self._slots.items() if _is_sound(slot)}
        if self._begun:
            operations = [operation for name, kept in now.items() for operation in self._changes(name, kept)]
            operations = [*self._changed_graph, *operations]
        else:
            layers = {name: self._layer(name, now.get(name)) for name in self._slots}
            head = {"format": FORMAT, "v": VERSION, "graph": self._graph, "order": list(self._nodes)}
            operations = [put((), {**head, "layers": layers})]
        marks = [mark for kept in now.values() for mark in _marked(kept)]
        try:
            await self._session.change(operations)
        except BaseException:
            for found, before in marks:
                found.written = min(before, found.written)
            raise
        self._begun, self._changed_graph = True, []
        self._kept |= now

    def _now(self, slot: LayerRunSlot, lifecycle: str) -> _Kept:
        state: BaseModel = slot.layer.runtime_state
        growing = _growing(slot)
        small = state.model_dump(mode="json", exclude=set(growing), warnings=False)
        return _Kept(lifecycle, small, {name: (found := getattr(state, name), len(found)) for name in growing})

    def _changes(self, name: str, now: _Kept) -> Iterator[Operation]:
        before, path = self._kept.get(name), ("layers", name)
        if before is None:
            yield put(path, self._layer(name, now))
            return
        if now.lifecycle != before.lifecycle:
            yield put((*path, "lifecycle"), now.lifecycle)
        yield from difference(before.small, now.small, (*path, "state"))
        for of, (found, length) in now.lists.items():
            known, written = before.lists[of]
            yield from self._grown(name, of, (*path, "state", of), known is found, written, length)

    def _grown(self, name: str, of: str, path: Path, is_same: bool, written: int, length: int) -> Iterator[Operation]:
        found = getattr(self._slots[name].layer.runtime_state, of)
        kept = min(written, found.written) if isinstance(found, Growing) else written
        if not is_same or length < kept:
            yield put(path, self._dumped(name, of, 0))
            return
        if kept < written:
            yield Cut(path, kept)
        if length > kept:
            yield add(path, self._dumped(name, of, kept))

    def _as_resumed(
        self, name: str, of: str, was: Mapping[str, Any], filled: Sequence[Raw] | None
    ) -> tuple[Any, int]:
        """The list and how much of it the session has; another list when a hook changed what that has."""
        found, known = getattr(self._slots[name].layer.runtime_state, of), was.get(of)
        if filled is not None and isinstance(found, Growing):
            return found, len(filled)
        if not isinstance(known, list) or not same(self._dumped(name, of, 0)[: len(known)], known):
            return [], 0
        if isinstance(found, Growing):
            found.written = len(known)
        return found, len(known)

    def _dumped(self, name: str, of: str, start: int) -> list[Any]:
        state: BaseModel = self._slots[name].layer.runtime_state
        items = getattr(state, of)[start:]
        if not items:
            return []
        dumped: list[Any] = items_adapter(type(state), of).dump_python(items, mode="json")
        return dumped

    def _layer(self, name: str, now: _Kept | None) -> dict[str, Any]:
        """A layer as it is, or as it was valid last."""
        node = self._nodes[name]
        kind, version = type_of(node), state_version_of(node)
        if now is None:
            return written_layer(kind, version, LifecycleState.SUSPENDED, self._slots[name].kept_state)
        lists = {of: self._dumped(name, of, 0) for of in now.lists}
        return written_layer(kind, version, now.lifecycle, {**now.small, **lists})


def _marked(kept: _Kept) -> Iterator[tuple[Growing[Any], int]]:
    """Says of growing lists that they are written as far as they go now, and how far they were. What is changed while
    they are being written shows then."""
    for found, length in kept.lists.values():
        if isinstance(found, Growing):
            yield found, found.written
            found.written = length


def _growing(slot: LayerRunSlot) -> Sequence[str]:
    named: Sequence[str] = getattr(type(slot.layer), "growing", ())
    return (*named, *(name for name in growing_fields(type(slot.layer).runtime_state_type) if name not in named))


def _lifecycle(slot: LayerRunSlot) -> str:
    """An active layer that is never heard of again was suspended, as far as the next attempt can know."""
    active = slot.lifecycle_state is LifecycleState.ACTIVE
    return LifecycleState.SUSPENDED if active else slot.lifecycle_state


def _is_sound(slot: LayerRunSlot) -> bool:
    """What failed on its way out is kept as it was put down before."""
    return slot.exit_error is None
