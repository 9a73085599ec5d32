"""What the owner of a data folder has beside: it decides, buries the dead, and projects.

The projector, a process of its own, makes tables of the events.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from dagbok.agents.hosting.children import ProjectorChild
from dagbok.agents.hosting.deciding import Deciding
from dagbok.agents.hosting.folder import PARTITION
from dagbok.agents.hosting.membership import Membership, nobody_cares
from dagbok.agents.hosting.presence import beat
from dagbok.agents.hosting.services import Services
from dagbok.agents.hosting.snapshots import keeper_of
from dagbok.agents.hosting.undertaker import Undertaker
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner
from dagbok.agents.scheduler.recover import Recovery

ProjectorPlace = Literal["process", "none"]


class Ownership:
    """Of one process, from the moment it has the lock of the folder until it gives it back."""

    def __init__(
        self,
        member: Membership,
        failure: asyncio.Future[BaseException],
        *,
        projector: ProjectorPlace,
        snapshot_bytes: int,
        tenant_limit: TenantLimit | None = None,
    ) -> None:
        self._member, self._projector = member, projector
        # That there are no tables now is no reason to decide nothing: the projector's end is nobody's failure.
        self._aside = Services(asyncio.get_running_loop().create_future())
        self._deciding = Deciding(
            member.log,
            PARTITION,
            member.queue,
            keeper_of(member.folder, member.log, snapshot_bytes),
            failure,
            process=member.process,
            log_refuses=True,
            lives=member.lives,
            tenant_limit=tenant_limit,
        )

    @property
    def owner(self) -> Owner:
        """Who decides."""
        return self._deciding.owner

    @property
    def outputs(self) -> SchedulerOutputs:
        """What leaves it."""
        return self._deciding.outputs

    @property
    def recovery(self) -> Recovery:
        """What it folds with."""
        return self._deciding.recovery

    async def begin(self) -> None:
        """Fold the log, then decide. Raises what makes that impossible."""
        self._deciding.services.serve(beat(self._member.folder))
        await self._deciding.begin()

    def go_on(self) -> None:
        """The log is folded: everything that follows from the state begins."""
        member = self._member
        self._deciding.go_on()
        undertaker = Undertaker(
            member.log, PARTITION, self.owner, member.locks, member.process, seems_gone=member.somebody_is_gone
        )
        self._deciding.services.serve(undertaker.run())
        member.lost = self._deciding.lost
        if self._projector == "process":
            self._aside.serve(ProjectorChild(member.folder).run())

    async def end(self) -> None:
        """Decide no more. When this returns nothing is written any more, so that the lock may go to another."""
        self._member.lost = nobody_cares
        await self._deciding.services.end()
        await self._aside.end()
        await self._deciding.end()

    async def flush(self) -> None:
        """Send what was traced; may take seconds."""
        await self._deciding.flush()
