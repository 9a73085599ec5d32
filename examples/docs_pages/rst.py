"""Reads reStructuredText line by line. Roles and directives of Sphinx that need the whole project are left alone."""

from __future__ import annotations

import re

from docs_pages.page import Mark, Outline, Page

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+\s*$")
LITERAL = re.compile(r"\s*\.\. (?:code|code-block|sourcecode|parsed-literal|raw|math|prompt|doctest|testcode)::")
COMMENT = re.compile(r"\s*\.\.(?:\s+(?!_|\[|\||[\w:+.-]+::)|\s*$)")
LABEL = re.compile(r"\s*\.\. _(`[^`]+`|(?:[^:\\]|\\.)+):(?:\s+(\S.*))?$")
FILE = re.compile(r"\s*\.\. (?:\|[^|]+\| )?(?:image|figure|include|literalinclude)::\s+(\S+)\s*$")
EMBEDDED = re.compile(r"<([^<>`\s]*[^<>`\s_])>`_")
CODE = re.compile(r"``.+?``")
INLINE_ANCHOR = re.compile(r"(?<!\w)_`([^`]+)`")


def read_rst(text: str) -> Page:
    """The parts of a page."""
    reader = _Reader()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        reader.read(number, line, lines[number] if number < len(lines) else "")
    return reader.page


def slug_of(title: str) -> str:
    """The id that docutils gives a title or a label."""
    return re.sub(r"[^\w.]+", "-", title.lower()).strip("-")


class _Reader:
    def __init__(self) -> None:
        self.page = Page()
        self._outline = Outline(self.page)
        self._skipped_under: int | None = None
        self._above = ""

    def read(self, number: int, line: str, below: str) -> None:
        above, self._above = self._above, line
        indent = len(line) - len(line.lstrip())
        if self._skipped_under is not None and (not line.strip() or indent > self._skipped_under):
            return
        self._skipped_under = None
        self._prose(number, CODE.sub(lambda found: " " * len(found[0]), line))
        if _is_title(above, line, below):
            self._outline.add(number, line.strip(), slug_of(line.strip()))
        literal = LITERAL.match(line) is not None
        if literal or COMMENT.match(line) or (line.rstrip().endswith("::") and not line.lstrip().startswith("..")):
            self.page.fences += literal
            self._skipped_under = indent

    def _prose(self, number: int, line: str) -> None:
        if label := LABEL.match(line):
            name, target = label[1].strip("`").replace("\\", ""), label[2]
            if name != "_" and (target is None or target.endswith("_")):
                self.page.anchors.append(Mark(number, slug_of(name)))
            elif target is not None and " " not in target.strip():
                self.page.links.append(Mark(number, target.strip("`<> ")))
        elif file := FILE.match(line):
            self.page.links.append(Mark(number, file[1]))
        else:
            self.page.links += [Mark(number, found[1]) for found in EMBEDDED.finditer(line)]
            self.page.anchors += [Mark(number, slug_of(found[1])) for found in INLINE_ANCHOR.finditer(line)]


def _is_title(above: str, line: str, below: str) -> bool:
    """A line over an adornment at least as long; one that begins with spaces needs an adornment above it too."""
    title, adorned = line.rstrip(), below.rstrip()
    if not title or not ADORNMENT.match(adorned) or len(adorned) < len(title) or ADORNMENT.match(title):
        return False
    return above.rstrip() == adorned or (not above.strip() and not title[0].isspace())
