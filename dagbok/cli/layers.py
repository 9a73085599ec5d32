"""`dagbok layers`: its commands and help. What they do is in `layer_files.py`, imported when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cyclopts import App, Group

from dagbok.cli.options import Imports, Output


def add_to(app: App, group: Group) -> None:
    """Add the commands."""
    layers = App(name="layers", group=group, help="Check and draw graphs of layers in files (docs/layers.md).")
    for command in (check, graph, schema):
        layers.command(command)
    app.command(layers)


def check(
    file: Path, /, *, imports: Imports = None, settings: bool = False, output: Output | None = None
) -> int:
    """Check a graph config, and tell all that is wrong with it.

    Names and targets of dependencies are always checked. With --import the
    layer classes of a file are known too: their types and dependencies.
    The exit status is 1 when something is wrong.

    For example:
      dagbok layers check agent.json --import my_layers.py

    Parameters
    ----------
    file
        Graph config, JSON or YAML (.yaml, .yml).
    settings
        Also tell which environment variables the layers need and
        this process does not have. Needs --import.
    """
    from dagbok.cli.layer_files import check_file

    return check_file(file, imports or [], settings, output)


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


def schema(*, output: Output | None = None) -> int:
    """Print the JSON Schema of a graph config."""
    from dagbok.cli.layer_files import print_schema

    return print_schema(output)
