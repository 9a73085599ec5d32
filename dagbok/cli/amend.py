"""`dagbok amend`: bind a run to what files have now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dagbok.agents.workers.definitions import Registry
from dagbok.cli.control import send_command
from dagbok.cli.module_file import load_all
from dagbok.cli.options import Output, Place
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused
from dagbok.events.near import did_you_mean
from dagbok.events.run.commands import AmendRun
from dagbok.events.run.values import FailurePolicy, VerifierPin

Values = tuple[FailurePolicy | None, int | None, int | None]
"""Failure policy, depth, decompositions; none: as it is."""


def amend_run(
    name: str,
    imports: Sequence[str],
    keys: Sequence[str],
    values: Values,
    reason: str,
    place: Place | None,
    output: Output | None,
) -> int:
    """Send `AmendRun` with the verifiers of the files. Raises `InvalidInput` when nothing is to be changed."""
    if not imports and values == (None, None, None):
        raise InvalidInput("nothing to amend", code=Code.USAGE, advice="name a file by --import, or a value to change")
    if keys and not imports:
        raise InvalidInput("--verifier without --import", code=Code.USAGE, advice="name the file that has it")
    command = AmendRun(dict(pins_of(imports, keys)), *values, reason)
    return send_command(name, lambda _found, _run: command, "amended", place, output, goes_on=True)


def pins_of(imports: Sequence[str], keys: Sequence[str]) -> Mapping[str, VerifierPin]:
    """The verifiers of some files, all or those with these keys. Raises `Refused` (`verifier_unavailable`)."""
    registry = Registry()
    for module in load_all(imports):
        registry.add_from(module)
    pins = registry.pins()
    for key in keys:
        if key not in pins:
            raise Refused(
                Code.VERIFIER_UNAVAILABLE,
                f"no file has a verifier {key!r}{did_you_mean(key, pins)}",
                advice=f"name one of: {', '.join(sorted(pins)) or 'none: the files have no verifier'}",
            )
    return {key: pins[key] for key in keys} if keys else pins
