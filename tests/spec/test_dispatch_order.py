"""What a lane sends next: by priority, in turn between tenants and runs, within a window that claims clock."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.scheduler.dispatch.fair import FairQueue
from dagbok.agents.scheduler.dispatch.lane import LONGEST_DELAY_S, SCHEDULE_TO_START_S, WINDOW, LaneState, Offer, grown
from dagbok.agents.scheduler.dispatch.tenants import TenantPlaces
from tests.support.scale import scale

Item = tuple[int, str, str, int]
"""Priority, tenant, run, number."""

items = st.lists(st.tuples(st.integers(-2, 2), st.sampled_from("ab"), st.sampled_from("123")), max_size=60)


def filled(wanted: list[tuple[int, str, str]]) -> FairQueue[Item]:
    """A queue with these items, numbered in their order."""
    queue = FairQueue[Item]()
    for number, (priority, tenant, run) in enumerate(wanted):
        queue.put((priority, tenant, tenant + run, number), priority=priority, tenant=tenant, run=tenant + run)
    return queue


def drained(queue: FairQueue[Item]) -> list[Item]:
    """All items in their order."""
    return [queue.pop() for _ in range(len(queue))]


@given(items)
@settings(max_examples=scale(200, 5_000), deadline=None)
def test_nothing_is_lost_and_larger_priorities_go_first(wanted: list[tuple[int, str, str]]) -> None:
    order = drained(filled(wanted))
    assert sorted(number for *_, number in order) == list(range(len(wanted)))
    priorities = [priority for priority, *_ in order]
    assert priorities == sorted(priorities, reverse=True)


@given(items)
@settings(max_examples=scale(200, 5_000), deadline=None)
def test_tenants_and_their_runs_take_turns_and_a_run_keeps_its_order(wanted: list[tuple[int, str, str]]) -> None:
    levels = defaultdict[int, list[Item]](list)
    for item in drained(filled(wanted)):
        levels[item[0]].append(item)
    for level in levels.values():
        _takes_turns([tenant for _, tenant, _, _ in level])
        for tenant in "ab":
            _takes_turns([run for _, owner, run, _ in level if owner == tenant])
        for run in {run for _, _, run, _ in level}:
            numbers = [number for _, _, name, number in level if name == run]
            assert numbers == sorted(numbers)


def _takes_turns(names: list[str]) -> None:
    """As long as two names have something left, neither is ahead of the other by more than one."""
    left, taken = Counter(names), Counter[str]()
    for name in names:
        taken[name] += 1
        waiting = [other for other in left if taken[other] < left[other] or other == name]
        assert max(taken[other] for other in waiting) - min(taken[other] for other in waiting) <= 1


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 1), st.sampled_from("ab"), st.sampled_from("12")))))
@settings(max_examples=scale(200, 5_000), deadline=None)
def test_size_counts_what_waits(steps: list[tuple[int, str, str] | None]) -> None:
    queue, expected = FairQueue[int](), 0
    for step in steps:
        if step is not None:
            queue.put(1, priority=step[0], tenant=step[1], run=step[2])
            expected += 1
        elif expected:
            queue.pop()
            expected -= 1
        assert len(queue) == expected


def offer(number: int) -> Offer:
    """An attempt."""
    return Offer("run:r", f"t{number}", 1, "acme", 0)


def lane_state(window: int = WINDOW, schedule_to_start_s: float = SCHEDULE_TO_START_S) -> LaneState:
    """A lane without limits of tenants."""
    return LaneState(("work", "default"), TenantPlaces(), window, schedule_to_start_s)


def sent(lane: LaneState, now_s: float) -> list[str]:
    """Tasks that the lane sends now."""
    tasks = []
    while (found := lane.next(now_s)) is not None:
        lane.sent(found, now_s)
        tasks.append(found.task)
    return tasks


def test_the_window_is_filled_and_a_claim_opens_a_place() -> None:
    lane = lane_state(window=3)
    for number in range(5):
        lane.offer(offer(number))
    assert sent(lane, 0) == ["t0", "t1", "t2"]
    lane.settled(offer(1).key)
    assert sent(lane, 0) == ["t3"]
    assert sent(lane, 0) == []


def test_what_is_not_claimed_goes_out_again_later_each_time_and_never_twice_at_once() -> None:
    lane = lane_state(schedule_to_start_s=30)
    lane.offer(offer(0))
    times = []
    now_s = 0.0
    while now_s < 2_000:
        times += [now_s] * len(sent(lane, now_s))
        now_s += 1
    assert times == [0, 30, 90, 210, 450, 930, 1_530]
    lane.settled(offer(0).key)
    assert sent(lane, 10_000) == []
    assert lane.next_due_s() is None or lane.next_due_s() == 2_130


def test_a_lane_says_when_something_is_due() -> None:
    lane = lane_state(schedule_to_start_s=30)
    assert lane.next_due_s() is None
    lane.offer(offer(0))
    assert sent(lane, 5) == ["t0"]
    assert lane.next_due_s() == 35


def test_what_a_process_does_not_serve_leaves_the_window_and_comes_again_later_each_time() -> None:
    lane = lane_state(window=1, schedule_to_start_s=1_000)
    for number in range(2):
        lane.offer(offer(number))
    assert sent(lane, 0) == ["t0"]
    lane.unserved(offer(0), 0)
    assert sent(lane, 0) == ["t1"]
    lane.settled(offer(1).key)
    times = []
    for now_s in range(20):
        if sent(lane, now_s):
            times.append(now_s)
            lane.unserved(offer(0), now_s)
    assert times == [1, 3, 7, 15]


def test_what_is_withdrawn_leaves_the_window_and_goes_out_when_it_is_offered_again() -> None:
    lane = lane_state(window=1)
    for number in range(2):
        lane.offer(offer(number))
    assert sent(lane, 0) == ["t0"]
    assert lane.withdraw(offer(0).key)
    assert sent(lane, 0) == ["t1"]
    assert not lane.withdraw(offer(0).key)
    assert sent(lane, 31) == ["t1"]
    lane.settled(offer(1).key)
    lane.offer(offer(0))
    assert sent(lane, 31) == ["t0"]


def test_delays_are_bounded() -> None:
    assert [grown(1.0, times) for times in (0, 1, 2, 10_000)] == [1, 2, 4, LONGEST_DELAY_S]
