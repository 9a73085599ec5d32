"""The example agent of layers on Kafka: its worker is killed between two turns, and another one goes on. The
verifier of the example lets no history pass that is doubled, cut or forgotten."""

from __future__ import annotations

from dagbok import TaskSpec
from dagbok.cli.module_file import load_file
from dagbok.events.run import events as e
from tests.kafka_roles.role_site import RoleSite
from tests.support.lightagent_env import ROOT

QUESTIONS = ["one?", "two?", "three?", "four?"]
EXAMPLE = ROOT / "examples" / "layered_agent.py"


async def test_another_worker_goes_on_with_the_history_of_one_that_is_killed(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("scheduler")
    await site.start("verifier", "--import", str(EXAMPLE))
    first = await site.start("worker", "--import", str(EXAMPLE))
    inputs = {"questions": QUESTIONS, "pace_s": 0.7}
    talk = TaskSpec(id="talk", goal="talk", worker="interviewer", verifier="all-asked", inputs=inputs, lease_s=1.5)
    stream = await site.run("talks", [talk], load_file(EXAMPLE))
    await site.seen(stream, e.SessionSuspended)
    await first.kill()
    await site.start("worker", "--import", str(EXAMPLE))
    events = await site.seen(stream, e.RunSucceeded)
    turns = [event for event in events if isinstance(event, e.SessionSuspended)]
    assert [event.turn for event in turns] == list(range(1, len(turns) + 1))
    (resumed,) = [event for event in events if isinstance(event, e.SessionResumed)]
    before = [event for event in turns if event.epoch == 1]
    assert (resumed.turn, resumed.digest) == (before[-1].turn, before[-1].digest)
    assert len(before) < len(QUESTIONS) <= len(turns) <= len(QUESTIONS) + 1, "no question is asked twice"
