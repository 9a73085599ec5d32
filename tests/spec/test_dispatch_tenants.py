"""Limits of tenants: so many attempts are sent or claimed at once in a partition, and a tenant that has them all holds
back nobody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.agents.queue import Lane, lane_of
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.dispatch.fair import FairQueue
from dagbok.agents.scheduler.dispatch.lane import LaneState, Offer
from dagbok.agents.scheduler.dispatch.tenants import TenantPlaces
from dagbok.events.envelope import Sender
from dagbok.events.run import commands as c
from dagbok.testing import CLAIM, act, candidate, failure, start, task
from tests.spec.test_dispatcher import Scheduler
from tests.support.scale import scale

LIMITS = {"acme": 2}
RIVAL = Sender("rival", "docs", "user:bob")


class Limited(Scheduler):
    """A partition in which acme may have two attempts at once."""

    def __init__(self, window: int = 256, limit_of: Callable[[str], int | None] = LIMITS.get) -> None:
        super().__init__(window)
        self.dispatcher = Dispatcher(self.queue, self.log, lambda: self.now_s, window=window, tenant_limit=limit_of)


async def begun(*names: str, pools: tuple[str, ...] = ("default",), window: int = 256) -> Limited:
    """A run of acme with these tasks, spread over the pools."""
    scheduler = Limited(window)
    tasks = [task(name, pool=pools[number % len(pools)]) for number, name in enumerate(names)]
    await scheduler.tell(start(*tasks))
    return scheduler


async def test_no_more_is_sent_than_the_tenant_may_have_and_a_result_lets_the_next_go() -> None:
    scheduler = await begun("a", "b", "c", "d")
    assert scheduler.queue.new() == [("a", 1), ("b", 1)]
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    assert scheduler.queue.new() == [], "claimed attempts count"
    await scheduler.tell(act.submit_outcome(scheduler.run(), "a", candidate(1)))
    assert len(scheduler.queue.new()) == 1


async def test_the_reviews_of_a_tenant_count_too() -> None:
    scheduler = await begun("a", "b")
    scheduler.queue.new()
    for name in "ab":
        await scheduler.tell(act.submit_outcome(scheduler.run(), name, candidate(1)))
    assert sorted(scheduler.queue.new()) == [("a", 2), ("b", 2)]


async def test_a_tenant_at_its_limit_holds_back_nobody_else() -> None:
    scheduler = await begun(*[f"a{number}" for number in range(10)])
    scheduler.queue.new()
    scheduler.sender = RIVAL
    await scheduler.tell(start(*[task(f"r{number}") for number in range(5)]), "theirs")
    assert [name for name, _ in scheduler.queue.new()] == [f"r{number}" for number in range(5)]


async def test_the_limit_holds_over_all_pools_and_each_pool_gets_its_turn() -> None:
    scheduler = await begun(*"abcdef", pools=("x", "y", "z"))
    order = [name for name, _ in scheduler.queue.new()]
    assert len(order) == 2
    for name in order:  # grows while something is left
        await scheduler.tell(act.start_attempt(scheduler.run(), name))
        await scheduler.tell(act.fail_attempt(scheduler.run(), name, failure(terminal=True)))
        order += [task for task, _ in scheduler.queue.new()]
    assert sorted(order) == list("abcdef")
    assert {scheduler.run().tasks[name].spec.pool for name in order[:4]} == {"x", "y", "z"}


async def test_after_a_rebuild_claimed_attempts_count() -> None:
    scheduler = await begun("a", "b", "c", "d")
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    scheduler.queue.new()
    scheduler.dispatcher.rebuild(scheduler.state)
    assert len(scheduler.at(0)) == 1
    await scheduler.tell(act.fail_attempt(scheduler.run(), "a", failure(terminal=True)))
    assert len(scheduler.queue.new()) == 1


async def test_who_claims_what_was_taken_back_counts_above_the_limit() -> None:
    scheduler = await begun("a", "b", "c", "d")
    await scheduler.tell(c.PauseRun())
    await scheduler.tell(c.ResumeRun())
    sent = {name for name, _ in scheduler.queue.new()[2:]}
    assert len(sent) == 2
    for name in sorted({"a", "b", "c", "d"} - sent)[:1]:
        await scheduler.tell(act.start_attempt(scheduler.run(), name))
    await scheduler.tell(act.fail_attempt(scheduler.run(), sorted(sent)[0], failure(terminal=True)))
    assert scheduler.queue.new() == [], "one claimed, one sent: the tenant is full"


async def test_what_nobody_serves_takes_no_place() -> None:
    scheduler = await begun("a", "b", "c")
    assert scheduler.queue.new() == [("a", 1), ("b", 1)]
    await scheduler.tell(c.RejectAttempt("a", 1, "process-1"))
    assert scheduler.queue.new() == [("c", 1)]
    assert scheduler.at(2) == [], "it waits for a place like everything else"
    await scheduler.tell(act.start_attempt(scheduler.run(), "c"))
    await scheduler.tell(act.fail_attempt(scheduler.run(), "c", failure(terminal=True)))
    assert scheduler.queue.new() == [("a", 1)]


async def test_what_waits_of_a_paused_run_gives_its_places_to_another_run_of_the_tenant() -> None:
    scheduler = await begun("a", "b")
    await scheduler.tell(c.PauseRun())
    scheduler.queue.new()
    await scheduler.tell(start(task("x"), task("y")), "other")
    assert scheduler.queue.new() == [("x", 1), ("y", 1)]


async def test_a_pool_that_nobody_serves_does_not_keep_the_places_of_another_one() -> None:
    scheduler = await begun("a", "b", "c", "d", pools=("deaf", "heard"), window=1)
    assert sorted(scheduler.queue.new()) == [("a", 1), ("b", 1)]
    await scheduler.tell(act.start_attempt(scheduler.run(), "b"))
    await scheduler.tell(act.fail_attempt(scheduler.run(), "b", failure(terminal=True)))
    assert scheduler.queue.new() == [("d", 1)], "the window of the deaf pool is full"


async def test_nothing_is_kept_of_what_is_over() -> None:
    scheduler = Limited()
    for number in range(20):
        run = f"r{number}"
        await scheduler.tell(
            start(*[task(name, pool=f"pool-{number % 3}", priority=number % 4) for name in "abcd"]), run
        )
        if number % 2:
            await scheduler.tell(c.PauseRun(), run)
        elif sent := scheduler.queue.new():
            await scheduler.tell(c.StartAttempt(sent[0][0], 1, CLAIM), run)
        await scheduler.tell(c.CancelRun(), run)
    places = vars(scheduler.dispatcher)["_tenants"]
    kept = {name: value for name, value in vars(places).items() if isinstance(value, dict)}
    assert set(kept) >= {"_holders", "_taken", "_aside", "_freed"}
    assert not any(kept.values()), kept
    assert not vars(scheduler.dispatcher)["_lanes"]


async def test_what_a_process_had_that_is_gone_is_sent_again_at_once_unless_it_is_claimed() -> None:
    scheduler = await begun("a", "b")
    scheduler.queue.new()
    await scheduler.tell(act.start_attempt(scheduler.run(), "a"))
    scheduler.dispatcher.resend(lane_of("work", "default"), [("r", "a", 1), ("r", "b", 1), ("r", "unknown", 1)])
    assert scheduler.dispatcher.next_due_s() == 0
    assert scheduler.at(0) == [("b", 1)]
    assert scheduler.at(31) == [], "the time of the first sending does not count any more"
    assert scheduler.at(61) == [("b", 1)]


Step = tuple[str, str, int, int]
"""What happens (offer or over), tenant, lane, priority."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["offer", "offer", "over"]),
        st.sampled_from(["free", "one", "two", "none"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=80,
)
LIMIT_OF = {"one": 1, "two": 2, "none": 0}


@given(steps, st.integers(1, 4))
@settings(max_examples=scale(150, 5_000), deadline=None)
def test_a_tenant_below_its_limit_waits_only_for_a_window_and_never_has_more_than_its_limit(
    wanted: list[Step], window: int
) -> None:
    places = TenantPlaces(LIMIT_OF.get)
    names: list[Lane] = [("work", "x"), ("work", "y"), ("verify", "x")]
    lanes = {name: LaneState(name, places, window) for name in names}
    waiting, out = Counter[tuple[str, Lane]](), list[tuple[Offer, Lane]]()

    def send_lane(name: Lane) -> None:
        while (offer := lanes[name].next(0.0)) is not None:
            lanes[name].sent(offer, 0.0)
            places.take(offer.key, offer.tenant)
            waiting[offer.tenant, name] -= 1
            out.append((offer, name))

    for number, (what, tenant, lane, priority) in enumerate(wanted):
        if what == "offer":
            waiting[tenant, names[lane]] += 1
            lanes[names[lane]].offer(Offer(f"run:{tenant}", f"t{number}", 1, tenant, priority))
        elif out:
            over, name = out.pop(number % len(out))
            lanes[name].settled(over.key)
            places.give(over.key)
        for name in names:
            send_lane(name)
        while (woken := places.next_to_wake()) is not None:
            lanes[woken[1]].wake(woken[0])
            send_lane(woken[1])

        had = Counter(offer.tenant for offer, _ in out)
        in_window = Counter(name for _, name in out)
        for name_of, limit in LIMIT_OF.items():
            assert had[name_of] <= limit
        for (waiter, name), count in waiting.items():
            if count and had[waiter] < LIMIT_OF.get(waiter, window * len(names)):
                assert in_window[name] == window, (waiter, name)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.sampled_from("12")), min_size=1, max_size=40))
def test_what_is_set_aside_and_woken_keeps_its_priorities_and_the_order_of_its_runs(
    wanted: list[tuple[int, str, str]],
) -> None:
    queue = FairQueue[tuple[int, str, str, int]]()
    for number, (priority, tenant, run) in enumerate(wanted):
        if number == len(wanted) // 2:
            queue.set_aside(lambda tenant: tenant == "a")
        queue.put((priority, tenant, run, number), priority=priority, tenant=tenant, run=tenant + run)
    order = []
    while queue.set_aside(lambda tenant: tenant == "a")[1]:
        order.append(queue.pop())
    assert sorted(item for item in order) == sorted(
        (*item, number) for number, item in enumerate(wanted) if item[1] == "b"
    )
    while queue:
        queue.wake("a")
        order.append(queue.pop())
    theirs = [item for item in order if item[1] == "a"]
    assert [priority for priority, *_ in theirs] == sorted((item[0] for item in wanted if item[1] == "a"), reverse=True)
    for key in {item[:3] for item in order}:
        numbers = [item[3] for item in order if item[:3] == key]
        assert numbers == sorted(numbers)
