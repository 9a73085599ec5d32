"""`dagbok topics create` and `check`: names, options and help. What they do is in `topics_kafka.py`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Group, Parameter
from cyclopts.validators import Number

from dagbok.cli.cluster import Cluster
from dagbok.cli.options import Output

Partitions = Annotated[int, Parameter(validator=Number(gte=1))]
Pools = Annotated[
    list[str] | None, Parameter(name="--pool", negative="", help='A pool of workers; repeatable. Else "default".')
]


def add_to(app: App, group: Group) -> None:
    """Add the two commands."""
    topics = App(name="topics", group=group, help="Create and check the topics of a log on Kafka.")
    topics.command(create)
    topics.command(check)
    app.command(topics)


def create(
    *,
    partitions: Partitions = 12,
    replication: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    pools: Pools = None,
    cluster: Cluster | None = None,
    output: Output | None = None,
) -> int:
    """Create the topics that are missing; none that is there is changed.

    Refuses when one is there with another number of partitions: that follows
    every stream for its life.

    For example:
      dagbok topics create --kafka broker:9092 --partitions 24 --replication 3

    Parameters
    ----------
    partitions
        Of each topic: at most so many schedulers share the work.
    replication
        Copies of each record. From 3 on, what is acknowledged survives the loss of a broker.
    """
    from dagbok.cli.topics_kafka import create_topics

    return create_topics(partitions, replication, pools, cluster or Cluster(), output)


def check(
    *,
    partitions: Partitions = 12,
    replication: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    pools: Pools = None,
    cluster: Cluster | None = None,
    output: Output | None = None,
) -> int:
    """Compare the topics with what dagbok needs: counts, retention, sizes.

    The exit status is 1 when something differs.

    Parameters
    ----------
    partitions
        As they were created with.
    replication
        As they were created with.
    """
    from dagbok.cli.topics_kafka import check_topics

    return check_topics(partitions, replication, pools, cluster or Cluster(), output)
