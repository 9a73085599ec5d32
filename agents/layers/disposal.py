"""Deleting what is suspended: as much of it as can be, and what cannot stays suspended with what it depends on."""

from __future__ import annotations

from collections.abc import Mapping

from dagbok.agents.layers.failing import ending
from dagbok.agents.layers.lifecycle import ExitIntent
from dagbok.agents.layers.scopes import Scopes
from dagbok.agents.layers.slot import LayerRunSlot


class Disposal(Scopes):
    """Resumes layers in order and deletes them in reverse order.

    One that fails does not keep the others from it, unless it needs them: a layer that cannot be entered takes those
    that depend on it along, and what a layer depends on that is still suspended is suspended again. So all of it can
    be tried again.
    """

    def __init__(self, slots: Mapping[str, LayerRunSlot]) -> None:
        """Take the slots in order."""
        super().__init__(slots)
        self._failed: list[BaseException] = []

    async def enter(self) -> None:
        """Enter what can be entered. It raises only what is no Exception (a cancellation); then all that was entered is
        suspended again."""
        missing: set[str] = set()
        for name, slot in self.slots.items():
            slot.exit_intent = ExitIntent.DELETE
            if slot.needs & missing:
                self._stays(name, slot, missing)
                continue
            try:
                await self._enter_slot(slot)
            except Exception as error:
                slot.exit_error = error
                self._failed += [error, *await self._close_resource(name, slot, error)]
                self._stays(name, slot, missing)
            except BaseException as error:
                self._failed += await self._close_resource(name, slot, error)
                self._needed |= self.slots.keys()
                self._failed += await self._leave(list(self.slots.items()), error)
                found = ending(error, self._failed)
                if found is None or found is error:
                    raise
                raise found from error

    async def leave(self, error: BaseException | None) -> list[BaseException]:
        """Delete what was entered, in reverse order. All errors, those of entering first."""
        return self._failed + await super().leave(error)

    def _stays(self, name: str, slot: LayerRunSlot, missing: set[str]) -> None:
        missing.add(name)
        self._needed |= slot.needs
