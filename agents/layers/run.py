"""One run of a compositor: its layers, and what they give together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from typing_extensions import TypeVar as DefaultTypeVar

from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.lifecycle import ExitIntent, LifecycleState
from dagbok.agents.layers.node import LayerNode
from dagbok.agents.layers.preparing import Made
from dagbok.agents.layers.schemas import CompositorSessionSnapshot, LayerSessionSnapshot
from dagbok.agents.layers.slot import LayerRunSlot
from dagbok.agents.layers.snapshots.diff import SnapshotDiff
from dagbok.agents.layers.snapshots.schema import Snapshot
from dagbok.agents.layers.snapshots.taking import taken, taken_after_failed_entry
from dagbok.agents.layers.tags import AllPromptTypes, AllToolTypes, AllUserPromptTypes
from dagbok.agents.layers.tool_names import check_tool_names
from dagbok.agents.layers.transformers import CompositorTransformer, Transformers

GotT = TypeVar("GotT", bound=AnyLayer)
RunPromptT = DefaultTypeVar("RunPromptT", default=AllPromptTypes)
RunUserPromptT = DefaultTypeVar("RunUserPromptT", default=AllUserPromptTypes)
RunToolT = DefaultTypeVar("RunToolT", default=AllToolTypes)


class CompositorRun(Generic[RunPromptT, RunUserPromptT, RunToolT]):
    """What `Compositor.enter` yields. Prompts and tools are read while it lasts, the snapshot after it."""

    def __init__(self, nodes: Sequence[LayerNode], made: Made, transformers: Transformers) -> None:
        self.slots = made.slots
        self._nodes, self._made, self._transformers = nodes, made, transformers
        self._snapshot: CompositorSessionSnapshot | None = None
        self._own_snapshot: Snapshot | None = None
        self._ended = False

    @property
    def snapshot(self) -> Snapshot | None:
        """How the layers were left, once they were, in the own format; None before. It has types, versions, an id and
        a parent, and may be resumed once."""
        if self._ended and self._own_snapshot is None:
            self._own_snapshot = taken(self._nodes, self.slots, self.parent)
        return self._own_snapshot

    @property
    def parent(self) -> str | None:
        """The id of the snapshot that it was resumed from, if it has one."""
        return None if self._made.plan is None else self._made.plan.found.id

    @property
    def dropped(self) -> Mapping[str, LayerRunSlot]:
        """What the rules had deleted when the run was entered."""
        return self._made.dropped

    @property
    def resumed_from(self) -> SnapshotDiff | None:
        """What resuming did to each layer; None where all are new."""
        return None if self._made.plan is None else self._made.plan.diff

    @property
    def session_snapshot(self) -> CompositorSessionSnapshot | None:
        """How the layers were left, once they were, as version 1; None before."""
        if self._ended and self._snapshot is None:
            self._snapshot = self._taken()
        return self._snapshot

    @overload
    def get_layer(self, name: str) -> AnyLayer: ...

    @overload
    def get_layer(self, name: str, layer_type: type[GotT]) -> GotT: ...

    def get_layer(self, name: str, layer_type: type[AnyLayer] | None = None) -> AnyLayer:
        """The layer of a node, checked to be of a class if one is given.

        Raises:
            KeyError: There is no such node.
            TypeError: The layer is of another class.
        """
        layer = self._slot(name).layer
        if layer_type is not None and not isinstance(layer, layer_type):
            raise TypeError(f"Layer '{name}' must be {layer_type.__name__}, got {type(layer).__name__}")
        return layer

    def suspend_on_exit(self) -> None:
        """Suspend every layer when the run ends. RuntimeError when it has ended."""
        self._intend(self.slots, ExitIntent.SUSPEND)

    def delete_on_exit(self) -> None:
        """Delete every layer when the run ends, which is the default. RuntimeError when it has ended."""
        self._intend(self.slots, ExitIntent.DELETE)

    def suspend_layer_on_exit(self, name: str) -> None:
        """Suspend one layer. KeyError for an unknown node, RuntimeError when the run has ended."""
        self._intend([name], ExitIntent.SUSPEND)

    def delete_layer_on_exit(self, name: str) -> None:
        """Delete one layer. KeyError for an unknown node, RuntimeError when the run has ended."""
        self._intend([name], ExitIntent.DELETE)

    def snapshot_session(self) -> CompositorSessionSnapshot:
        """The layers as they were left. RuntimeError while any is active: its state is in use."""
        active = [name for name, slot in self.slots.items() if slot.lifecycle_state is LifecycleState.ACTIVE]
        if active:
            raise RuntimeError(f"Cannot snapshot active compositor run layers: {', '.join(active)}")
        return self._taken()

    @property
    def prompts(self) -> list[RunPromptT]:
        """Prefixes in the order of the graph, then suffixes, the last node's first. RuntimeError after the run."""
        layers = self._layers()
        wrapped = [layer.wrap_prompt(each) for layer in layers for each in layer.prefix_prompts]
        wrapped += [layer.wrap_prompt(each) for layer in reversed(layers) for each in layer.suffix_prompts]
        return self._transformers.of_prompts(wrapped)

    @property
    def user_prompts(self) -> list[RunUserPromptT]:
        """User prompts in the order of the graph. RuntimeError after the run."""
        wrapped = [layer.wrap_user_prompt(each) for layer in self._layers() for each in layer.user_prompts]
        return self._transformers.of_user_prompts(wrapped)

    @property
    def tools(self) -> list[RunToolT]:
        """Tools in the order of the graph. RuntimeError after the run, ValueError as `tool_names` says."""
        wrapped = [layer.wrap_tool(each) for layer in self._layers() for each in layer.tools]
        check_tool_names(wrapped)
        return self._transformers.of_tools(wrapped)

    @property
    def prompt_transformer(self) -> CompositorTransformer[Any, RunPromptT] | None:
        """What the tagged prompts pass, if anything."""
        return self._transformers.prompts

    @property
    def user_prompt_transformer(self) -> CompositorTransformer[Any, RunUserPromptT] | None:
        """What the tagged user prompts pass, if anything."""
        return self._transformers.user_prompts

    @property
    def tool_transformer(self) -> CompositorTransformer[Any, RunToolT] | None:
        """What the tagged tools pass, if anything."""
        return self._transformers.tools

    def end(self) -> None:
        """The layers have been left: from now on there is a snapshot, and nothing else to read. `enter` calls it."""
        self._ended = True

    def end_unentered(self) -> None:
        """The same where entering failed: what was to be dropped may still be suspended."""
        plan, dropped, self._ended = self._made.plan, self._made.dropped, True
        self._own_snapshot = taken_after_failed_entry(self._nodes, plan, self.slots, dropped)
        if dropped:
            layers = [
                LayerSessionSnapshot(name=left.name, lifecycle_state=left.lifecycle, runtime_state=left.state)
                for left in self._own_snapshot.layers
            ]
            self._snapshot = CompositorSessionSnapshot(layers=layers)

    def _layers(self) -> list[AnyLayer]:
        if self._ended:
            raise RuntimeError("The run of the layers has ended: read its prompts and tools while it lasts")
        return [slot.layer for slot in self.slots.values()]

    def _slot(self, name: str) -> LayerRunSlot:
        slot = self.slots.get(name)
        if slot is None:
            raise KeyError(f"Layer '{name}' is not defined")
        return slot

    def _intend(self, names: Iterable[str], intent: ExitIntent) -> None:
        slots = [(name, self._slot(name)) for name in names]
        for name, slot in slots:
            if slot.lifecycle_state is not LifecycleState.ACTIVE:
                state = slot.lifecycle_state
                raise RuntimeError(f"Layer '{name}' is {state}: only an active one can be told how to end")
        for _, slot in slots:
            slot.exit_intent = intent

    def _taken(self) -> CompositorSessionSnapshot:
        return CompositorSessionSnapshot(layers=[slot.snapshot(name) for name, slot in self.slots.items()])


AnyRun = CompositorRun[Any, Any, Any]
