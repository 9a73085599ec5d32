"""The order of what waits for one lane: by priority, then in turn between tenants, then in turn between their runs."""

from __future__ import annotations

from collections import OrderedDict, deque
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

Runs = OrderedDict[str, deque[T]]
Tenants = OrderedDict[str, "Runs[T]"]


class FairQueue(Generic[T]):
    """Put and pop cost the same however much waits. Within a run items keep their order."""

    def __init__(self) -> None:
        self._levels: dict[int, Tenants[T]] = {}
        self._order: list[int] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, item: T, *, priority: int, tenant: str, run: str) -> None:
        """Larger priorities first."""
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = OrderedDict()
            heappush(self._order, -priority)
        level.setdefault(tenant, OrderedDict()).setdefault(run, deque()).append(item)
        self._size += 1

    def pop(self) -> T:
        """The next item; its tenant and its run go to the back of their lines. Raises `IndexError` when empty."""
        if not self._size:
            raise IndexError("nothing waits")
        level = self._levels[-self._order[0]]
        tenant, runs = next(iter(level.items()))
        run, items = next(iter(runs.items()))
        item = items.popleft()
        self._size -= 1
        _to_back(runs, run, empty=not items)
        _to_back(level, tenant, empty=not runs)
        if not level:
            del self._levels[-heappop(self._order)]
        return item


def _to_back(line: OrderedDict[str, T], key: str, *, empty: bool) -> None:
    if empty:
        del line[key]
    else:
        line.move_to_end(key)
