"""`dagbok supersede`: another task in the place of one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from dagbok.agents.kafka.pool_names import check_pool
from dagbok.agents.workers.encode import encode_spec
from dagbok.cli.control import send_command
from dagbok.cli.entry import call_main
from dagbok.cli.module_file import broken, load_file, pool_of
from dagbok.cli.options import Output, Place
from dagbok.cli.reading import Reading
from dagbok.cli.run_kafka import POOL
from dagbok.cli.unserved import note_of
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.run.commands import RunCommand, SupersedeTask
from dagbok.events.specs import TaskSpec
from dagbok.events.written import problems_of
from dagbok.projections.views.graph.rows import RunRow
from dagbok.settings import Settings

SHAPE = '{"goal": …, "worker": …, "verifier": …}'


def supersede_task(
    name: str,
    task: str,
    file: Path | None,
    options: Sequence[str],
    json: str | None,
    revision: int | None,
    place: Place | None,
    output: Output | None,
) -> int:
    """Send `SupersedeTask`. A replacement from JSON goes to the pool of the old task, one from a Python file to that of
    the file (on Kafka to `default`), unless it names one: where nobody serves that, it is said. Raises `InvalidInput`
    when there is not exactly one replacement, and on Kafka for a pool that nobody can serve."""
    if (file is None) == (json is None):
        raise InvalidInput("name either a FILE or --spec", code=Code.USAGE, advice="see dagbok supersede --help")
    if file is not None and file.suffix != ".json":
        replacement, python = _of_python(file, options), file
    else:
        replacement, python = _of_json(file, json), None

    id = replacement.id or secrets.token_hex(16)
    goes_to: list[str] = []

    def make(found: Reading, run: RunRow) -> RunCommand:
        old = found.find_task(run, task)
        pool = old.pool if python is None else POOL if found.on_kafka else pool_of(python)
        spec = encode_spec(replacement, derived_id=id, pool=pool)
        if found.settings.kafka is not None:
            check_pool(found.settings.kafka.prefix, spec.pool)
        goes_to[:] = [spec.pool, *found.queries.pools(found.tenant, found.project, run.run)]
        return SupersedeTask(old.task, spec, revision)

    def notes(settings: Settings) -> Sequence[str]:
        return [] if settings.kafka is not None else note_of(goes_to[0], settings, goes_to, file=file)

    done = f"superseded task {task} by {id}"
    return send_command(name, make, done, place, output, goes_on=True, told={"replacement": id}, notes=notes)


def _of_python(file: Path, options: Sequence[str]) -> TaskSpec:
    entry = call_main(load_file(file), options, str(file))
    if entry is None or len(entry.tasks) != 1:
        raise InvalidInput(f"{file}: main returned no single task", code=Code.BAD_MODULE, advice="return one TaskSpec")
    return entry.tasks[0]


def _of_json(file: Path | None, text: str | None) -> TaskSpec:
    try:
        return TaskSpec.model_validate_json(file.read_bytes() if file is not None else text or "")
    except ValidationError as error:
        advice = f"write a task as {SHAPE}"
        if file is None:
            said = " ".join(problems_of(error).split())
            raise InvalidInput(f"--spec is no task: {said}", code=Code.USAGE, advice=advice) from error
        raise broken(file, error, advice) from error
    except OSError as error:
        raise InvalidInput(
            f"cannot read {file}: {error.strerror or error}", code=Code.BAD_MODULE, advice="name a file with a task"
        ) from error
