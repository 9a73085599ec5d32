"""A worker that is made of layers, with its session in the log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from dagbok.agents.layers.compositor import Compositor
from dagbok.agents.layers.durable.keeping import LayersKeeper
from dagbok.agents.layers.durable.written import snapshot_of_written
from dagbok.agents.layers.models import LayerConfigInput
from dagbok.agents.layers.preparing import check_configs
from dagbok.agents.layers.run import CompositorRun
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
    suspended, unless the loop wants something else of `run`, and put down once more, also when the loop raises. What is
    cancelled from outside is left as it was last put down.

    `configs`: by node, or a function that makes them of the task. Those that are given by node are checked at once: the
    errors are those of `preparing.prepare`."""

    def __init__(
        self,
        compositor: Compositor[Any, Any, Any],
        loop: Loop,
        *,
        configs: Configs | Callable[[TaskContext], Configs] | None = None,
    ) -> None:
        if configs is not None and not callable(configs):
            check_configs(compositor.nodes, configs)
        self._compositor, self._loop, self._configs = compositor, loop, configs

    def worker(self, key: str, *, concurrency: int | None = None) -> Worker:
        """The worker of `key`, to be registered like any other."""
        return worker(key, concurrency=concurrency)(self.work)

    async def work(self, task: TaskContext) -> Outcome:
        """One attempt. Raises what the loop, a hook or a resource raises; `Terminal` for a session of other layers."""
        nodes, configs = self._compositor.nodes, self._configs
        given = configs(task) if callable(configs) else configs
        written = task.session.load()
        try:
            snapshot = None if written is None else snapshot_of_written(written, nodes)
        except Refused as refused:
            raise Terminal(refused.message) from refused
        keeper: LayersKeeper | None = None
        try:
            async with self._compositor.enter(configs=given, session_snapshot=snapshot) as run:
                run.suspend_on_exit()
                keeper = LayersKeeper(nodes, run.slots, task.session)
                if written is not None:
                    keeper.resumed(written)
                outcome = await self._loop(LayeredAttempt(run, task, keeper))
        except Exception as error:
            if keeper is not None:
                await _last(keeper, error)
            raise
        await keeper.put_down()
        return outcome


async def _last(keeper: LayersKeeper, error: Exception) -> None:
    """The error of the loop says more than that of keeping what it left."""
    try:
        await keeper.put_down()
    except Exception as lost:
        error.add_note(f"Also, the session of the task could not be put down: {lost}")
