"""Audits a folder of documentation: broken relative links and anchors, duplicate anchors, code fences without an end.

    dagbok run examples/docs_audit.py --input FOLDER

The root task lists the files and decomposes into one task per file. Each result is judged by a verifier that looks at
the file in a way of its own (`docs_pages/check.py`). When all are verified, the root runs again, in phase `integrate`,
and publishes the report: `result` (JSON) and a page of Markdown. Stop it at any moment and start it again: it goes on.
"""

from __future__ import annotations

import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import msgspec
from docs_pages.check import complaints
from docs_pages.files import list_files, packed, shown, unpacked
from docs_pages.links import findings, read_page
from docs_pages.page import Finding, text_of
from docs_pages.report import PageReport, Report, markdown_of, report_of, row_of

from dagbok import Artifact, Candidate, Code, DagbokError, Outcome, TaskContext, TaskSpec, Verdict, verifier, worker

REPOSITORY = Path(__file__).resolve().parent.parent
MAX_CHILDREN = 10_000
"""A decomposition has no more children; a larger folder is cut into shards, which decompose themselves."""
SHARD_FILES = 5_000


class FolderInputs(msgspec.Struct, frozen=True):
    """A folder, or its files of shard `shard` of `shards`; `report`: the name of the page to publish; `pace_s` as in
    `main`."""

    folder: str
    report: str
    shard: int = 0
    shards: int = 1
    pace_s: float = 0.0


class FileInputs(msgspec.Struct, frozen=True):
    """A file and the folder that it was found in. `pause_s`: how long to wait before it is read."""

    folder: str
    file: str
    pause_s: float = 0.0


def main(input: Path = REPOSITORY, report: str = "report.md", pace_s: float = 0.0) -> TaskSpec:
    """Audit the Markdown and reStructuredText files of a folder.

    `input`: the folder (default: the repository of this example). `report`: the name of the published page. `pace_s`:
    spread the reading of the files over so many seconds, to have something to watch.
    """
    if not input.is_dir():
        raise DagbokError(f"{input} is not a folder", code=Code.INVALID_SPEC, advice="name a folder that exists")
    return _folder_task(FolderInputs(packed(input.resolve()), report, pace_s=pace_s))


@worker("audit-folder", pure=True)
def audit_folder(task: TaskContext) -> Outcome:
    """List the files and give each a task of its own; when all are verified, publish what they found."""
    inputs = msgspec.convert(task.inputs, FolderInputs)
    files = [] if task.phase == "integrate" else _files(inputs)
    if len(files) > MAX_CHILDREN:
        shards = -(-len(files) // SHARD_FILES)
        return Outcome.decompose(
            [_folder_task(msgspec.structs.replace(inputs, shard=shard, shards=shards)) for shard in range(shards)]
        )
    if files:
        return Outcome.decompose([
            _file_task(FileInputs(inputs.folder, packed(file), inputs.pace_s * number / len(files)))
            for number, file in enumerate(files)
        ])
    rows = [row for child in _children(task) for row in (child.rows if isinstance(child, Report) else [row_of(child)])]
    report = report_of(rows)
    page = Artifact(content=markdown_of(report, shown(unpacked(inputs.folder))), media_type="text/markdown")
    return Outcome.candidate(msgspec.to_builtins(report), artifacts={inputs.report: page})


@worker("audit-file", pure=True)
def audit_file(task: TaskContext) -> Outcome:
    """Read a file: what it contains, and what is wrong with it. That it cannot be read is a finding, too."""
    file, name = _file(task)
    time.sleep(msgspec.convert(task.inputs, FileInputs).pause_s)
    page, digest = None, None
    try:
        data = _read(file)
        digest = sha256(data).hexdigest()
        page = read_page(text_of(data), file.suffix)
        found = list(findings(page, file))
    except (OSError, UnicodeDecodeError) as error:
        found = [Finding(0, "unreadable", getattr(error, "strerror", None) or str(error))]
    return Outcome.candidate(msgspec.to_builtins(PageReport(name, digest, page, found)))


@verifier("check-file", version="1")
def check_file(candidate: Candidate, task: TaskContext) -> Verdict:
    """The file is the one that was read, and all that is said of it holds."""
    file, name = _file(task)
    try:
        report = msgspec.json.decode(candidate["result"].data(), type=PageReport)
    except msgspec.DecodeError as error:
        return Verdict.failed(f"not the report of a page: {error}")
    digest, text = None, None
    try:
        data = _read(file)
        digest = sha256(data).hexdigest()
        text = text_of(data)
    except (OSError, UnicodeDecodeError):
        pass
    if report.file != name or report.sha256 != digest:
        return Verdict.failed("the file has changed since it was read")
    if text is None:
        readable = report.page is not None or [finding.kind for finding in report.findings] != ["unreadable"]
        return Verdict.failed("the file cannot be read") if readable else Verdict.passed()
    problems = list(complaints(report, text, str(file)))
    return Verdict.failed(problems[:20]) if problems else Verdict.passed(evidence={"sha256": digest})


@verifier("check-report", version="1")
def check_report(candidate: Candidate, task: TaskContext) -> Verdict:
    """The report counts what the published children say, and its page names every finding."""
    try:
        report = msgspec.json.decode(candidate["result"].data(), type=Report)
    except msgspec.DecodeError as error:
        return Verdict.failed(f"not a report: {error}")
    counted: Counter[str] = Counter()
    for child in _children(task):
        if isinstance(child, Report):
            counted.update(files=child.files, headings=child.headings, links=child.links, fences=child.fences)
            counted.update(child.findings)
        else:
            counted.update(["files", *[finding.kind for finding in child.findings]])
            if child.page:
                counted.update(headings=len(child.page.headings), links=len(child.page.links), fences=child.page.fences)
    claimed = Counter(
        {"files": report.files, "headings": report.headings, "links": report.links, "fences": report.fences}
    )
    claimed.update(report.findings)
    listed = Counter(finding.kind for row in report.rows for finding in row.findings)
    page = candidate[msgspec.convert(task.inputs, FolderInputs).report].text()
    named = Counter({kind: page.count(f"| {kind} | `") for kind in listed})
    if +claimed == +counted and listed == Counter(report.findings) == named and len(report.rows) == report.files:
        return Verdict.passed()
    counts = {"claimed": claimed, "counted": counted, "listed": listed, "named": named}
    return Verdict.failed({what: dict(count) for what, count in counts.items()})


def _folder_task(inputs: FolderInputs) -> TaskSpec:
    part = f", part {inputs.shard + 1} of {inputs.shards}" if inputs.shards > 1 else ""
    return TaskSpec(
        goal=f"audit the documentation in {shown(unpacked(inputs.folder))}{part}",
        worker="audit-folder",
        verifier="check-report",
        inputs=msgspec.to_builtins(inputs),
    )


def _file_task(inputs: FileInputs) -> TaskSpec:
    return TaskSpec(
        goal=f"audit {shown(unpacked(inputs.file))}",
        worker="audit-file",
        verifier="check-file",
        inputs=msgspec.to_builtins(inputs),
    )


def _files(inputs: FolderInputs) -> list[Path]:
    """The files of a shard: which one a file is in depends on its name alone, whatever is added meanwhile."""
    files = list_files(unpacked(inputs.folder))
    return [file for file in files if crc32(packed(file).encode()) % inputs.shards == inputs.shard]


def _file(task: TaskContext) -> tuple[Path, str]:
    inputs = msgspec.convert(task.inputs, FileInputs)
    return unpacked(inputs.folder) / unpacked(inputs.file), shown(unpacked(inputs.file))


def _read(file: Path) -> bytes:
    if file.exists() and not file.is_file():
        raise OSError("not a regular file")
    return file.read_bytes()


def _children(task: TaskContext) -> list[PageReport | Report]:
    """What the tasks that this one waited for published."""
    return [
        msgspec.json.decode(results["result"].data(), type=PageReport | Report)
        for results in task.dependencies.values()
    ]


if __name__ == "__main__":
    raise SystemExit("run it so: dagbok run examples/docs_audit.py")
