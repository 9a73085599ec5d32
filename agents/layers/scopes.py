"""Entering the layers of a run in the order of the graph, and leaving them in reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from dagbok.agents.layers.failing import ending
from dagbok.agents.layers.layer import AnyLayer, Layer
from dagbok.agents.layers.lifecycle import ExitIntent, LifecycleState
from dagbok.agents.layers.slot import LayerRunSlot

NONE: Mapping[str, LayerRunSlot] = MappingProxyType({})
HOOKS = ("resource_context", "on_context_create", "on_context_resume", "on_context_suspend", "on_context_delete")


def is_idle(layer: AnyLayer) -> bool:
    """True for a layer without a hook or resource: entering and leaving it waits for nothing."""
    kind = type(layer)
    return all(getattr(kind, name) is getattr(Layer, name) for name in HOOKS)


class Scopes:
    """The slots of one run by name, in order. Those that are `dropped` are entered behind them, and deleted before the
    run begins."""

    def __init__(self, slots: Mapping[str, LayerRunSlot], dropped: Mapping[str, LayerRunSlot] = NONE) -> None:
        self.slots, self.dropped = slots, dropped
        self._needed: set[str] = set()
        self.overdue = False
        """True: time is up, and a step that is cancelled now is told as a TimeoutError."""

    def are_idle(self) -> bool:
        """True: no layer has a hook or a resource, and no task of their own is needed."""
        return all(is_idle(slot.layer) for slot in (*self.slots.values(), *self.dropped.values()))

    async def enter(self) -> None:
        """Enter every layer, then delete what is dropped.

        When one fails, it keeps its state and its resource is closed; the ones before are left: those that were
        suspended are suspended again, new ones are deleted. So are all when what is dropped cannot be deleted, and what
        that depends on. Until `begins` is called, leaving does the same. Raises that error, or as `failing` says.
        """
        entered: list[tuple[str, LayerRunSlot]] = []
        for name, slot in (*self.slots.items(), *self.dropped.items()):
            was = slot.lifecycle_state
            slot.exit_intent = ExitIntent.SUSPEND if was is LifecycleState.SUSPENDED else ExitIntent.DELETE
            try:
                await self._enter_slot(slot)
            except BaseException as error:
                later = await self._close_resource(name, slot, error)
                later += await self._leave(entered, error)
                found = ending(error, later)
                if found is None or found is error:
                    raise
                raise found from error
            entered.append((name, slot))
        if self.dropped:
            await self._delete_dropped(entered[: len(self.slots)])

    def begins(self) -> None:
        """The caller has the run: from now on leaving deletes what nobody wants suspended."""
        for slot in self.slots.values():
            slot.exit_intent = ExitIntent.DELETE

    async def leave(self, error: BaseException | None) -> list[BaseException]:
        """Leave every active layer, whatever fails on the way. `error` is that of the body.

        Returns:
            All errors of hooks, resources and states, in the order in which they happened.
        """
        return await self._leave(list(self.slots.items()), error)

    async def _delete_dropped(self, others: list[tuple[str, LayerRunSlot]]) -> None:
        for slot in self.dropped.values():
            slot.exit_intent = ExitIntent.DELETE
        errors = await self._leave(list(self.dropped.items()), None)
        if errors:
            errors += await self._leave(others, errors[0])
            failed = ending(None, errors)
            if failed is not None:
                raise failed

    async def _enter_slot(self, slot: LayerRunSlot) -> None:
        layer = slot.layer
        if type(layer).resource_context is not Layer.resource_context:
            context = layer.resource_context()
            await context.__aenter__()
            slot.active_resource_context = context
        if slot.lifecycle_state is LifecycleState.SUSPENDED:
            await layer.on_context_resume()
        else:
            await layer.on_context_create()
        slot.lifecycle_state = LifecycleState.ACTIVE

    async def _leave(
        self, slots: list[tuple[str, LayerRunSlot]], error: BaseException | None
    ) -> list[BaseException]:
        errors: list[BaseException] = []
        for name, slot in reversed(slots):
            if slot.lifecycle_state is LifecycleState.ACTIVE:
                found = await self._leave_slot(name, slot, error or next(iter(errors), None))
                slot.exit_error = next(iter(found), None)
                errors += found
        return errors

    async def _leave_slot(self, name: str, slot: LayerRunSlot, seen: BaseException | None) -> list[BaseException]:
        layer = slot.layer
        if name in self._needed and slot.delete_may_be_tried_again:
            slot.exit_intent = ExitIntent.SUSPEND
        if slot.exit_intent == ExitIntent.SUSPEND:
            hook, after = layer.on_context_suspend, LifecycleState.SUSPENDED
        else:
            hook, after = layer.on_context_delete, LifecycleState.CLOSED
        errors = await self._step(hook, f"{slot.exit_intent} hook of layer '{name}'")
        again = bool(errors) and slot.delete_may_be_tried_again
        slot.lifecycle_state = LifecycleState.SUSPENDED if again else after
        if slot.lifecycle_state is LifecycleState.SUSPENDED:
            self._needed |= slot.needs
        errors += await self._close_resource(name, slot, seen or next(iter(errors), None))
        try:
            slot.keep_state()
        except Exception as invalid:
            invalid.add_note(f"The state of layer '{name}' at the end of the run is not kept; the last valid one is.")
            errors.append(invalid)
        return errors

    async def _close_resource(self, name: str, slot: LayerRunSlot, seen: BaseException | None) -> list[BaseException]:
        context, slot.active_resource_context = slot.active_resource_context, None
        if context is None:
            return []

        async def close() -> None:
            kind, trace = (None, None) if seen is None else (type(seen), seen.__traceback__)
            await context.__aexit__(kind, seen, trace)

        return [each for each in await self._step(close, f"resource of layer '{name}'") if each is not seen]

    async def _step(self, step: Callable[[], Awaitable[None]], what: str) -> list[BaseException]:
        try:
            await step()
        except asyncio.CancelledError as cut:
            if not self.overdue:
                return [cut]
            late = TimeoutError(f"The {what} was cut: leaving the layers took too long after a cancellation")
            late.__cause__ = cut
            return [late]
        except BaseException as error:
            return [error]
        return []
