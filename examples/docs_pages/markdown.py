"""Reads Markdown line by line, as GitHub shows it. A code span ends on the line where it begins."""

from __future__ import annotations

import re
from html import unescape

from docs_pages.page import Mark, Outline, Page

FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")
FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*$")
HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t](.*))?$")
UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
NO_PARAGRAPH = re.compile(r"[ \t]*$|[ \t]{4}|[ \t]*(?:[-*+>|]|\d+[.)])(?:[ \t]|$)|[ \t]*\|")
CONTAINER = re.compile(r" {0,3}(?:[-*+]|\d+[.)]|!!!|\?\?\?\+?|===|\[\^[^\]]*\]:|:)(?:[ \t]|$)")
CODE_OR_COMMENT = re.compile(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)|(<!--)(?:.*?-->|.*$)")
INLINE_LINK = re.compile(r"(?<!\\)\]\([ \t]*(?:<([^<>]+)>|((?!<)(?:[^\s()]|\([^\s()]*\))+))(?=[)\s]|$)")
DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\]]+\]:[ \t]*(?:<([^<>]+)>|(\S+))")
HTML_LINK = re.compile(r"<[a-z][^<>]*?\s(?:href|src)[ \t]*=[ \t]*(?:\"([^\"]+)\"|'([^']+)')", re.IGNORECASE)
HTML_ANCHOR = re.compile(r"<[a-z][^<>]*?\s(?:id|name)[ \t]*=[ \t]*[\"']?([^\"'\s<>]+)", re.IGNORECASE)
CUSTOM_ANCHOR = re.compile(r"[ \t]*\{:?[ \t]*#([^\s{}]+)[^{}]*\}$")


def read_markdown(text: str) -> Page:
    """The parts of a page."""
    reader = _Reader()
    lines = text.split("\n")
    begin = _front_matter(lines)
    for number, line in enumerate(lines[begin:], begin + 1):
        reader.read(number, line)
    return reader.page


def slug_of(title: str) -> str:
    """The anchor that GitHub gives a heading, but for the number that tells equal ones apart."""
    plain_and_code = re.split(r"`+", title)
    for index in range(0, len(plain_and_code), 2):
        plain = re.sub(r"\](?:\([^)]*\)|\[[^\]]*\])", "", plain_and_code[index])
        plain = re.sub(r"<[a-z/!][^>]*>", "", plain, flags=re.IGNORECASE)
        plain_and_code[index] = unescape(re.sub(r"(?<![\w\\])_+(?=\S)|(?<=[^\s\\])_+(?!\w)", "", plain))
    words = "".join(plain_and_code).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


class _Reader:
    def __init__(self) -> None:
        self.page = Page()
        self._outline = Outline(self.page)
        self._fence = ""
        self._in_comment = False
        self._in_code = False
        self._in_container = False
        self._blank_above = True
        self._paragraph = ""

    def read(self, number: int, line: str) -> None:
        if self._fence:
            self._end_fence(line)
        elif self._in_comment:
            self._end_comment(number, line)
        elif opening := FENCE.match(line):
            self._fence, self.page.open_fence, self._paragraph = opening[1], number, ""
        else:
            self._prose(number, line)

    def _end_fence(self, line: str) -> None:
        ending = FENCE_END.match(line)
        if ending and ending[1].startswith(self._fence):
            self._fence, self.page.open_fence = "", None
            self.page.fences += 1

    def _end_comment(self, number: int, line: str) -> None:
        before, end, after = line.partition("-->")
        if end:
            self._in_comment, self._paragraph, self._blank_above = False, "", False
            self._inline(number, " " * len(before + end) + after)

    def _prose(self, number: int, line: str) -> None:
        if self._is_indented_code(line):
            return
        self._headings(number, line)
        self._inline(number, line)

    def _inline(self, number: int, line: str) -> None:
        prose = CODE_OR_COMMENT.sub(self._blank, line)
        for pattern in (INLINE_LINK, DEFINITION, HTML_LINK):
            self.page.links += [Mark(number, found[1] or found[2]) for found in pattern.finditer(prose)]
        self.page.anchors += [Mark(number, found[1]) for found in HTML_ANCHOR.finditer(prose)]

    def _blank(self, found: re.Match[str]) -> str:
        self._in_comment |= found[2] is not None and not found[0].endswith("-->")
        return " " * len(found[0])

    def _is_indented_code(self, line: str) -> bool:
        """Four spaces after an empty line are code, unless they belong to a list, a note or a footnote."""
        indented = line.startswith(("    ", "\t"))
        if line.strip():
            self._in_code = indented and not self._in_container and (self._blank_above or self._in_code)
            if CONTAINER.match(line):
                self._in_container = True
            elif self._blank_above and not line.startswith((" ", "\t")):
                self._in_container = False
        self._blank_above = not line.strip()
        return self._in_code

    def _headings(self, number: int, line: str) -> None:
        above, self._paragraph = self._paragraph, ""
        if heading := HEADING.match(line):
            self._heading(number, re.sub(r"(?:^|[ \t])#+$", "", (heading[1] or "").strip()).strip())
        elif above and UNDERLINE.match(line):
            self._heading(number - 1, above)
        elif not NO_PARAGRAPH.match(line):
            self._paragraph = line.strip()

    def _heading(self, number: int, title: str) -> None:
        if custom := CUSTOM_ANCHOR.search(title):
            self.page.anchors.append(Mark(number, custom[1]))
            title = title[: custom.start()]
        self._outline.add(number, title, slug_of(title))


def _front_matter(lines: list[str]) -> int:
    """How many lines of metadata stand before the page."""
    if lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0)
