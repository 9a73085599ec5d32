"""Who gets what of a shared lane: by free places, in equal shares, and never more than can begin."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dagbok.agents.queue.port import attempt_of
from dagbok.agents.queue.shares import Letter, Shares
from dagbok.events.envelope import Dispatch
from tests.contract.queue_sites import dispatch
from tests.support.scale import scale

TAKERS = ("a", "b", "c")


def shares_of(shares: Shares, here: dict[str, int] | None, number: int = 1) -> Counter[str]:
    """How many each gets of what waits; `""` is this process."""
    mine, letters = shares.allot(here, number)
    return Counter(letter.taker for letter in letters) + Counter({"": len(mine)})


def with_takers(*places: int) -> Shares:
    """A lane with takers `a`, `b` …, that have so many places."""
    shares = Shares()
    for name, free in zip(TAKERS, places, strict=False):
        shares.said(name, {"work": free}, 0)
    return shares


@given(st.lists(st.integers(0, 40), min_size=1, max_size=3), st.integers(0, 40), st.integers(0, 150))
def test_all_places_are_used_none_twice_and_who_has_more_free_gets_more(
    places: list[int], here: int, waiting: int
) -> None:
    shares = with_takers(*places)
    shares.put([dispatch(number) for number in range(waiting)])
    got = shares_of(shares, {"work": here})
    had = {"": here, **dict(zip(TAKERS, places, strict=False))}
    assert got.total() == min(waiting, sum(had.values()))
    left = {name: had[name] - got[name] for name in had}
    assert min(left.values()) >= 0
    for name in had:
        # Nobody was handed anything while another one had more than one place more left.
        if got[name]:
            assert left[name] >= max(left.values()) - 1


def test_equal_takers_take_turns_however_few_attempts_come_at_a_time() -> None:
    shares, got = with_takers(10, 10), Counter[str]()
    for number in range(12):
        shares.put([dispatch(number)])
        mine, letters = shares.allot({"work": 10}, number)
        got.update(letter.taker for letter in letters)
        got[""] += len(mine)
        for letter in letters:
            shares.said(letter.taker, {"work": 10}, letter.number)
    assert got == {"": 4, "a": 4, "b": 4}


def test_a_slow_taker_gets_as_much_as_it_finishes() -> None:
    shares, got, number = with_takers(8, 8), Counter[str](), 1
    seen = dict.fromkeys("ab", 0)
    shares.put([dispatch(epoch) for epoch in range(400)])
    for step in range(200):
        _, letters = shares.allot(None, number)
        number += len(letters)
        for letter in letters:
            got[letter.taker] += 1
            seen[letter.taker] = letter.number
        # The quick one finishes one at each step, the slow one at every tenth.
        shares.said("a", {"work": 1}, seen["a"])
        shares.said("b", {"work": 1 if step % 10 == 0 else 0}, seen["b"])
    assert 190 <= got["a"] <= 210
    assert 20 <= got["b"] <= 30


def test_a_key_is_handed_only_to_whom_it_is_served_by() -> None:
    shares = Shares()
    shares.said("a", {"slow": 1}, 0)
    shares.said("b", {"quick": 5}, 0)
    shares.put([*[dispatch(n, key="slow") for n in range(9)], *[dispatch(n, key="quick") for n in range(9, 12)]])
    _, letters = shares.allot({"other": 100}, 1)
    assert Counter((letter.taker, letter.dispatch.key) for letter in letters) == {("a", "slow"): 1, ("b", "quick"): 3}


@pytest.mark.parametrize("here", [None, {"other": 1}])
def test_a_key_that_nobody_serves_goes_to_one_of_them_who_says_so(here: dict[str, int] | None) -> None:
    shares = Shares()
    shares.said("a", {"work": 0}, 0)
    shares.put([dispatch(1, key="unknown"), dispatch(2)])
    assert shares_of(shares, here) == ({"a": 1} if here is None else {"": 1})
    assert shares.waits


def test_who_rests_is_handed_nothing_what_it_has_not_seen_waits_again_and_its_keys_are_still_served() -> None:
    shares = with_takers(3)
    shares.put([dispatch(1), dispatch(2), dispatch(3)])
    _, letters = shares.allot(None, 1)
    shares.said("a", {"work": 2}, 1)
    assert list(shares.rests("a")) == letters[1:]
    assert shares_of(shares, {"other": 5}, 4) == {}
    assert shares_of(shares, {"work": 5}, 4) == {"": 2}
    shares.said("a", {"work": 2}, 3)
    shares.put([dispatch(4)])
    assert shares_of(shares, None, 4) == {"a": 1}
    assert list(shares.gone("a")) == [("r", "t", 1)]


class ManyTakers(RuleBasedStateMachine):
    """Attempts are put, handed, seen, finished, closed; takers come, rest and go. An attempt is in one place only."""

    def __init__(self) -> None:
        super().__init__()
        self.shares, self.number, self.epoch = Shares(), 1, 0
        self.here = 3
        self.post: dict[str, list[Letter]] = {}
        self.busy: dict[str, list[Dispatch]] = {}
        self.capacity: dict[str, int] = {}
        self.open: set[int] = set()

    @rule(count=st.integers(1, 8))
    def put(self, count: int) -> None:
        new = [dispatch(self.epoch + number) for number in range(count)]
        self.epoch += count
        self.open |= {item.epoch for item in new}
        self.shares.put(new)

    @rule(name=st.sampled_from(TAKERS), capacity=st.integers(1, 5))
    def come(self, name: str, capacity: int) -> None:
        if name not in self.capacity:
            self.capacity[name], self.post[name], self.busy[name] = capacity, [], []
            self.shares.said(name, {"work": capacity}, 0)

    @rule()
    def allot(self) -> None:
        mine, letters = self.shares.allot({"work": self.here}, self.number)
        assert len(mine) <= self.here
        self.number += len(letters)
        self.open -= {item.epoch for item in mine}
        for letter in letters:
            self.post[letter.taker].append(letter)

    @precondition(lambda self: bool(self.capacity))
    @rule(data=st.data())
    def pick_up(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.capacity)))
        letters, self.post[name] = self.post[name], []
        self.busy[name] += [letter.dispatch for letter in letters]
        assert len(self.busy[name]) <= self.capacity[name], "more than it can begin"
        self.shares.said(name, {"work": self.capacity[name] - len(self.busy[name])}, self.number - 1)

    @precondition(lambda self: any(self.busy.values()))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(name for name in self.busy if self.busy[name])))
        over = self.busy[name].pop(data.draw(st.integers(0, len(self.busy[name]) - 1)))
        self.open.discard(over.epoch)

    @precondition(lambda self: bool(self.open))
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        epoch = data.draw(st.sampled_from(sorted(self.open)))
        gone = {letter.number for letter in self.shares.drop([attempt_of(dispatch(epoch))])}
        for name, letters in self.post.items():
            self.post[name] = [letter for letter in letters if letter.number not in gone]
        for name, items in self.busy.items():
            self.busy[name] = [item for item in items if item.epoch != epoch]
        self.open.discard(epoch)

    @precondition(lambda self: bool(self.capacity))
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.capacity)))
        lost = {epoch for _, _, epoch in self.shares.gone(name)}
        assert {item.epoch for item in self.busy[name]} <= lost, "the scheduler is not told"
        self.open -= {item.epoch for item in self.busy[name]}
        del self.capacity[name], self.post[name], self.busy[name]

    @invariant()
    def nothing_is_lost(self) -> None:
        waits = {epoch for _, _, epoch in vars(self.shares)["_key_of"]}
        posted = [letter.dispatch.epoch for letters in self.post.values() for letter in letters]
        busy = [item.epoch for items in self.busy.values() for item in items]
        assert sorted([*waits, *posted, *busy]) == sorted(self.open)


TestManyTakers = ManyTakers.TestCase
TestManyTakers.settings = settings(max_examples=scale(40, 1_000), stateful_step_count=40, deadline=None)
