"""What the verifier of a page sees when a report is not true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from docs_pages.check import complaints
from docs_pages.links import findings, read_page
from docs_pages.page import Finding, Heading, Mark, Page
from docs_pages.report import PageReport

PAGE = "# Title\n\nText\n\n## Same\n\n[a](gone.md) [b](#title)\n\n## Same\n\n```\ncode\n```\n\n[c](#nothing)\n\n```\n"


def true_report(folder: Path) -> PageReport:
    path = folder / "page.md"
    path.write_text(PAGE)
    page = read_page(PAGE, ".md")
    return PageReport("page.md", "", page, list(findings(page, path)))


LIES: dict[str, Callable[[Page, list[Finding]], object]] = {
    "no heading": lambda page, found: page.headings.pop(),
    "a heading too many": lambda page, found: page.headings.append(Heading(3, "Text", "text")),
    "a heading that is not there": lambda page, found: page.headings.append(Heading(99, "Text", "text")),
    "another anchor": lambda page, found: page.headings.insert(0, Heading(1, "Title", "heading")),
    "no link": lambda page, found: page.links.pop(0),
    "a link too many": lambda page, found: page.links.append(Mark(3, "other.md")),
    "the link in another line": lambda page, found: page.links.append(Mark(1, "gone.md")),
    "a fence too many": lambda page, found: setattr(page, "fences", 2),
    "no broken link": lambda page, found: found.remove(Finding(7, "broken_link", "gone.md")),
    "no broken anchor": lambda page, found: found.remove(Finding(15, "broken_anchor", "#nothing")),
    "a broken anchor that is not": lambda page, found: found.append(Finding(7, "broken_anchor", "#title")),
    "a broken link that is not": lambda page, found: found.append(Finding(7, "broken_link", "#title")),
    "no repeated heading": lambda page, found: found.remove(Finding(9, "duplicate_anchor", "same-1", 5)),
    "a repeat that is none": lambda page, found: found.append(Finding(5, "duplicate_anchor", "same", 1)),
    "no open fence": lambda page, found: found.pop(),
    "an open fence elsewhere": lambda page, found: found.append(Finding(11, "unbalanced_fence", "x")),
}


def test_a_true_report_has_no_complaints(tmp_path: Path) -> None:
    assert list(complaints(true_report(tmp_path), PAGE, str(tmp_path / "page.md"))) == []


@pytest.mark.parametrize("lie", LIES)
def test_the_verifier_sees(lie: str, tmp_path: Path) -> None:
    report = true_report(tmp_path)
    assert report.page is not None
    LIES[lie](report.page, report.findings)
    assert list(complaints(report, PAGE, str(tmp_path / "page.md"))) != []


def test_what_is_called_unreadable_is_tried(tmp_path: Path) -> None:
    unreadable = PageReport("page.md", "", None, [Finding(0, "unreadable", "Permission denied")])
    assert list(complaints(unreadable, PAGE, str(tmp_path / "page.md"))) == ["the file can be read"]
