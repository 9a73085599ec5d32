"""`deploy/kafka/topics.yaml`, made from what the code declares. `python -m tests.support.topics_manifest` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dagbok.events.log.kafka_topics import Topic, declared

MANIFEST: Final = Path(__file__).parents[2] / "deploy" / "kafka" / "topics.yaml"
REPLICATION: Final = 3
CLUSTER: Final = "my-cluster"

HEAD: Final = """\
# The topics as resources of Strimzi, for clusters where no program may create topics; elsewhere: dagbok topics create.
# Change the cluster's name and, before the first record, the partitions; add work.POOL and review.POOL for each pool.
# made from the code: python -m tests.support.topics_manifest
"""


def made() -> str:
    """All topics of the default prefix and the pool `default`, as production has them."""
    return HEAD + "".join([_resource(topic.name, topic.partitions, topic.configs) for topic in declared_topics()])


def declared_topics() -> tuple[Topic, ...]:
    """What the manifest is made of."""
    return declared("dagbok.", replication=REPLICATION)


def _resource(name: str, partitions: int, configs: Mapping[str, str]) -> str:
    settings = "".join([f'    {setting}: "{value}"\n' for setting, value in sorted(configs.items())])
    return (
        "---\n"
        "apiVersion: kafka.strimzi.io/v1\n"
        "kind: KafkaTopic\n"
        f"metadata: {{name: {name}, labels: {{strimzi.io/cluster: {CLUSTER}}}}}\n"
        "spec:\n"
        f"  partitions: {partitions}\n"
        f"  replicas: {REPLICATION}\n"
        "  config:\n" + settings
    )


if __name__ == "__main__":
    MANIFEST.write_text(made())
