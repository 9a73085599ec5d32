"""`dagbok doctor`: what is wrong with a deployment, seen from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagbok import TaskSpec
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.port import COMMANDS, Record
from tests.kafka_roles.role_site import MODULE, PARTITIONS, Done, RoleSite

Findings = Mapping[str, Mapping[str, Any]]


def findings(done: Done) -> Findings:
    return {each["what"]: each for each in done.json()}


async def test_a_deployment_that_is_well(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler")
    worker = await site.start("worker", "--import", str(MODULE), "--health-port", "0")
    await scheduler.logged("partition.owned")
    await worker.told("/health/ready", 200)
    done = await site.command("doctor", "--json")
    found = findings(done)
    assert (done.status, {each["state"] for each in found.values()}) == (0, {"ok"}), done.out
    assert found["broker"]["numbers"] == {"partitions": PARTITIONS}
    assert found["scheduler"]["numbers"] == {"members": 1, "lag": 0, "partitions_behind": 0}
    assert found["work.default"]["numbers"]["members"] == 1
    assert abs(found["clock"]["numbers"]["off_ms"]) < 1_000


async def test_commands_that_nobody_decides(site: RoleSite) -> None:
    await site.create_topics()
    scheduler = await site.start("scheduler")
    await site.run("first", [TaskSpec(goal="g", worker="ones", verifier="yes")])
    await scheduler.stopped()
    submitted = await site.start("submit", str(_flow(site)), "--kafka", site.kafka.bootstrap_servers)
    await submitted.said("no scheduler has answered yet")
    done = await site.command("doctor", "--json")
    found = findings(done)
    assert done.status == 1
    assert (found["scheduler"]["state"], found["scheduler"]["numbers"]["lag"] >= 1) == ("failed", True)
    assert "dagbok scheduler" in found["scheduler"]["advice"]


async def test_topics_that_are_missing_and_a_broker_that_is_not_there(site: RoleSite) -> None:
    missing = findings(await site.command("doctor", "--json"))
    assert missing["broker"]["state"] == "failed"
    assert "dagbok topics create" in missing["broker"]["advice"]
    await site.create_topics()
    other = await site.command("doctor", "--json", "--pool", "gpu")
    found = findings(other)
    assert (other.status, found["topics"]["state"]) == (1, "failed")
    assert "work.gpu" in other.out
    assert f"dagbok topics create --partitions {PARTITIONS} --pool gpu makes" in found["topics"]["advice"]


async def test_a_loss_is_accepted_once_and_where_there_is_one(site: RoleSite) -> None:
    await site.create_topics()
    log = await KafkaLog.open(site.kafka)
    try:
        await log.append(COMMANDS, 1, [Record("run:r", b"never decided %d" % number) for number in range(3)])
        await log.delete_before(COMMANDS, 1, 2)
    finally:
        await log.close()
    halted = await site.command("doctor", "--json")
    lost = findings(halted)["partition 1"]
    assert (halted.status, lost["state"], lost["about"]) == (1, "failed", {"partition": 1, "code": "log_lost"})
    assert "commands 0 to 1 of partition 1 were removed undecided" in lost["told"]
    assert "dagbok doctor --accept-loss 1" in lost["advice"]
    refused = await site.command("doctor", "--accept-loss", "0")
    assert (refused.status, "no command of partition 0" in refused.told) == (3, True)
    assert (await site.command("doctor", "--accept-loss", str(PARTITIONS))).status == 2
    accepted = await site.command("doctor", "--accept-loss", "1", "--json")
    assert (accepted.status, accepted.json()) == (0, {"partition": 1, "from": 0, "to": 1})
    assert (await site.command("doctor", "--accept-loss", "1")).status == 3
    scheduler = await site.start("scheduler")
    await scheduler.logged("partition.owned")
    found = findings(await site.command("doctor", "--json"))
    assert found["scheduler"]["numbers"]["members"] == 1
    assert "partition 1" not in found


def _flow(site: RoleSite) -> str:
    file = site.folder / "flow.py"
    file.write_text(
        MODULE.read_text()
        + "\nfrom dagbok import TaskSpec\ndef main() -> TaskSpec:\n"
        + "    return TaskSpec(goal='g', worker='ones', verifier='yes')\n"
    )
    return str(file)
