"""`deploy/kafka/topics.yaml`: the declaration of the topics for those who may not create them by program."""

from __future__ import annotations

import yaml

from tests.support.topics_manifest import MANIFEST, declared_topics, made


def test_the_manifest_is_what_the_code_declares() -> None:
    assert MANIFEST.read_text() == made(), "python -m tests.support.topics_manifest"


def test_it_reads_as_one_resource_for_each_topic() -> None:
    resources = {each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(MANIFEST.read_text())}
    assert resources.keys() == {topic.name for topic in declared_topics()}
    assert {name: spec["config"] for name, spec in resources.items()} == {
        topic.name: dict(topic.configs) for topic in declared_topics()
    }
    assert {spec["partitions"] for spec in resources.values()} == {topic.partitions for topic in declared_topics()}
