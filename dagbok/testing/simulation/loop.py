"""An event loop in which one seed gives one history.

Time is virtual: when nothing is ready, it jumps to the next timer. Several simulated processes share the loop; which
of them runs next is chosen by a seeded `Random`. Within a process callbacks keep the order in which they were
scheduled, as asyncio promises. A process can vanish between any two callbacks, or stand still for a while. There are no
threads and no real I/O.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import Future, Handle, Task, TimerHandle
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from random import Random
from typing import Any, NoReturn, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_CALLBACKS = 3_000_000
CLOSE_TRIES = 20
FOREIGN_IO = (
    *("add_reader", "add_writer", "connect_accepted_socket", "create_connection", "create_datagram_endpoint"),
    *("create_server", "create_unix_connection", "create_unix_server", "getaddrinfo", "getnameinfo"),
    *("connect_read_pipe", "connect_write_pipe", "sendfile", "sock_accept", "sock_connect", "sock_recv"),
    *("sock_recv_into", "sock_sendall", "sock_sendfile", "start_tls", "subprocess_exec", "subprocess_shell"),
    "add_signal_handler",
)


class Place:
    """A simulated process, as the loop sees it: what is ready to run in it, and the context that its tasks share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: deque[Handle] = deque()
        self.alive = True
        self.frozen = False
        self.on_death: Callable[[], None] = lambda: None
        self.context = copy_context()
        self.context.run(_place.set, self)


_place: ContextVar[Place] = ContextVar("place")


def here() -> Place:
    """The simulated process that runs now. Raises `LookupError` outside of a simulation."""
    return _place.get()


async def die() -> NoReturn:
    """The simulated process that runs this vanishes, here and now, as one does that runs out of memory."""
    here().on_death()
    await asyncio.Event().wait()
    raise AssertionError("it came back")


class Stuck(Exception):
    """Nothing will ever happen again, or far too much happens at once."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """See the module. `outside` is the place of whatever belongs to no simulated process: it never dies."""

    def __init__(self, random: Random) -> None:
        self._random = random.random
        self._now_s = 0.0
        self._busy: list[Place] = []
        self._timers: list[tuple[float, int, TimerHandle, Context]] = []
        self._count = self._callbacks = 0
        self._tasks: list[Task[Any]] = []
        self.outside = Place("outside")
        self.errors: list[str] = []

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now_s

    def kill(self, place: Place) -> None:
        """The process vanishes: whatever it was about to do stays undone."""
        place.alive = False
        place.ready.clear()
        if place in self._busy:
            self._busy.remove(place)

    def freeze(self, place: Place) -> None:
        """The process stands still until `thaw`; it does not know."""
        place.frozen = True
        if place in self._busy:
            self._busy.remove(place)

    def thaw(self, place: Place) -> None:
        """The process goes on."""
        place.frozen = False
        if place.ready:
            self._busy.append(place)

    def spawn(self, place: Place, work: Coroutine[Any, Any, T]) -> Task[T]:
        """Start a task in a simulated process."""
        return self.create_task(work, context=place.context.copy())

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until the future is done. Raises `Stuck`."""
        asyncio._set_running_loop(self)
        try:
            waited: Future[T] = asyncio.ensure_future(future, loop=self)  # type: ignore[arg-type]
            while not waited.done():
                self._step()
            return waited.result()
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        """Bury every task that is not done, those of processes that vanished too, in the order of their birth."""
        asyncio._set_running_loop(self)
        try:
            for task in self._tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    _close(task)
            self._tasks.clear()
            self._timers.clear()
        finally:
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        busy = self._busy
        if not busy:
            self._advance()
            return
        index = int(self._random() * len(busy)) if len(busy) > 1 else 0
        place = busy[index]
        handle = place.ready.popleft()
        if not place.ready:
            busy[index] = busy[-1]
            busy.pop()
        if not handle.cancelled():
            handle._run()

    def _advance(self) -> None:
        while self._timers:
            when, _, handle, context = heappop(self._timers)
            if handle.cancelled():
                continue
            self._now_s = max(self._now_s, when)
            self._enqueue(handle, context)
            if self._busy:
                return
        raise Stuck("everybody waits, and nothing will ever happen")

    def _enqueue(self, handle: Handle, context: Context) -> None:
        place = context.get(_place, self.outside)
        if not place.alive:
            return
        if not place.ready and not place.frozen:
            self._busy.append(place)
        place.ready.append(handle)
        self._callbacks += 1
        if self._callbacks > MAX_CALLBACKS:
            raise Stuck(f"more than {MAX_CALLBACKS} callbacks in {self._now_s:.0f} virtual seconds")

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> Handle:
        context = context or copy_context()
        handle = Handle(callback, args, self, context)
        self._enqueue(handle, context)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> TimerHandle:
        context = context or copy_context()
        handle = TimerHandle(when, callback, args, self, context)
        self._count += 1
        heappush(self._timers, (when, self._count, handle, context))
        return handle

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        """It is skipped when its time comes."""

    def create_future(self) -> Future[Any]:
        return Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> Task[Any]:
        task: Task[Any] = Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> Future[T]:
        """What would run in a thread runs in one piece, soon, in the same simulated process."""
        done = self.create_future()

        def run() -> None:
            try:
                result = func(*args)
            except Vanished:
                return
            except BaseException as error:
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(result)

        self.call_later(self._random() * 0.003, run)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A callback raised: nobody may do that. What nobody asked a task for is its own affair."""
        if "handle" in context:
            self.errors.append(f"{context['message']}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    async def shutdown_asyncgens(self) -> None:
        """There is nothing to wait for."""


def simulated_loop(random: Random) -> SimulatedLoop:
    """A fresh loop. What it lacks of an event loop is I/O, which `FOREIGN_IO` refuses."""
    return SimulatedLoop(random)  # type: ignore[abstract]


class Vanished(BaseException):
    """Raised in a thread of a process that vanishes: nothing after it happens."""


def foreign_io(name: str) -> Callable[..., NoReturn]:
    """A method of the loop that leaves the simulation."""

    def refuse(self: SimulatedLoop, *args: object, **kwargs: object) -> NoReturn:
        self.errors.append(f"{name} was called: a simulated worker or verifier does no real I/O, give it a fake")
        raise RuntimeError(self.errors[-1])

    return refuse


for _name in FOREIGN_IO:
    setattr(SimulatedLoop, _name, foreign_io(_name))


def _close(task: Task[Any]) -> None:
    """Whatever a coroutine still awaits while it is closed is not awaited."""
    coroutine = task.get_coro()
    for _ in range(CLOSE_TRIES):
        with contextlib.suppress(BaseException):
            coroutine.close()
            return
