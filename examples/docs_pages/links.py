"""What is wrong with a page: links that lead nowhere, anchors of one name, code fences without an end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from docs_pages.markdown import read_markdown
from docs_pages.page import Finding, Page, text_of
from docs_pages.rst import read_rst

SUFFIXES = (".md", ".markdown", ".rst")
NOT_RELATIVE = re.compile(r"[a-z][a-z0-9+.-]*:|/|[^#]*[{}$]", re.IGNORECASE)
"""Links to elsewhere, from the root of a site, and templates: kept in the result, but not followed."""
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def read_page(text: str, suffix: str) -> Page:
    """The parts of a page; `suffix` says in which language it is written."""
    return read_rst(text) if suffix.lower() == ".rst" else read_markdown(text)


def findings(page: Page, path: Path) -> Iterator[Finding]:
    """What is wrong with the page that lies at `path`."""
    for link in page.links:
        if kind := _broken(page, path, link.text):
            yield Finding(link.line, kind, link.text)
    for heading in page.headings:
        if heading.repeats is not None:
            yield Finding(heading.line, "duplicate_anchor", heading.anchor, heading.repeats)
    first: dict[str, int] = {}
    for mark in page.anchors:
        if mark.text in first:
            yield Finding(mark.line, "duplicate_anchor", mark.text, first[mark.text])
        first.setdefault(mark.text, mark.line)
    if page.open_fence is not None:
        yield Finding(page.open_fence, "unbalanced_fence", "a code fence without an end")


def _broken(page: Page, path: Path, target: str) -> str | None:
    if NOT_RELATIVE.match(target):
        return None
    place, _, anchor = target.partition("#")
    place = unquote(unescape(ESCAPED.sub(r"\1", place.partition("?")[0])))
    there = path.parent / place if place else path
    try:
        changed_ns = there.stat().st_mtime_ns
    except (OSError, ValueError):
        return "broken_link"
    if not anchor or there.suffix.lower() not in SUFFIXES or not there.is_file():
        return None
    other = _page_at(there, changed_ns) if place else page
    return None if other is None or other.has_anchor(unquote(anchor)) else "broken_anchor"


@lru_cache(maxsize=512)
def _page_at(path: Path, changed_ns: int) -> Page | None:
    """A page that others link to; none when it cannot be read, which is a finding of its own."""
    try:
        return read_page(text_of(path.read_bytes()), path.suffix)
    except (OSError, UnicodeDecodeError):
        return None
