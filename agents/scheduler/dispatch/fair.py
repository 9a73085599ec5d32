"""The order of what waits for one lane: by priority, then in turn between tenants, then in turn between their runs. A
tenant that may have no more now is set aside and holds back nobody."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
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
        self._aside: dict[str, dict[int, Runs[T]]] = {}
        self._aside_order: dict[str, list[int]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, item: T, *, priority: int, tenant: str, run: str) -> None:
        """Larger priorities first."""
        aside = self._aside.get(tenant)
        runs = None if aside is None else aside.get(priority)
        if runs is None:
            runs = self._level(priority).setdefault(tenant, OrderedDict())
        runs.setdefault(run, deque()).append(item)
        self._size += 1

    def pop(self) -> T:
        """The next item that is not set aside; its tenant and its run go to the back of their lines. Raises
        `IndexError` when there is none."""
        if not self._order:
            raise IndexError("nothing waits")
        level = self._levels[-self._order[0]]
        tenant, runs = next(iter(level.items()))
        run, items = next(iter(runs.items()))
        item = items.popleft()
        self._size -= 1
        _to_back(runs, run, empty=not items)
        _to_back(level, tenant, empty=not runs)
        self._drop_empty(level)
        return item

    def set_aside(self, is_full: Callable[[str], bool]) -> tuple[list[str], bool]:
        """Set aside whoever is next and full. Those tenants, and whether there is an item to pop."""
        tenants: list[str] = []
        while self._order:
            priority = -self._order[0]
            level = self._levels[priority]
            tenant = next(iter(level))
            if not is_full(tenant):
                return tenants, True
            self._aside.setdefault(tenant, {})[priority] = level.pop(tenant)
            heappush(self._aside_order.setdefault(tenant, []), -priority)
            tenants.append(tenant)
            self._drop_empty(level)
        return tenants, False

    def wake(self, tenant: str) -> bool:
        """The largest priority of what was set aside of a tenant waits for its turn again, last in the line. Whether
        more of it is set aside."""
        order = self._aside_order.get(tenant)
        if order is None:
            return False
        priority = -heappop(order)
        self._level(priority)[tenant] = self._aside[tenant].pop(priority)
        if not order:
            del self._aside_order[tenant], self._aside[tenant]
        return bool(order)

    def _level(self, priority: int) -> Tenants[T]:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = OrderedDict()
            heappush(self._order, -priority)
        return level

    def _drop_empty(self, level: Tenants[T]) -> None:
        """Only the level of the largest priority is ever taken from."""
        if not level:
            del self._levels[-heappop(self._order)]


def _to_back(line: OrderedDict[str, T], key: str, *, empty: bool) -> None:
    if empty:
        del line[key]
    else:
        line.move_to_end(key)
