"""`dagbok layers diff`: what resuming a snapshot with a graph would do, without doing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ConfigDict
from pydantic_core import from_json

from dagbok.agents.layers import (
    CompositorConfig,
    EmptyRuntimeState,
    LayerNode,
    LayerProvider,
    NoLayerDeps,
    PlainLayer,
    ResumeRules,
    Snapshot,
    import_snapshot,
)
from dagbok.agents.layers.durable import session_snapshot
from dagbok.agents.layers.durable.written import FORMAT as SESSION_FORMAT
from dagbok.agents.layers.layer import AnyLayer
from dagbok.agents.layers.problems import told
from dagbok.agents.layers.provider import as_provider
from dagbok.agents.layers.snapshots.found import found_layers
from dagbok.agents.layers.snapshots.planning import plan_resume
from dagbok.cli import say
from dagbok.cli.exits import Exit
from dagbok.cli.layer_files import read_graph
from dagbok.cli.layer_providers import collected
from dagbok.cli.module_file import load
from dagbok.cli.options import Output, settle
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, Refused


def diff_files(snapshot: Path, graph: Path, imports: list[str], rules: str | None, output: Output | None) -> int:
    """Print what would become of each layer; 1 if the snapshot would be refused."""
    _, how = settle(None, output)
    found, config, modules = _snapshot(snapshot), read_graph(graph), [load(name) for name in imports]
    known = {str(each.type_id): as_provider(each).layer_type for each in collected(modules)}
    unknown = sorted({each.type for each in config.layers} - known.keys())
    diff = plan_resume(_nodes(config, known, found), found_layers(found), _rules(rules, modules)).diff
    if how.json:
        say.out_json({**diff.to_data(), "unknown_types": unknown})
    else:
        say.out(str(diff))
        if unknown:
            said = f"no class is known here for {', '.join(unknown)}: their states and versions are not looked at"
            say.note(f"{said} (--import the file that has it)")
    return Exit.FAILED if diff.refused else Exit.SUCCEEDED


def _snapshot(file: Path) -> Snapshot:
    try:
        text = file.read_bytes()
    except OSError as error:
        advice = "name a snapshot, or what dagbok session show printed"
        raise InvalidInput(f"cannot read {file}: {error.strerror or error}", code=Code.USAGE, advice=advice) from error
    try:
        session = _value(from_json(text))
        if isinstance(session, dict) and session.get("format") == SESSION_FORMAT:
            return session_snapshot(session)
        return import_snapshot(text, close_calls=lambda state: state)
    except Refused as error:
        said: str = error.message
    except ValueError as error:
        said = told(error)
    raise InvalidInput(f"{file}: {said}", code=Code.USAGE, advice="name a snapshot of layers")


def _value(read: Any) -> Any:
    """What `session show --json` prints has the session as `value`."""
    return read["value"] if isinstance(read, dict) and read.keys() >= {"value", "task", "turn"} else read


def _rules(name: str | None, modules: Sequence[ModuleType]) -> ResumeRules:
    if name is None:
        return ResumeRules()
    found = [vars(module)[name] for module in modules if isinstance(vars(module).get(name), ResumeRules)]
    if not found:
        raise InvalidInput(
            f"no imported file has ResumeRules named {name!r}",
            code=Code.USAGE,
            advice="--import the file, and name the variable that holds them",
        )
    rules: ResumeRules = found[0]
    return rules


def _nodes(config: CompositorConfig, known: Mapping[str, type[AnyLayer]], found: Snapshot) -> list[LayerNode]:
    versions = {each.name: each.state_version for each in found.layers}
    nodes = []
    for each in config.layers:
        kind = known.get(each.type) or _stand_in(versions.get(each.name, 1))
        made: LayerProvider[Any] = LayerProvider.from_factory(layer_type=kind, create=kind)
        nodes.append(LayerNode(each.name, made, deps=each.deps, declared_type=each.type))
    return nodes


class _AnyState(EmptyRuntimeState):
    model_config = ConfigDict(extra="allow")


class _StandIn(PlainLayer[NoLayerDeps]):
    """For a type that is only a name here: any state in any version is one of it."""

    runtime_state_type = _AnyState


def _stand_in(version: int) -> type[AnyLayer]:
    return type("_StandIn", (_StandIn,), {"state_version": version})
