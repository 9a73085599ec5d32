"""Which pools there can be on Kafka, by what they are called."""

from __future__ import annotations

import pytest

from dagbok.agents.kafka.pool_names import MAX_CHARS, can_be_pool, check_pool, collides, pool_topics
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

PREFIX = "dagbok."
MOST = MAX_CHARS - len("dagbok.review.")


def test_a_pool_is_two_topics() -> None:
    assert pool_topics(PREFIX, "gpu") == ("dagbok.work.gpu", "dagbok.review.gpu")


@pytest.mark.parametrize("pool", ["default", "A-Z_a.z-9", ".", "..", "x" * MOST])
def test_these_can_be(pool: str) -> None:
    assert can_be_pool(PREFIX, pool)
    check_pool(PREFIX, pool)


@pytest.mark.parametrize("pool", ["", "a/b", "two words", "gpu\n", "größe", "٣", "x" * (MOST + 1)])
def test_these_cannot_and_it_is_said_which_can(pool: str) -> None:
    assert not can_be_pool(PREFIX, pool)
    with pytest.raises(InvalidInput, match=rf"1 to {MOST} of the characters A-Z a-z 0-9 \. _ -") as refused:
        check_pool(PREFIX, pool)
    assert refused.value.code is Code.INVALID_SPEC


def test_points_and_underscores_are_one_to_kafka() -> None:
    assert collides("work.a_b", "work.a.b")
    assert not collides("work.a_b", "work.a_b"), "it is the same topic"
    assert not collides("work.a-b", "work.a.b")
