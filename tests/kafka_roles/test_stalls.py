"""The rule that tells a partition that stands still from one that has nothing to do."""

from __future__ import annotations

from dagbok.agents.kafka.stalls import Stalls, Standing
from dagbok.events.log.kafka_client import Place

PLACE = Place("commands", 3)
STALL_S, FOLD_S = 10.0, 100.0


def stalls() -> Stalls:
    return Stalls(STALL_S, FOLD_S)


def test_what_has_nothing_to_read_never_stalls() -> None:
    looks = stalls()
    for now_s in range(0, 1_000, 5):
        assert looks.look([Standing(PLACE, 7)], {PLACE: 7}, now_s) == []


def test_what_stands_still_with_something_to_read_stalls_after_a_while() -> None:
    looks = stalls()
    assert looks.look([Standing(PLACE, 7)], {PLACE: 9}, 0.0) == []
    assert looks.look([Standing(PLACE, 7)], {PLACE: 12}, 9.9) == []
    (told,) = looks.look([Standing(PLACE, 7)], {PLACE: 12}, 10.0)
    assert told == "commands[3] does not progress: 5 records wait, and none was done with for 10 s"


def test_the_slightest_progress_is_progress_however_far_behind() -> None:
    looks = stalls()
    for now_s in range(0, 100, 9):
        assert looks.look([Standing(PLACE, now_s)], {PLACE: 1_000_000}, now_s) == []


def test_the_time_counts_from_when_there_was_something_to_read() -> None:
    looks = stalls()
    looks.look([Standing(PLACE, 7)], {PLACE: 7}, 0.0)
    assert looks.look([Standing(PLACE, 7)], {PLACE: 7}, 1_000.0) == []
    assert looks.look([Standing(PLACE, 7)], {PLACE: 8}, 1_005.0) == []
    assert looks.look([Standing(PLACE, 7)], {PLACE: 8}, 1_010.0) != []


def test_what_is_excused_does_not_stall_and_its_time_begins_when_it_is_excused_no_more() -> None:
    looks = stalls()
    for now_s in (0.0, 50.0, 100.0):
        assert looks.look([Standing(PLACE, 7, excused=True)], {PLACE: 9}, now_s) == []
    assert looks.look([Standing(PLACE, 7)], {PLACE: 9}, 109.0) == []
    assert looks.look([Standing(PLACE, 7)], {PLACE: 9}, 110.0) != []


def test_a_fold_may_take_longer_but_not_for_ever() -> None:
    looks = stalls()
    assert looks.look([Standing(PLACE, None)], {PLACE: 9}, 0.0) == []
    assert looks.look([Standing(PLACE, None)], {PLACE: 9}, 99.0) == []
    (told,) = looks.look([Standing(PLACE, None)], {PLACE: 9}, 100.0)
    assert told == "commands[3] is being folded for 100 s"


def test_a_partition_that_went_and_came_again_begins_anew() -> None:
    looks = stalls()
    looks.look([Standing(PLACE, 7)], {PLACE: 9}, 0.0)
    looks.look([], {}, 5.0)
    assert looks.look([Standing(PLACE, 7)], {PLACE: 9}, 12.0) == []


def test_while_the_broker_could_not_be_asked_nothing_stood_still() -> None:
    looks = stalls()
    looks.look([Standing(PLACE, 7)], {PLACE: 9}, 0.0)
    looks.forget()
    assert looks.look([Standing(PLACE, 7)], {PLACE: 9}, 60.0) == []
