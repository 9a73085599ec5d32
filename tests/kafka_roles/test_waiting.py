"""The metric of attempts that wait: its labels stay few, whatever users call their pools."""

from __future__ import annotations

from dagbok.agents.kafka.metrics import Metrics
from dagbok.agents.kafka.waiting import NO_TOPIC
from dagbok.agents.queue import Lane, lane_of


def shown(metrics: Metrics) -> dict[tuple[str, str], float]:
    """The values by pool and kind, as a process tells them."""
    metrics.text()
    (family,) = metrics.queue_depth.collect()
    return {(sample.labels["pool"], sample.labels["kind"]): sample.value for sample in family.samples}


def test_pools_without_a_topic_share_one_label_and_one_that_has_none_any_more_loses_its_own() -> None:
    metrics, topics = Metrics("scheduler"), set[Lane]()
    gpu = lane_of("work", "gpu")
    metrics.waiting.has_topic = topics.__contains__
    metrics.waiting.change(gpu, 2)
    for number in range(1_000):
        metrics.waiting.change(lane_of("work", f"typo {number}"), 1)
    assert shown(metrics) == {(NO_TOPIC, "work"): 1_002}
    topics.add(gpu)
    assert shown(metrics) == {("gpu", "work"): 2, (NO_TOPIC, "work"): 1_000}
    for number in range(1_000):
        metrics.waiting.change(lane_of("work", f"typo {number}"), -1)
    metrics.waiting.change(gpu, -2)
    assert shown(metrics) == {("gpu", "work"): 0}, "who looks at it learns that nothing waits"
    topics.clear()
    assert shown(metrics) == {}
    assert not vars(metrics.waiting)["_counts"]
