"""The whole system in one process, in virtual time, while everything goes wrong: see `simulate`.

The actors are the real ones: owners with their timers, dispatcher and snapshots, worker processes with their claims,
leases and outboxes, a projector with its tables, a client. The log is the memory log, behind a network that loses,
delays and doubles what is sent; processes vanish at any await, stand still, are stopped; clocks jump. One seed gives
one history, byte for byte.

>>> from dagbok import Candidate, Outcome, RunResult, TaskContext, TaskSpec, verifier, worker
>>> from dagbok.testing import simulate
>>> @worker("add")
... async def add(task: TaskContext) -> Outcome:
...     return Outcome.candidate(sum(task.inputs))
>>> @verifier("exact", version="1")
... async def exact(candidate: Candidate, task: TaskContext) -> bool:
...     return candidate.json() == sum(task.inputs)
>>> def adds_up(result: RunResult) -> None:
...     assert result.succeeded and result.json() == 6, result
>>> sums = TaskSpec(goal="add", worker="add", verifier="exact", inputs=[1, 2, 3])
>>> simulate(sums, add, exact, seeds=range(5), check=adds_up).runs
Counter({'succeeded': 5})

`await die()` in a worker or verifier is the end of its process.

After each schedule the log, the owners, the tables and the client are checked: one effective commit per command, each
attempt ended once and in time, answers that are true, folds and tables that an independent reader confirms, and every
run at an end or blocked for a reason that has a code.
"""

from dagbok.testing.simulation.faults import NO_FAULTS, Faults
from dagbok.testing.simulation.loop import die
from dagbok.testing.simulation.simulate import Simulated, SimulationFailed, simulate, simulate_workload

__all__ = ["NO_FAULTS", "Faults", "Simulated", "SimulationFailed", "die", "simulate", "simulate_workload"]
