"""Judges what was said of a page, without reading it the same way.

The reader is a machine that goes from line to line. Here one regular expression blanks out what is no prose, and single
claims are held against the rest and against the disk. Whatever is unclear (how a heading with markup is spelled, say)
is tested only as far as both ways of reading must agree: a complaint is always right, though not everything is seen.
"""

from __future__ import annotations

import os.path
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from html import unescape
from urllib.parse import unquote, urlsplit

from docs_pages.page import Page
from docs_pages.report import PageReport

NO_MARKDOWN = re.compile(
    r"""
    \A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*$
    | ^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*
      (?:\n(?:.*\n)*?[ \t>]*(?P=fence)[`~]*[ \t]*$|(?P<open>(?s:.*)\Z))
    | (?<![`\\])(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)
    | <!--(?s:.*?)(?:-->|\Z)
    """,
    re.VERBOSE | re.MULTILINE,
)
NO_RST = re.compile(r"^(?:[ \t]|\.\.(?: |$)).*$|``.+?``", re.MULTILINE)
ATX = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
ADORNMENT = re.compile(r"\s*([!-/:-@\[-`{-~])\1*\s*$")
PLAIN_HEADING = re.compile(r"#{1,6} ([A-Za-z][A-Za-z0-9]*(?: [A-Za-z0-9]+)*)$")
PLAIN_TITLE = re.compile(r"(?:\A|\n\n)(\w[\w ]*)\n(={3,}|-{3,}|~{3,})\n\n")
PLAIN_LINK = re.compile(r"(?<!\\)\]\(([^\s()<>\\]+)\)")
PLAIN_REFERENCE = re.compile(r"<([^\s<>`]*[^\s<>`_])>`_")
ANCHOR_SIGN = re.compile(r"\b(?:id|name)\s*=|\{:?\s*#|\.\. _|_`", re.IGNORECASE)


class Sight:
    """A page as the checks see it: its lines, and the same lines with all that is no prose blanked out."""

    def __init__(self, text: str, path: str) -> None:
        self.path, self.is_rst = path, path.lower().endswith(".rst")
        self.lines = text.split("\n")
        self.blocks = list((NO_RST if self.is_rst else NO_MARKDOWN).finditer(text))
        self.prose = (NO_RST if self.is_rst else NO_MARKDOWN).sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        self.prose_lines = self.prose.split("\n")

    def line(self, number: int) -> str:
        """A line from 1; empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def number_at(self, offset: int) -> int:
        """The line of a place in the text."""
        return self.prose.count("\n", 0, offset) + 1

    def titles(self) -> Iterator[tuple[int, str]]:
        """Headings that every reader of Markdown spells alike."""
        for number, line in enumerate(self.prose_lines, 1):
            if not self.is_rst and (plain := PLAIN_HEADING.match(line)) and line == self.line(number):
                yield number, plain[1]

    def surely_has(self, anchor: str) -> bool:
        """A plain heading or label gives this anchor."""
        if self.is_rst:
            return f".. _{anchor}:" in self.lines
        return any(title.replace(" ", "-").lower() == anchor.lower() for _, title in self.titles())

    def may_have(self, anchor: str) -> bool:
        """Some heading, label or attribute is spelled with the letters of this anchor."""
        return anchor.lower() in ("", "top") or any(spelled(anchor, line) for line in self._may_be_anchors)

    @cached_property
    def _may_be_anchors(self) -> list[str]:
        below = [*self.lines[1:], ""]
        return [
            line
            for line, next_line in zip(self.lines, below, strict=True)
            if ATX.match(line) or ANCHOR_SIGN.search(line) or ADORNMENT.match(next_line)
        ]


def complaints(report: PageReport, text: str, path: str) -> Iterator[str]:
    """What is not true, or missing, in a report on the page that has this text and lies at this path."""
    sight, page = Sight(text, path), report.page
    if page is None:
        yield "the file can be read"
        return
    yield from _headings(sight, page)
    yield from _links(sight, page, report)
    yield from _duplicates(sight, report)
    if not sight.is_rst:
        yield from _fences(sight, page, report)


def spelled(anchor: str, line: str) -> bool:
    """Do the letters of an anchor stand in this line, in their order?"""
    letters = iter(unescape(line).lower())
    return all(letter in letters for letter in re.sub(r"-\d+$", "", anchor.lower()) if letter.isalnum())


def _headings(sight: Sight, page: Page) -> Iterator[str]:
    reported = {heading.line for heading in page.headings}
    for heading in page.headings:
        is_atx = not sight.is_rst and ATX.match(sight.line(heading.line))
        if not is_atx and not ADORNMENT.match(sight.line(heading.line + 1)):
            yield f"line {heading.line} is no heading"
        elif not spelled(heading.anchor, sight.line(heading.line)):
            yield f"line {heading.line} does not give the anchor {heading.anchor!r}"
    if sight.is_rst:
        titles = [found for found in PLAIN_TITLE.finditer(sight.prose) if len(found[1]) <= len(found[2])]
        seen = {sight.number_at(found.start(1)) for found in titles}
    else:
        lines = enumerate(zip(sight.prose_lines, sight.lines, strict=True), 1)
        seen = {number for number, (prose, line) in lines if ATX.match(prose) and ATX.match(line)}
    for number in sorted(seen - reported):
        yield f"the heading in line {number} is missing"


def _links(sight: Sight, page: Page, report: PageReport) -> Iterator[str]:
    broken = {(finding.line, finding.about): finding.kind for finding in report.findings if "broken" in finding.kind}
    reported = {(link.line, link.text) for link in page.links}
    in_line: defaultdict[int, str] = defaultdict(str)
    for link in page.links:
        in_line[link.line] += f" {link.text} "
    for number, line in enumerate(sight.prose_lines, 1):
        for found in (PLAIN_REFERENCE if sight.is_rst else PLAIN_LINK).finditer(line):
            if found[1] not in in_line[number] and not line.startswith(("    ", "\t")):
                yield f"the link to {found[1]} in line {number} is missing"
    for number, target in sorted(reported | broken.keys()):
        if target not in sight.line(number):
            yield f"line {number} has no link to {target}"
        elif problem := _misjudged(sight, target, broken.get((number, target))):
            yield f"line {number}: {problem}"


def _misjudged(sight: Sight, target: str, kind: str | None) -> str | None:
    """What is wrong with saying that a link is broken in this way, or (none) that it is not."""
    try:
        link = urlsplit(target)
    except ValueError:
        return None
    if link.scheme or link.netloc or link.path.startswith("/") or set("{}$") & set(target.partition("#")[0]):
        return None if kind is None else f"{target} is no relative link"
    place = os.path.join(os.path.dirname(sight.path), unquote(unescape(re.sub(r"\\(\W)", r"\1", link.path))))
    if os.path.exists(place) == (kind == "broken_link"):
        return f"{target} {'exists' if kind else 'does not exist'}"
    if kind == "broken_link" or (link.path and not place.lower().endswith((".md", ".markdown", ".rst"))):
        return None
    there = _sight_at(place, os.path.getmtime(place)) if link.path else sight
    anchor = unquote(link.fragment)
    if there is None:
        return None
    if kind is None and not there.may_have(anchor):
        return f"nothing gives the anchor of {target}"
    return f"a heading gives the anchor of {target}" if kind and there.surely_has(anchor) else None


@lru_cache(maxsize=256)
def _sight_at(path: str, changed_s: float) -> Sight | None:
    try:
        with open(path, encoding="utf-8-sig") as file:  # in text mode, every kind of line end becomes one
            return Sight(file.read(), path)
    except (OSError, UnicodeDecodeError):
        return None


def _duplicates(sight: Sight, report: PageReport) -> Iterator[str]:
    duplicates = {finding.line: finding for finding in report.findings if finding.kind == "duplicate_anchor"}
    for number, finding in duplicates.items():
        lines = (sight.line(number), sight.line(finding.first or 0))
        if not all(line and spelled(finding.about, line) for line in lines):
            yield f"lines {finding.first} and {number} do not both give the anchor {finding.about!r}"
    seen: set[str] = set()
    for number, title in sight.titles():
        if title.lower() in seen and number not in duplicates:
            yield f"the heading in line {number} repeats another one"
        seen.add(title.lower())


def _fences(sight: Sight, page: Page, report: PageReport) -> Iterator[str]:
    fences = [block for block in sight.blocks if block["fence"]]
    never_ends = [sight.number_at(block.start("fence")) for block in fences if block["open"] is not None]
    if page.fences != len(fences) - len(never_ends):
        yield f"{len(fences) - len(never_ends)} code fences end, not {page.fences}"
    if never_ends != [finding.line for finding in report.findings if finding.kind == "unbalanced_fence"]:
        yield f"code fences without an end: {never_ends}"
