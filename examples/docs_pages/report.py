"""What is published: a report on each page, and one on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from docs_pages.page import Finding, Page


class PageReport(Struct, frozen=True, tag="page"):
    """The result of one file: which bytes were read, what they contain (none: unreadable), and what is wrong."""

    file: str
    sha256: str | None
    page: Page | None
    findings: list[Finding]


class Row(Struct, frozen=True):
    """One file in a report on many."""

    file: str
    headings: int
    links: int
    fences: int
    findings: list[Finding]


class Report(Struct, frozen=True, tag="report"):
    """The totals, findings by kind, and a row for each file, by name."""

    files: int
    headings: int
    links: int
    fences: int
    findings: dict[str, int]
    rows: list[Row]


def row_of(report: PageReport) -> Row:
    """One line of the table."""
    page = report.page or Page()
    return Row(report.file, len(page.headings), len(page.links), page.fences, report.findings)


def report_of(rows: Iterable[Row]) -> Report:
    """The report on these files."""
    ordered = sorted(rows, key=lambda row: row.file)
    return Report(
        files=len(ordered),
        headings=sum(row.headings for row in ordered),
        links=sum(row.links for row in ordered),
        fences=sum(row.fences for row in ordered),
        findings=dict(Counter(finding.kind for row in ordered for finding in row.findings)),
        rows=ordered,
    )


def markdown_of(report: Report, folder: str) -> str:
    """The report as a page to read."""
    lines = [
        f"# Documentation below {_cell(folder)}",
        "",
        f"{report.files} files, {report.headings} headings, {report.links} links, {report.fences} blocks of code.",
        "",
        "| finding | count |",
        "|---|---:|",
        *[f"| {kind} | {count} |" for kind, count in sorted(report.findings.items())],
        f"| all | {sum(report.findings.values())} |",
        "",
        "| file | line | finding | about |",
        "|---|---:|---|---|",
        *[
            f"| {_cell(row.file)} | {finding.line or ''} | {finding.kind} | {_cell(_about(finding))} |"
            for row in report.rows
            for finding in sorted(row.findings, key=lambda finding: finding.line)
        ],
    ]
    return "\n".join(lines) + "\n"


def _about(finding: Finding) -> str:
    return finding.about if finding.first is None else f"{finding.about} (first in line {finding.first})"


def _cell(text: str) -> str:
    """Text that neither ends its cell nor becomes a link of the report."""
    return "`" + text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"
