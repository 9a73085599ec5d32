"""A worker that is made of layers, with its session in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from dagbok.agents.layers.compositor import Compositor
from dagbok.agents.layers.durable.apart import apart
from dagbok.agents.layers.durable.disposing import dispose_of_session
from dagbok.agents.layers.durable.failed import left_unentered, put_down_beside, put_down_last, refusal
from dagbok.agents.layers.durable.keeping import LayersKeeper
from dagbok.agents.layers.durable.written import layers_of_session
from dagbok.agents.layers.failing import own_snapshot_of
from dagbok.agents.layers.models import LayerConfigInput
from dagbok.agents.layers.preparing import check_configs
from dagbok.agents.layers.run import CompositorRun
from dagbok.agents.layers.scopes import is_idle
from dagbok.agents.layers.snapshots.rules import NO_RULES, ResumeRules
from dagbok.agents.workers.context import TaskContext
from dagbok.agents.workers.definitions import Worker, worker
from dagbok.agents.workers.terminal import Terminal
from dagbok.events.errors import Refused
from dagbok.events.specs import Outcome

Configs: TypeAlias = Mapping[str, LayerConfigInput]


class LayeredAttempt:
    """What the loop of a layered worker is handed: the layers of this attempt and the task."""

    def __init__(self, run: CompositorRun[Any, Any, Any], task: TaskContext, keeper: LayersKeeper) -> None:
        self.run, self.task, self._keeper = run, task, keeper

    async def put_down(self) -> None:
        """End a turn: back when the log has the layers as they are now. An attempt that ends behind this, in whatever
        way, is followed by one that goes on from here.

        Raises `Refused` when the attempt is over, `Terminal` when the run takes no more bytes."""
        await self._keeper.put_down()


Loop: TypeAlias = Callable[[LayeredAttempt], Awaitable[Outcome]]


class LayeredWorker:
    """The plan of an agent (`compositor`) and the `loop` that runs it, as the worker of tasks.

    Each attempt enters the layers: anew for the first, then with what the session of the task has. At its end they are
    suspended, unless the loop wants something else of `run`, and put down once more, also when the loop raises or is
    cancelled; but what a run takes from an attempt that it has ended, it refuses.

    `configs`: by node, or a function that makes them of the task. Those that are given by node are checked at once: the
    errors are those of `preparing.prepare`. `resume`: how sessions of other layers, types and state versions are gone
    on with; without rules they end the task. What the rules drop is deleted at least once: a process may die between a
    delete hook and the log."""

    def __init__(
        self,
        compositor: Compositor[Any, Any, Any],
        loop: Loop,
        *,
        configs: Configs | Callable[[TaskContext], Configs] | None = None,
        resume: ResumeRules = NO_RULES,
    ) -> None:
        if configs is not None and not callable(configs):
            check_configs(compositor.nodes, configs)
        self._compositor, self._loop, self._configs, self._resume = compositor, loop, configs, resume

    def worker(self, key: str, *, concurrency: int | None = None) -> Worker:
        """The worker of `key`, to be registered like any other."""
        return worker(key, concurrency=concurrency)(self.work)

    def disposer(self, key: str, *, concurrency: int | None = None) -> Worker:
        """A worker of `key` for tasks that delete what others left suspended: such a task begins with the fork of a
        session (`TaskSpec.session`, `Dagbok.fork`), runs the delete hooks and hands in `{"deleted": [name, …]}`.

        An attempt that fails puts down what is left, and the next one tries that; no layer is deleted again whose hook
        succeeded, unless a process died before the log had it."""
        return worker(key, concurrency=concurrency)(self.dispose)

    async def work(self, task: TaskContext) -> Outcome:
        """One attempt. Raises what the loop, a hook or a resource raises; `Terminal` for a session of other layers."""
        written, unread = apart(await task.session.fetch_unread(), self._compositor.nodes)
        try:
            found = None if written is None else layers_of_session(written, unread)
        except Refused as refused:
            raise Terminal(refused.message) from refused
        keeper: LayersKeeper | None = None
        entering = self._compositor.enter(configs=self._given(task), session_snapshot=found, resume=self._resume)
        try:
            async with entering as run:
                run.suspend_on_exit()
                keeper = LayersKeeper(self._compositor.nodes, run.slots, task.session)
                changed = (diff := run.resumed_from) is not None and keeper.resumed(written, unread, diff)
                if changed or not all(is_idle(slot.layer) for slot in run.slots.values()):
                    await keeper.put_down()  # what hooks made outside is known to whoever comes after this attempt
                outcome = await self._loop(LayeredAttempt(run, task, keeper))
        except (Exception, asyncio.CancelledError) as error:
            if keeper is not None:
                await put_down_beside(error, keeper.put_down())
            else:
                await self._not_entered(task, error)
            raise
        await put_down_last(keeper.put_down())
        return outcome

    async def dispose(self, task: TaskContext) -> Outcome:
        """One attempt at deleting what the session of this task has suspended; see `disposer`."""
        return await dispose_of_session(task, self._compositor, self._given(task), self._resume)

    def _given(self, task: TaskContext) -> Configs | None:
        return self._configs(task) if callable(self._configs) else self._configs

    async def _not_entered(self, task: TaskContext, error: BaseException) -> None:
        refused = refusal(error)
        if refused is not None:
            raise refused from error
        left = own_snapshot_of(error)
        if left is not None and (written := await task.session.fetch()) is not None:
            await put_down_beside(error, task.session.change(left_unentered(written, left)))
