"""The commands of a client on Kafka: they start runs, look at them and steer them, whoever decides and works."""

from __future__ import annotations

from pathlib import Path

from dagbok import TaskSpec
from dagbok.events.log.port import COMMANDS, Record
from dagbok.events.run import events as e
from tests.kafka_roles.role_site import MODULE, RoleSite
from tests.servers.postgres_system import SystemPostgres
from tests.support.places import drop_schemas

FLOW = """
from dagbok import TaskSpec
def main(count: int = 3, worker: str = "ones") -> list[TaskSpec]:
    return [TaskSpec(id=f"t{n}", goal=f"task {n}", worker=worker, verifier="yes") for n in range(count)]
"""


def flow(site: RoleSite) -> str:
    """A file with `main` and the workers of the tests."""
    file = site.folder / "flow.py"
    file.write_text(MODULE.read_text() + FLOW)
    return str(file)


async def test_run_works_along_and_needs_no_database(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    done = await site.command("run", flow(site), "--json")
    assert done.status == 0, done.told
    told = done.json()
    assert (told["status"], told["counts"], told["resumed"]) == ("succeeded", {"verified": 3}, False)
    assert [Path(file["path"]).read_text() for file in told["artifacts"]] == ["1", "1", "1"]


async def test_a_run_that_was_submitted_is_the_one_that_run_goes_on_with(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    submitted = (await site.command("submit", flow(site), "--json")).json()
    assert submitted["resumed"] is False
    again = (await site.command("submit", flow(site), "--json")).json()
    assert (again["run"], again["resumed"]) == (submitted["run"], True)
    followed = (await site.command("run", flow(site), "--json")).json()
    assert (followed["run"], followed["resumed"], followed["status"]) == (submitted["run"], True, "succeeded")
    later = (await site.command("submit", flow(site), "--json")).json()
    assert later["run"] != submitted["run"], "what is over begins anew"


async def test_who_waits_for_a_scheduler_is_told(site: RoleSite) -> None:
    await site.create_topics()
    waiting = await site.start("submit", flow(site), "--kafka", site.kafka.bootstrap_servers)
    await waiting.said("no scheduler has answered yet")
    await site.start("scheduler")
    assert await waiting.ended() == 0


async def test_runs_are_listed_shown_and_cancelled(site: RoleSite, server: SystemPostgres) -> None:
    await site.create_topics()
    drop_schemas(server.url, "dagbok")
    database = {"DAGBOK_DATABASE": server.url}
    await site.start("scheduler")
    await site.start("worker", "--import", flow(site))
    projector = await site.start("projector", "--health-port", "0", **database)
    run = (await site.command("submit", flow(site), "--worker", "long", "--json")).json()["run"]
    await site.seen(f"run:{run}", e.AttemptStarted)
    await projector.metric('dagbok_held_partitions{role="projector"}', 1)
    await site.listed(run, "running", **database)
    assert "task 2" in (await site.command("show", run, **database)).out
    cancelled = await site.command("cancel", run, "--reason", "enough", **database)
    assert cancelled.status == 0, cancelled.told
    followed = await site.command("events", run, "--follow", "--json", **database)
    assert '"RunCancelled"' in followed.out.splitlines()[-1]
    await site.listed(run, "cancelled", **database)
    ran = await site.command("run", flow(site), **database)
    lines = ran.out.splitlines()
    assert (ran.status, lines[0].split()[2:]) == (0, ["succeeded", "3", "tasks"]), ran.told
    assert [line.split("  ")[:2] for line in lines[2:5]] == [[f"t{number}", "verified"] for number in range(3)]
    assert lines[-1].startswith("succeeded: 3 tasks in ")


async def test_views_are_built_anew(site: RoleSite, server: SystemPostgres) -> None:
    """In the database that is named, from the log that is named."""
    await site.create_topics()
    drop_schemas(server.url, "dagbok")
    database = {"DAGBOK_DATABASE": server.url}
    await site.start("scheduler")
    await site.start("worker", "--import", flow(site))
    stream = await site.run("first", [TaskSpec(goal="g", worker="ones", verifier="yes")])
    await site.seen(stream, e.RunSucceeded)
    wrong = await site.command("projections", "rebuild", "nothing", **database)
    assert (wrong.status, "graph" in wrong.told) == (2, True)
    done = await site.command("projections", "rebuild", "--json", **database)
    assert done.status == 0, done.told
    assert "graph" in done.json()["views"]
    rows = (await site.command("ls", "--tenant", "acme", "--project", "docs", "--json", **database)).json()
    assert [(f"run:{row['run']}", row["status"]) for row in rows] == [(stream, "succeeded")]


async def test_a_run_is_paused_limited_resumed_and_its_branch_cancelled(site: RoleSite, server: SystemPostgres) -> None:
    await site.create_topics()
    drop_schemas(server.url, "dagbok")
    database = {"DAGBOK_DATABASE": server.url}
    await site.start("scheduler")
    await site.start("projector", **database)
    run = (await site.command("submit", flow(site), "--worker", "long", "--json")).json()["run"]
    await site.listed(run, "running", **database)
    seen = []
    limited, cancelled = ("limits", run, "max_tokens=5000"), ("cancel", run, "--task", "t0")
    for arguments in (("pause", run), limited, ("resume", run), cancelled):
        done = await site.command(*arguments, "--json", **database)
        assert done.status == 0, done.told
        told = done.json()
        assert (told["run"], told["accepted"]) == (run, True)
        seen += told["events"]
    assert [name for name in seen if name in ("RunPaused", "LimitsSet", "RunResumed", "TaskCancelled")] == [
        "RunPaused", "LimitsSet", "RunResumed", "TaskCancelled",
    ]  # fmt: skip


async def test_a_replacement_goes_to_a_pool_that_can_be_served(site: RoleSite, server: SystemPostgres) -> None:
    await site.create_topics()
    drop_schemas(server.url, "dagbok")
    database = {"DAGBOK_DATABASE": server.url}
    await site.start("scheduler")
    await site.start("projector", **database)
    run = (await site.command("submit", flow(site), "--worker", "nobody", "--json")).json()["run"]
    await site.listed(run, "running", **database)
    spec = '{"goal": "g", "worker": "ones", "verifier": "yes", "pool": "a/b"}'
    refused = await site.command("supersede", run, "t0", "--spec", spec, **database)
    assert (refused.status, "the characters A-Z a-z 0-9 . _ -" in refused.told) == (2, True)
    other = site.folder / "other.py"
    other.write_text(MODULE.read_text() + FLOW.replace("f\"t{n}\"", "f\"u{n}\""))
    done = await site.command("supersede", run, "t0", str(other), "--count", "1", **database)
    assert done.status == 0, done.told
    await site.start("worker", "--import", str(other))
    await site.seen(f"run:{run}", e.TaskVerified)


async def test_a_dead_letter_is_listed_and_driven_again(site: RoleSite, server: SystemPostgres) -> None:
    await site.create_topics()
    drop_schemas(server.url, "dagbok")
    database = {"DAGBOK_DATABASE": server.url}
    await site.start("scheduler")
    projector = await site.start("projector", "--health-port", "0", **database)
    await (await site.client()).log.append(COMMANDS, 0, [Record("k", b"\xff\xfe no command")])
    await projector.metric('dagbok_projected_events_total{partition="0"}', 1)
    (letter,) = (await site.command("dead-letters", "ls", "--json", **database)).json()
    assert (letter["command"], letter["code"]) == ("0:0", "undecodable")
    driven = await site.command("dead-letters", "redrive", "0:0", "--json", **database)
    assert (driven.status, driven.json()) == (0, {"command": "0:1"})
    await projector.metric('dagbok_projected_events_total{partition="0"}', 2)
    letters = (await site.command("dead-letters", "ls", "--json", **database)).json()
    assert {each["command_hash"] for each in letters} == {letter["command_hash"]}
    assert sorted(each["command"] for each in letters) == ["0:0", "0:1"]


async def test_a_command_that_is_about_a_folder_says_so(site: RoleSite) -> None:
    refused = await site.command("up")
    assert refused.status == 2
    assert "dagbok scheduler" in refused.told
