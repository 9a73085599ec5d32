"""Files for `dagbok run`: how they are loaded, what their `main` becomes, and what is said of broken ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dagbok import DagbokError, TaskSpec, Worker
from dagbok.cli.entry import Entry, call_main
from dagbok.cli.module_file import load, load_all, load_file
from dagbok.cli.pools import registry_of, shared_definitions
from dagbok.events.errors import InvalidInput
from tests.cli.conftest import Call
from tests.cli.programs import Program

HEAD = "from pathlib import Path\nfrom enum import Enum\nfrom dagbok import Outcome, TaskSpec, worker, verifier\n"
SPEC = 'TaskSpec(goal="g", worker="w", verifier="v", inputs=repr(locals()))'


def written(folder: Path, text: str, name: str = "flow.py") -> Path:
    """A file with that text."""
    path = folder / name
    path.write_text(HEAD + text)
    return path


def entered(path: Path, *options: str) -> Entry:
    """What `main` of the file gives."""
    found = call_main(load_file(path), options, path.name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("signature", "options", "arguments"),
    [
        ("count: int = 3", [], '{"count":3}'),
        ("count: int = 3", ["--count", "3"], '{"count":3}'),
        ("name: str, deep: bool = False", ["x", "--deep"], '{"deep":true,"name":"x"}'),
        ("name: str, deep: bool = True", ["--name", "x", "--no-deep"], '{"deep":false,"name":"x"}'),
        ("parts: list[str]", ["--parts", "a", "--parts", "b"], '{"parts":["a","b"]}'),
        ("rate: float | None = None", ["--rate", "0.5"], '{"rate":0.5}'),
    ],
)
def test_parameters_of_main_are_options(tmp_path: Path, signature: str, options: list[str], arguments: str) -> None:
    entry = entered(written(tmp_path, f"def main({signature}):\n    return {SPEC}\n"), *options)
    assert entry.arguments == arguments
    assert isinstance(entry.tasks[0], TaskSpec)


def test_a_path_means_the_place_it_names_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, f"def main(at: Path = Path('.')):\n    return {SPEC}\n")
    monkeypatch.chdir(tmp_path)
    assert entered(path).arguments == entered(path, "--at", str(tmp_path)).arguments
    monkeypatch.chdir("/")
    assert entered(path).arguments == '{"at":"/"}'


def test_the_key_depends_on_file_arguments_folder_and_number(tmp_path: Path) -> None:
    text = f"def main(count: int = 3):\n    return {SPEC}\n"
    one, other = entered(written(tmp_path, text)), entered(written(tmp_path, text, "other.py"))
    more = entered(written(tmp_path, text), "--count", "4")
    keys = {
        one.key(tmp_path, 0),
        one.key(tmp_path, 1),
        one.key(tmp_path / "data", 0),
        other.key(tmp_path, 0),
        more.key(tmp_path, 0),
    }
    assert len(keys) == 5
    assert one.key(tmp_path / "data" / "..", 0) == one.key(tmp_path, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ny = nothing\n", "flow.py:5: NameError: name 'nothing' is not defined"),
        ("def main(:\n", "flow.py:4: SyntaxError: invalid syntax"),
        ("import no_such_module_anywhere\n", "flow.py:4: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)\n", "flow.py:4: SystemExit: 3"),
        ("x = 1\n", "flow.py: it has no main(…)"),
        ("async def main():\n    pass\n", "a main that is no plain function"),
        ("def main():\n    return 3\n", "flow.py: main returned int"),
        ("def main():\n    return []\n", "flow.py: main returned list"),
        ("def main():\n    1 / 0\n", "flow.py:5: ZeroDivisionError: division by zero"),
        ('def main():\n    return TaskSpec(goal="", worker="w", verifier="v")\n', "flow.py:5: ValidationError: goal: "),
    ],
)
def test_a_broken_file_is_told_with_its_line(call: Call, tmp_path: Path, text: str, said: str) -> None:
    found = call("run", str(written(tmp_path, text)), "--data", str(tmp_path / "data"))
    assert found.status == 2
    assert found.err.startswith("DAGBOK-BAD-MODULE: ")
    assert said in found.err
    assert len(found.err.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_file_that_is_not_there(call: Call, tmp_path: Path) -> None:
    found = call("run", str(tmp_path / "none.py"), "--json")
    assert (found.status, found.error["code"]) == (2, "bad_module")
    assert "No such file" in found.error["message"]


def test_an_error_of_dagbok_in_main_is_told_as_it_is(call: Call, tmp_path: Path) -> None:
    text = (
        "from dagbok import DagbokError, Code\ndef main():\n    raise DagbokError('no folder', code=Code.NOT_FOUND)\n"
    )
    found = call("run", str(written(tmp_path, text)))
    assert found.status == 3
    assert found.err.startswith("DAGBOK-NOT-FOUND: no folder — ")


def test_debug_shows_where_it_came_from(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "1 / 0\n")
    assert "Traceback" in call("run", str(path), "--debug").err
    monkeypatch.setenv("DAGBOK_DEBUG", "1")
    assert "ZeroDivisionError" in call("run", str(path)).err.splitlines()[-2]


@pytest.mark.parametrize("option", ["--nope", "--count=x"])
def test_a_wrong_option_of_main_is_a_usage_error(call: Call, program: Program, option: str) -> None:
    found = call(*program.command(option))
    assert found.status == 2
    assert found.err.startswith("DAGBOK-USAGE: ")
    assert found.err.endswith(f"see dagbok run {program.file} --help\n")
    assert not program.data.exists()


def test_help_on_a_file_shows_the_options_of_both(call: Call, program: Program) -> None:
    found = call("run", str(program.file), "--help")
    assert found.status == 0
    assert "--new" in found.out
    assert "How many parts." in found.out


def test_options_behind_two_dashes_are_those_of_main(call: Call, tmp_path: Path) -> None:
    path = written(tmp_path, "def main(data: str):\n    raise ValueError(f'data is {data}')\n")
    found = call("run", str(path), "--data", str(tmp_path / "data"), "--", "--data", "table.csv")
    assert "data is table.csv" in found.err


def test_a_file_finds_its_neighbours(tmp_path: Path) -> None:
    written(tmp_path, "@worker('w')\ndef w(task):\n    return None\n", "neighbour_of_flow.py")
    path = written(tmp_path, "from neighbour_of_flow import w\n")
    module, neighbour = load_all([str(path), str(tmp_path / "neighbour_of_flow.py")])
    # The same definition, not a second one of the same key.
    assert vars(module)["w"] is vars(neighbour)["w"]


def test_the_same_file_is_loaded_once(tmp_path: Path) -> None:
    path = written(tmp_path, "x = 1\n")
    assert len(load_all([str(path), os.path.relpath(path)])) == 1


def test_a_module_is_imported_by_its_name() -> None:
    assert load("tests.cli.adding") is sys.modules["tests.cli.adding"]
    with pytest.raises(DagbokError, match="no_such_module"):
        load("no_such_module_anywhere")


def test_a_pool_is_served_by_its_own_file_first(tmp_path: Path) -> None:
    text = "@worker({key!r})\ndef one(task):\n    return None\n@worker('both')\ndef both(task):\n    return None\n"
    left = load_file(written(tmp_path, text.format(key="left"), "left.py"))
    right = load_file(written(tmp_path, text.format(key="right"), "right.py"))
    registry = registry_of(left, [right])
    assert set(registry.workers) == {"left", "right", "both"}
    assert registry.workers["both"] is vars(left)["both"]
    # Nobody can say which one the default pool should take.
    assert [item.key for item in shared_definitions([left, right]) if isinstance(item, Worker)] == ["left", "right"]


def test_two_definitions_of_one_key_in_one_file_are_refused(tmp_path: Path) -> None:
    text = "@worker('w')\ndef a(task):\n    return None\n@worker('w')\ndef b(task):\n    return None\n"
    with pytest.raises(InvalidInput, match="two workers have the key 'w'"):
        registry_of(load_file(written(tmp_path, text)), [])
