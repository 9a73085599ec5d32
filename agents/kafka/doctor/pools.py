"""Whether pools have their topics, or can have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dagbok.agents.doctor import standstill
from dagbok.agents.doctor.finding import Finding, State, plural
from dagbok.agents.kafka.doctor.site import Site
from dagbok.agents.kafka.lane_topics import how_to_create
from dagbok.agents.kafka.pool_names import CALL_IT, can_be_pool, collides, pool_topics
from dagbok.events.log.kafka_admin import Described, administrator
from dagbok.events.log.port import COMMANDS


async def pools_of_tasks(site: Site) -> Sequence[Finding]:
    """Every pool that tasks are in has its topics, or can have them. Of one that is named, that they are missing is
    said with the other topics."""
    tasks = Counter[str]()
    for look in site.looks:
        tasks.update(look.pools)
    pools = list(dict.fromkeys([*site.pools, *sorted(tasks)]))
    legal = [pool for pool in pools if can_be_pool(site.prefix, pool)]
    found = [_illegal(site, pool, tasks[pool]) for pool in pools if pool not in legal]
    return [*found, *await _without_topics(site, legal, tasks)]


async def _without_topics(site: Site, pools: Sequence[str], tasks: Counter[str]) -> Sequence[Finding]:
    commands = site.prefix + COMMANDS
    async with administrator(site.settings) as admin:
        there = await admin.topics([commands, *[topic for pool in pools for topic in pool_topics(site.prefix, pool)]])
        missing = {pool: [topic for topic in pool_topics(site.prefix, pool) if topic not in there] for pool in pools}
        names = await admin.names() if any(missing.values()) else ()
    model = there.get(commands, Described(site.log.partitions, 1))
    waiting = {pool for ((_, pool), _), wait in standstill.keys_of(site.looks).items() if wait.open}
    found = []
    for pool in pools:
        others = sorted({name for name in names for topic in missing[pool] if collides(topic, name)})
        if others:
            found.append(_colliding(site, pool, tasks[pool], others))
        elif missing[pool] and pool not in site.pools:
            create = how_to_create(site.settings, model, [pool])
            advice = f"{create}, or serve it, which makes them where the broker allows"
            state: State = "failed" if pool in waiting else "warning"
            told = f"has not the topics {', '.join(missing[pool])}; {_in_it(tasks[pool])}"
            found.append(Finding(f"pool {pool}", state, told, advice, {"tasks": tasks[pool]}, {"pool": pool}))
    return found


def _illegal(site: Site, pool: str, tasks: int) -> Finding:
    told = f"Kafka allows no topics {', '.join(pool_topics(site.prefix, pool))}; {_in_it(tasks)}"
    return Finding(f"pool {pool}", "failed", told, f"{CALL_IT}, {_another(site)}", {"tasks": tasks}, {"pool": pool})


def _colliding(site: Site, pool: str, tasks: int, others: Sequence[str]) -> Finding:
    told = f"its topics are missing and cannot be made beside {', '.join(others)}, since . and _ are one to Kafka"
    advice = f"call the pool otherwise, {_another(site)}"
    return Finding(f"pool {pool}", "failed", f"{told}; {_in_it(tasks)}", advice, {"tasks": tasks}, {"pool": pool})


def _another(site: Site) -> str:
    return f"and put tasks in the place of those that are there: {site.command('supersede', 'RUN TASK …')}"


def _in_it(tasks: int) -> str:
    return f"{plural(tasks, 'task')} in it {'is' if tasks == 1 else 'are'} not done"
