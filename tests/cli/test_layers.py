"""`dagbok layers`: graph configs in files, checked and drawn."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Call

GOOD = {
    "layers": [
        {"name": "rules", "type": "plain.prompt"},
        {"name": "tools", "type": "mine", "deps": {"rules": "rules"}},
    ]
}
MINE = """
from dagbok.agents.layers import LayerDeps, PlainLayer, PromptLayer

class Deps(LayerDeps):
    rules: PromptLayer

class Mine(PlainLayer[Deps]):
    type_id = "mine"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    return tmp_path / "good.json"


def test_a_good_config(call: Call, config: Path) -> None:
    assert call("layers", "check", str(config)).out == "2 layers, nothing wrong\n"
    said = call("layers", "check", str(config), "--import", str(config.with_name("mine.py")), "--json")
    assert (said.status, said.json) == (0, {"layers": 2, "problems": []})


def test_all_that_is_wrong_is_told(call: Call, config: Path) -> None:
    first = {"name": "a", "type": "x", "deps": {"k": "z", "l": "b"}}
    config.write_text(json.dumps({"layers": [first, {"name": "b", "type": "y"}]}))
    said = call("layers", "check", str(config), "--json")
    assert said.status == 1
    assert said.json["problems"] == [
        "Layer 'a' depends on undefined layer names: z",
        "Layer 'a': dependencies must target preceding layer nodes: l->b",
    ]
    config.write_text('{"layers": [{"name": "a", "type": "mine"}, {"name": "b", "type": "y"}]}')
    said = call("layers", "check", str(config), "--import", str(config.with_name("mine.py")))
    assert said.out == "Layer type id 'y' is not registered\nLayer 'a': Dependency 'rules' is required\n"


PROVIDED = MINE + """
from dagbok.agents.layers import LayerProvider, NoLayerDeps, ToolsLayer

class Made(PlainLayer[NoLayerDeps]):
    type_id = "made"

    def __init__(self, what):
        self.what = what

made = LayerProvider.from_factory(layer_type=Made, create=lambda _: Made(1))
tools = LayerProvider.from_factory(layer_type=ToolsLayer, create=lambda _: ToolsLayer())
"""


def test_providers_of_a_file_are_known_too_and_those_of_nodes_are_named(call: Call, config: Path) -> None:
    mine = config.with_name("mine.py")
    mine.write_text(PROVIDED)
    rows = [{"name": "m", "type": "made"}, {"name": "t", "type": "any"}, {"name": "u", "type": "any"}]
    config.write_text(json.dumps({"layers": rows}))
    check = ("layers", "check", str(config), "--import", str(mine))
    said = call(*check, "--node-provider", "t=tools")
    assert (said.status, said.out) == (1, "Layer type id 'any' is not registered\n")
    said = call(*check, "--node-provider", "t=tools", "--node-provider", "u=ToolsLayer")
    assert (said.status, said.out) == (0, "3 layers, nothing wrong\n")
    assert call(*check, "--node-provider", "x=tools").out.count("unknown layer node names: x") == 1
    for wrong, told in (("t=gone", "no imported file has 'gone'"), ("t", "is not NODE=VARIABLE")):
        said = call(*check, "--node-provider", wrong)
        assert (said.status, told in said.err) == (2, True)


def test_a_type_id_of_two_classes_is_told_unless_the_list_of_the_program_is_named(call: Call, config: Path) -> None:
    mine, twice = config.with_name("mine.py"), config.with_name("twice.py")
    twice.write_text(MINE + "\nPROVIDERS = [PromptLayer, Mine]\n")
    check = ("layers", "check", str(config), "--import", str(mine), "--import", str(twice))
    said = call(*check)
    assert (said.status, said.out) == (1, "Layer type id 'mine' is already registered\n")
    assert call(*check, "--providers", "PROVIDERS").status == 0
    assert "is no list of providers" in call(*check, "--providers", "Mine").err


def test_a_subclass_takes_the_place_of_an_imported_class_of_its_type(call: Call, config: Path) -> None:
    mine = config.with_name("mine.py")
    mine.write_text(MINE + "\nclass Rules(PromptLayer):\n    pass\n")
    assert call("layers", "check", str(config), "--import", str(mine)).status == 0


def test_places_types_and_settings_are_told_together(call: Call, config: Path) -> None:
    mine = config.with_name("mine.py")
    mine.write_text(MINE + '    required_env = ("MINE_KEY",)\n')
    rows = [{"name": "a", "type": "gone", "deps": {"k": "z"}}, {"name": "b", "type": "mine"}]
    config.write_text(json.dumps({"layers": rows}))
    said = call("layers", "check", str(config), "--import", str(mine), "--settings", "--json")
    assert said.json["problems"] == [
        "Layer type id 'gone' is not registered",
        "Layer 'a' depends on undefined layer names: z",
        "Layer 'b': Dependency 'rules' is required",
        "Layer 'b' needs environment variables that are not set: MINE_KEY",
    ]


def test_settings_that_layers_need_are_named_when_they_are_asked_for(
    call: Call, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = config.with_name("mine.py")
    mine.write_text(MINE + '    required_env = ("MINE_KEY", "MINE_URL")\n')
    monkeypatch.setenv("MINE_URL", "https://example.org")
    check = ("layers", "check", str(config), "--import", str(mine))
    assert call(*check).status == 0
    said = call(*check, "--settings")
    assert (said.status, said.out) == (1, "Layer 'tools' needs environment variables that are not set: MINE_KEY\n")
    monkeypatch.setenv("MINE_KEY", "k")
    assert call(*check, "--settings").status == 0


@pytest.mark.parametrize(
    ("text", "told"), [("{", "JSON"), ('{"more": 1}', "more"), ('{"schema_version": 2}', "must be 1")]
)
def test_a_malformed_file_is_one_line(call: Call, config: Path, text: str, told: str) -> None:
    config.write_text(text)
    said = call("layers", "check", str(config))
    assert said.status == 2
    assert said.err.startswith("DAGBOK-USAGE: ")
    assert told in said.err
    assert call("layers", "graph", str(config.with_name("absent.json"))).status == 2


def test_a_config_in_yaml(call: Call, config: Path) -> None:
    file = config.with_suffix(".yaml")
    file.write_text("layers:\n- {name: rules, type: plain.prompt}\n")
    assert call("layers", "graph", str(file)).out == "1. rules (plain.prompt)\n"
    file.write_text("layers: [")
    assert "is no YAML" in call("layers", "graph", str(file)).err


BOMB = "layers: []\na: &a [x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefgh"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[" * 5_000, "nested too deeply"),
        ("layers: [{name: caf\u00e9}]".encode("latin-1"), "can't decode byte 0xe9"),
        (BOMB.encode(), "more than 100,000 values"),
        (b"layers: &a [*a]", "more than 100,000 values"),
        (b"layers: !!int ''", "is no YAML"),
    ],
)
def test_yaml_that_cannot_be_read_is_one_line_that_says_why(call: Call, config: Path, text: bytes, told: str) -> None:
    file = config.with_suffix(".yaml")
    file.write_bytes(text)
    refused = call("layers", "check", str(file))
    assert (refused.status, refused.out) == (2, "")
    assert told in refused.err
    assert len(refused.err.splitlines()) == 1


def test_drawings(call: Call, config: Path) -> None:
    assert call("layers", "graph", str(config)).out.splitlines()[1] == "2. tools (mine) <- rules"
    assert '    n0 -->|"rules"| n1' in call("layers", "graph", str(config), "--format", "mermaid").out.splitlines()
    svg = ElementTree.fromstring(call("layers", "graph", str(config), "--format", "svg").out)
    assert len(svg.findall("{http://www.w3.org/2000/svg}rect")) == 2
    assert [each.text for each in svg.iter("{http://www.w3.org/2000/svg}title")] == ["rules"]


def test_the_schema_is_exported(call: Call) -> None:
    assert set(call("layers", "schema").json["properties"]) == {"schema_version", "layers"}
