"""What a page of documentation consists of, and what is said about it."""

from __future__ import annotations

from msgspec import Struct, field


class Heading(Struct, frozen=True):
    """A title with its line (from 1) and the anchor it gets; `repeats`: the line of the first heading like it."""

    line: int
    title: str
    anchor: str
    repeats: int | None = None


class Mark(Struct, frozen=True):
    """A link to `text`, or an explicit anchor of that name, with its line (from 1)."""

    line: int
    text: str


class Page(Struct):
    """The parts of a page in their order. `fences`: how many blocks of code end; `open_fence`: the line of one that
    does not."""

    headings: list[Heading] = field(default_factory=list)
    anchors: list[Mark] = field(default_factory=list)
    links: list[Mark] = field(default_factory=list)
    fences: int = 0
    open_fence: int | None = None

    def has_anchor(self, name: str) -> bool:
        """Does a link to `#name` lead somewhere? Upper and lower case are one, as on GitHub."""
        names = {heading.anchor.lower() for heading in self.headings} | {mark.text.lower() for mark in self.anchors}
        return name.lower() in names | {"", "top"}


class Finding(Struct, frozen=True):
    """`kind`: broken_link, broken_anchor, duplicate_anchor, unbalanced_fence or unreadable. `about`: the link, the
    anchor or the reason. `first`: the line of the first anchor of that name."""

    line: int
    kind: str
    about: str
    first: int | None = None


class Outline:
    """Gives headings their anchors: the second of one slug gets `slug-1`, as on GitHub."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._first: dict[str, int] = {}
        self._count: dict[str, int] = {}

    def add(self, line: int, title: str, slug: str) -> None:
        """The next heading of the page."""
        anchor = slug
        while anchor in self._count:
            self._count[slug] += 1
            anchor = f"{slug}-{self._count[slug]}"
        self._count[anchor] = 0
        self._page.headings.append(Heading(line, title, anchor, self._first.get(slug)))
        self._first.setdefault(slug, line)


def text_of(data: bytes) -> str:
    """The text of a file, with one kind of line end. Raises `UnicodeDecodeError`."""
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
