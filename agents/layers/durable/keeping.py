"""Puts layers down turn by turn: only what has changed since the last turn is dumped, compared and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, TypeAdapter

from dagbok.agents.layers.durable.written import FORMAT, VERSION, written_layer
from dagbok.agents.layers.lifecycle import LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.diff import LayerOutcome, SnapshotDiff
from dagbok.agents.layers.snapshots.identity import graph_digest, state_version_of, type_of
from dagbok.agents.workers.sessions.difference import difference, same
from dagbok.agents.workers.sessions.operations import Drop, Operation, Path, add, put
from dagbok.agents.workers.sessions.session import TaskSession


@dataclass(slots=True)
class _Kept:
    """What the session has of one layer: all of its state but the lists that grow, and how far those are written."""

    lifecycle: str
    small: dict[str, Any]
    lists: dict[str, tuple[list[Any], int]] = field(default_factory=dict)


class LayersKeeper:
    """Between the layers of one run and the session of its task.

    A layer may name lists of its state in the class attribute `growing`: it only appends to such a list, or puts
    another list in its place. A turn then costs what was appended."""

    def __init__(self, nodes: Sequence[LayerNode], slots: Mapping[str, LayerRunSlot], session: TaskSession) -> None:
        self._nodes, self._slots, self._session = {node.name: node for node in nodes}, slots, session
        self._graph = graph_digest(nodes)
        self._kept: dict[str, _Kept] = {}
        self._begun = False
        self._changed_graph: list[Operation] = []

    def resumed(self, written: Mapping[str, Any], diff: SnapshotDiff) -> bool:
        """The layers were entered with what the session has: what their hooks did to it since is to be written. Those
        that were deleted are new, and those that are not as they were are written anew.

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
            was = written["layers"][name]["state"]
            small = {of: value for of, value in was.items() if of not in _growing(slot)}
            lists = {of: self._as_resumed(name, of, was.get(of)) for of in _growing(slot)}
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
        await self._session.change(operations)
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
        if not is_same or length < written:
            yield put(path, self._dumped(name, of, 0))
        elif length > written:
            yield add(path, self._dumped(name, of, written))

    def _as_resumed(self, name: str, of: str, was: Any) -> tuple[list[Any], int]:
        """The list and how much of it the session has; another list when a hook changed what that has."""
        known = was if isinstance(was, list) else []
        unchanged = same(self._dumped(name, of, 0)[: len(known)], known)
        return (getattr(self._slots[name].layer.runtime_state, of), len(known)) if unchanged else ([], 0)

    def _dumped(self, name: str, of: str, start: int) -> list[Any]:
        state: BaseModel = self._slots[name].layer.runtime_state
        adapter: TypeAdapter[list[Any]] = _adapter(type(state), of)
        dumped: list[Any] = adapter.dump_python(getattr(state, of)[start:], mode="json")
        return dumped

    def _layer(self, name: str, now: _Kept | None) -> dict[str, Any]:
        """A layer as it is, or as it was valid last."""
        node = self._nodes[name]
        kind, version = type_of(node), state_version_of(node)
        if now is None:
            return written_layer(kind, version, LifecycleState.SUSPENDED, self._slots[name].kept_state)
        lists = {of: self._dumped(name, of, 0) for of in now.lists}
        return written_layer(kind, version, now.lifecycle, {**now.small, **lists})


_adapters: dict[tuple[type[BaseModel], str], TypeAdapter[list[Any]]] = {}


def _adapter(model: type[BaseModel], name: str) -> TypeAdapter[list[Any]]:
    key = (model, name)
    if key not in _adapters:
        annotation: Any = model.model_fields[name].annotation
        # Bytes, times and floats are written as the model says, which the type of a field alone does not know.
        _adapters[key] = TypeAdapter(annotation, config=model.model_config)
    return _adapters[key]


def _growing(slot: LayerRunSlot) -> Sequence[str]:
    found: Sequence[str] = getattr(type(slot.layer), "growing", ())
    return found


def _lifecycle(slot: LayerRunSlot) -> str:
    """An active layer that is never heard of again was suspended, as far as the next attempt can know."""
    active = slot.lifecycle_state is LifecycleState.ACTIVE
    return LifecycleState.SUSPENDED if active else slot.lifecycle_state


def _is_sound(slot: LayerRunSlot) -> bool:
    """What failed on its way out is kept as it was put down before."""
    return slot.exit_error is None
