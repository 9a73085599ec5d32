"""`dagbok layers`: its commands and help. What they do is in `layer_files.py`, imported when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter

from dagbok.cli.options import Output

Imports = Annotated[
    list[str] | None,
    Parameter(name="--import", negative="", help="Module or file with layer classes and providers; repeatable."),
]
NodeProviders = Annotated[
    list[str] | None,
    Parameter(
        negative="",
        help='"NODE=VARIABLE": who makes the layer of a node, a provider or class in an imported file; repeatable.',
    ),
]
Providers = Annotated[
    str | None,
    Parameter(
        help="Name of the list in an imported file that the program gives as providers. Else all classes and providers "
        "with a type id."
    ),
]
OfEnvironment = Annotated[
    bool,
    Parameter(
        negative="",
        show_default=False,
        help="Also tell which environment variables the layers need and this process does not have. Needs --import.",
    ),
]


def add_to(app: App, group: Group) -> None:
    """Add the commands."""
    layers = App(name="layers", group=group, help="Check, draw and compare graphs of layers in files (docs/layers.md).")
    for command in (check, graph, diff, schema):
        layers.command(command)
    app.command(layers)


def check(
    file: Path,
    /,
    *,
    imports: Imports = None,
    node_provider: NodeProviders = None,
    providers: Providers = None,
    settings: OfEnvironment = False,
    output: Output | None = None,
) -> int:
    """Check a graph config, and tell all that is wrong with it.

    Names and targets of dependencies are always checked. With --import the
    layer classes and providers of a file are known too: their types and
    dependencies. The exit status is 1 when something is wrong.

    For example:
      dagbok layers check agent.json --import my_layers.py

    Parameters
    ----------
    file
        Graph config, JSON or YAML (.yaml, .yml).
    """
    from dagbok.cli.layer_files import check_file

    return check_file(file, imports or [], node_provider or [], providers, settings, output)


def graph(
    file: Path, /, *, format: Literal["text", "mermaid", "svg"] = "text", output: Output | None = None
) -> int:
    """Print a graph config as text, as a Mermaid flowchart, or as SVG.

    For example:
      dagbok layers graph agent.json --format svg > agent.svg

    Parameters
    ----------
    file
        Graph config, JSON or YAML (.yaml, .yml).
    format
        "text", "mermaid" or "svg".
    """
    from dagbok.cli.layer_files import draw_file

    return draw_file(file, format, output)


def diff(
    snapshot: Path,
    graph: Path,
    /,
    *,
    imports: Imports = None,
    rules: str | None = None,
    output: Output | None = None,
) -> int:
    """Tell what resuming a snapshot with a graph would do to each layer.

    Nothing is done. With --import the layer classes of a file are known:
    states are migrated and validated, as they would be. The exit status is 1
    when the snapshot would be refused.

    Example:
      dagbok layers diff snapshot.json agent.json --import my_layers.py --rules RULES

    Parameters
    ----------
    snapshot
        Snapshot of layers, or a session as `dagbok session show` prints it.
    graph
        Graph config, JSON or YAML (.yaml, .yml).
    rules
        Name of the ResumeRules in an imported file. Else every change is refused.
    """
    from dagbok.cli.layer_diff import diff_files

    return diff_files(snapshot, graph, imports or [], rules, output)


def schema(*, output: Output | None = None) -> int:
    """Print the JSON Schema of a graph config."""
    from dagbok.cli.layer_files import print_schema

    return print_schema(output)
