"""The layout that makes `dagbok.agents` and `agents/` one thing (docs/design/layout.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("agents", "events", "projections")


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_import_root_links_to_the_folder(folder: str) -> None:
    link = ROOT / "dagbok" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..", folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folder_itself_is_no_package(folder: str) -> None:
    """With an `__init__.py`, `import agents` from the repository root would hide an installed package of that name."""
    assert (ROOT / folder).is_dir()
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_of_code_below_is_a_package(folder: str) -> None:
    """One without `__init__.py` would be missing from the import graph, and so from the import contracts."""
    holding_code = {file.parent for file in (ROOT / folder).rglob("*.py")} - {ROOT / folder}
    assert sorted(str(f) for f in holding_code if not (f / "__init__.py").exists()) == []


@pytest.mark.parametrize("folder", [*FOLDERS, "dagbok"])
def test_nothing_waits_by_what_may_swallow_a_cancellation(folder: str) -> None:
    """`asyncio.wait_for` does before Python 3.12: see `dagbok.agents.hosting.services`."""
    calls = [str(file) for file in (ROOT / folder).rglob("*.py") if "asyncio.wait_for(" in file.read_text()]
    assert calls == []
