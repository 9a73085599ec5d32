"""The audit of a folder, run as a user runs it; and its verifiers, given what is not true."""

from __future__ import annotations

import os
from pathlib import Path

import docs_audit
import msgspec
import pytest
from docs_pages.files import list_files, packed, shown, unpacked
from docs_pages.links import read_page
from docs_pages.report import Report

from dagbok import Dagbok, DagbokError, Outcome, RunResult, TaskContext, worker
from dagbok.agents.workers.definitions import Worker

DEFINITIONS = (docs_audit.audit_folder, docs_audit.audit_file, docs_audit.check_file, docs_audit.check_report)


def write(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


async def audit(folder: Path, data: Path, replaced: Worker | None = None) -> RunResult:
    """Audit a folder, with another worker for its key; what was published is read before the data folder is closed."""
    kept = [one for one in DEFINITIONS if replaced is None or one.key != replaced.key]
    async with Dagbok.embedded(data, *kept, *([replaced] if replaced else []), projector="none") as dagbok:
        result = await dagbok.run(docs_audit.main(folder), key="audit")
        for artifacts in result.roots.values():
            for artifact in artifacts.values():
                artifact.data()
        return result


def report_of(result: RunResult) -> Report:
    assert result.succeeded, (result.status, result.failed, result.blocked)
    return msgspec.json.decode(result.artifacts["result"].data(), type=Report)


def found(report: Report) -> set[tuple[str, int, str, str]]:
    return {(row.file, at.line, at.kind, at.about) for row in report.rows for at in row.findings}


async def test_every_kind_of_defect_is_found_where_it_is(tmp_path: Path) -> None:
    docs = write(
        tmp_path / "docs",
        good="# Good\n\n[up](#good) [there](sub/deep.md#part-two) [web](https://host/x) [dir](sub) [root](/x)\n",
        links="# Links\n\n[gone](gone.md)\n[no part](sub/deep.md#part-three)\n[no own](#nowhere)\n",
        repeats='# Twice\n\n# Twice\n\n<a id="x"></a>\n<a id="x"></a>\n',
        fence="# Fence\n\n```python\ncode\n",
        sub__deep="# Deep\n\n## Part two\n\n[back](../good.md#good)\n",
    )
    (docs / "page.rst").write_text("Page\n====\n\n`a <gone.rst>`_ `b <good.md#good>`_ `c <good.md#bad>`_\n")
    (docs / "latin.md").write_bytes("# Über\n".encode("latin-1"))
    (docs / "dangling.md").symlink_to("nothing.md")
    report = report_of(await audit(docs, tmp_path / "data"))
    assert found(report) == {
        ("links.md", 3, "broken_link", "gone.md"),
        ("links.md", 4, "broken_anchor", "sub/deep.md#part-three"),
        ("links.md", 5, "broken_anchor", "#nowhere"),
        ("repeats.md", 3, "duplicate_anchor", "twice-1"),
        ("repeats.md", 6, "duplicate_anchor", "x"),
        ("fence.md", 3, "unbalanced_fence", "a code fence without an end"),
        ("page.rst", 4, "broken_link", "gone.rst"),
        ("page.rst", 4, "broken_anchor", "good.md#bad"),
        ("latin.md", 0, "unreadable", "'utf-8' codec can't decode byte 0xdc in position 2: invalid continuation byte"),
        ("dangling.md", 0, "unreadable", "No such file or directory"),
    }
    assert report.findings == {
        "broken_link": 2, "broken_anchor": 3, "duplicate_anchor": 2, "unbalanced_fence": 1, "unreadable": 2,
    }  # fmt: skip
    assert (report.files, report.fences) == (8, 0)


async def test_the_page_names_every_finding_and_no_link_of_it_is_one(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", page="[a|b](gone|`.md)\n", other="[x](../y.md)\n")
    result = await audit(docs, tmp_path / "data")
    text = result.artifacts["report.md"].text()
    assert "| `page.md` | 1 | broken_link | `gone\\|'.md` |" in text
    assert "| `other.md` | 1 | broken_link | `../y.md` |" in text
    assert "| all | 2 |" in text
    assert read_page(text, ".md").links == []


async def test_a_folder_without_documentation_gives_an_empty_report(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    result = await audit(tmp_path / "docs", tmp_path / "data")
    assert result.tasks == 1
    assert report_of(result) == Report(files=0, headings=0, links=0, fences=0, findings={}, rows=[])


async def test_four_hundred_files_are_four_hundred_tasks(tmp_path: Path) -> None:
    pages = {f"p{n % 7}__page{n}": f"# Page {n}\n\n[next](../p{(n + 1) % 7}/page{n + 1}.md)\n" for n in range(400)}
    result = await audit(write(tmp_path / "docs", **pages), tmp_path / "data")
    assert result.counts == {"verified": 401}
    report = report_of(result)
    assert (report.files, report.headings, report.links) == (400, 400, 400)
    assert found(report) == {("p0/page399.md", 3, "broken_link", "../p1/page400.md")}


async def test_a_large_folder_is_cut_into_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs_audit, "MAX_CHILDREN", 20)
    monkeypatch.setattr(docs_audit, "SHARD_FILES", 10)
    docs = write(tmp_path / "docs", **{f"page{n}": f"[x](no{n}.md)\n" for n in range(45)})
    result = await audit(docs, tmp_path / "data")
    report = report_of(result)
    assert result.counts == {"verified": 1 + 5 + 45}
    assert found(report) == {(f"page{n}.md", 1, "broken_link", f"no{n}.md") for n in range(45)}


async def test_a_file_that_changes_before_its_review_is_read_again(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", page="# Old\n")
    attempts: list[tuple[int, object]] = []

    @worker("audit-file", pure=True)
    def slow_reader(task: TaskContext) -> Outcome:
        attempts.append((task.attempt, task.diagnostics))
        outcome = docs_audit.audit_file.function(task)
        assert isinstance(outcome, Outcome)
        write(docs, page="# New\n\n[x](gone.md)\n")
        return outcome

    result = await audit(docs, tmp_path / "data", slow_reader)
    assert attempts == [(1, None), (2, "the file has changed since it was read")]
    assert found(report_of(result)) == {("page.md", 3, "broken_link", "gone.md")}


async def test_a_worker_that_keeps_telling_wrong_things_publishes_nothing(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", page="# Page\n\n[x](gone.md)\n", other="# Other\n")

    @worker("audit-file", pure=True)
    def liar(task: TaskContext) -> Outcome:
        outcome = docs_audit.audit_file.function(task)
        assert isinstance(outcome, Outcome)
        return Outcome.candidate({**outcome.artifacts["result"].content, "findings": []})

    result = await audit(docs, tmp_path / "data", liar)
    assert not result.succeeded
    assert result.roots == {}
    assert list(result.failed.values()) == ["verification_failed"]


async def test_a_report_that_counts_wrong_is_not_published(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", page="# Page\n\n[x](gone.md)\n")

    @worker("audit-folder", pure=True)
    def miscounts(task: TaskContext) -> Outcome:
        outcome = docs_audit.audit_folder.function(task)
        assert isinstance(outcome, Outcome)
        if task.phase == "solve":
            return outcome
        wrong = {**outcome.artifacts["result"].content, "links": 2}
        return Outcome.candidate(wrong, artifacts={"report.md": outcome.artifacts["report.md"]})

    result = await audit(docs, tmp_path / "data", miscounts)
    assert list(result.failed.values()) == ["verification_failed"]
    assert result.roots == {}


def test_hidden_folders_packages_and_environments_are_not_listed(tmp_path: Path) -> None:
    write(tmp_path, b="", a__c="", **{".git__x": "", ".venv__x": "", "node_modules__x": "", "env__lib__x": ""})
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "A.RST").touch()
    (tmp_path / "code.py").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    assert list_files(tmp_path) == [Path("A.RST"), Path("a/c.md"), Path("b.md")]


def test_the_results_of_runs_are_not_listed(tmp_path: Path) -> None:
    run = "da49b17486319823875b6c17a975e222"
    write(tmp_path, output__own="", **{f"data__output__{run}__report": "", f"data__{run}__page": ""})
    assert list_files(tmp_path) == [Path("data", run, "page.md"), Path("output/own.md")]


def test_a_file_name_need_not_be_text(tmp_path: Path) -> None:
    name = Path(os.fsdecode(b"caf\xe9 \xcc\x81%.md"))
    assert unpacked(packed(name)) == name
    assert shown(name) == "caf\N{REPLACEMENT CHARACTER} \N{COMBINING ACUTE ACCENT}%.md"


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DagbokError, match="is not a folder"):
        docs_audit.main(tmp_path / "nothing")
