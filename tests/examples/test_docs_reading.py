"""What the audit sees in a page, and that its two ways of reading agree on every page."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_pages.check import complaints
from docs_pages.links import findings, read_page
from docs_pages.page import Page, text_of
from docs_pages.report import PageReport
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scale import scale


def anchors(page: Page) -> list[str]:
    return [heading.anchor for heading in page.headings]


def links(page: Page) -> list[tuple[int, str]]:
    return [(link.line, link.text) for link in page.links]


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Plain words", "plain-words"),
        ("What's new in 2.0?", "whats-new-in-20"),
        ("`code_with_underscores` & more", "code_with_underscores--more"),
        ("_Emphasised_ **words**", "emphasised-words"),
        ("snake_case stays", "snake_case-stays"),
        ("A [link](other.md) and [another][ref]", "a-link-and-another"),
        ("`call(a[, b][, c])` with [`code`](x.md)", "calla-b-c-with-code"),
        ("Große Überschrift", "große-überschrift"),
        ("Tags <br> and &amp; entities", "tags--and--entities"),
        ("closed ##", "closed"),
        ("", ""),
    ],
)
def test_a_markdown_heading_gets_the_anchor_that_github_gives_it(title: str, anchor: str) -> None:
    assert anchors(read_page(f"## {title}\n", ".md")) == [anchor]


def test_equal_headings_are_numbered_and_named_as_repeats() -> None:
    page = read_page("# Same\n\n# Same\n\n# Same 1\n\n# Same\n", ".md")
    assert anchors(page) == ["same", "same-1", "same-1-1", "same-2"]
    assert [heading.repeats for heading in page.headings] == [None, 1, None, 1]


def test_underlined_text_is_a_heading_and_a_rule_is_not() -> None:
    assert anchors(read_page("Title\n=====\n\nSub\n---\n\n---\n\n- item\n---\n", ".md")) == ["title", "sub"]


def test_links_of_every_form_are_seen_with_their_lines() -> None:
    text = (
        "[a](one.md) and ![b](two.png \"title\")\n[long\ntext](<three four.md>)\n\n[ref]: five.md#x\n\n"
        '<a href="six.md">six</a> [p](seven_(8).md)\n'
    )
    assert links(read_page(text, ".md")) == [
        (1, "one.md"),
        (1, "two.png"),
        (3, "three four.md"),
        (5, "five.md#x"),
        (7, "seven_(8).md"),
        (7, "six.md"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`[a](b.md)`",
        "``` \n[a](b.md)\n```",
        "~~~~ python\n~~~\n[a](b.md)\n~~~~",
        "<!-- [a](b.md)\n\n[c](d.md) -->",
        "text\n\n    [a](b.md)",
        "\\[a\\](b.md)",
        "---\nlink: '[a](b.md)'\n---",
        "> ```\n> [a](b.md)\n> ```",
        "- ```\n  [a](b.md)\n  ```",
    ],
)
def test_what_is_no_prose_has_no_links(text: str) -> None:
    page = read_page(text, ".md")
    assert links(page) == []
    assert page.open_fence is None


def test_an_indented_paragraph_of_a_list_is_prose() -> None:
    assert links(read_page("1. item\n\n    [a](b.md)\n", ".md")) == [(3, "b.md")]


def test_a_fence_without_an_end_is_known_by_its_line() -> None:
    page = read_page("text\n```\ncode\n```\n\n````\n```\n", ".md")
    assert (page.fences, page.open_fence) == (1, 6)


def test_anchors_are_attributes_and_custom_ids() -> None:
    page = read_page('<a name="one"></a>\n<h2 id="two">x</h2>\n\n## Three {#drei}\n', ".md")
    assert [mark.text for mark in page.anchors] == ["one", "two", "drei"]
    assert anchors(page) == ["three"]
    assert page.has_anchor("DREI")
    assert page.has_anchor("top")
    assert not page.has_anchor("four")


def test_restructured_text_has_titles_labels_links_and_code() -> None:
    text = (
        "=====\nTitle\n=====\n\n.. _a label:\n\nSub Title\n---------\n\n"
        "See `here <other.rst>`_ and `there\n<far.md>`__.\n\n.. image:: picture.png\n\n"
        ".. code-block:: python\n\n   `no <link.rst>`_\n\nLiteral::\n\n   `no <link.rst>`_\n\n"
        ".. a comment\n   `no <link.rst>`_\n\n.. _target: page.rst\n\nLast\n~~~~\n"
    )
    page = read_page(text, ".rst")
    assert anchors(page) == ["title", "sub-title", "last"]
    assert [mark.text for mark in page.anchors] == ["a-label"]
    assert links(page) == [(10, "other.rst"), (11, "far.md"), (13, "picture.png"), (26, "page.rst")]
    assert page.fences == 1


def test_every_kind_of_line_end_counts_as_one() -> None:
    assert text_of(b"\xef\xbb\xbfa\r\nb\rc\n") == "a\nb\nc\n"


MARKDOWN = (
    "# Title", "## Same", "## Same", "Setext", "===", "---", "", "", "```", "````", "~~~", "```py", "    code",
    "[a](b.md)", "[a](#same)", "[a](#nowhere)", "![i](<x y.png>)", "`", "``", "`[c](d.md)`", "<!--", "-->",
    '<a name="n"></a>', "[r]: e.md", "> quote", "> ```", "\\[e\\](f.md)", "## A `b` _c_ {#d}", "text [x](y.md) `z",
    "1. ```", "- item", "<!-- c -->", "![a][b]", "<a href='g.md'>", "[t](https://host/x)", "[q](?a=1#top)",
    "\t[tab](h.md)",
)  # fmt: skip
RST = (
    "Title", "=====", "Same", "----", "", "", "~~~", ".. _label:", ".. _t: u.rst", ".. code::", "   x", "text::",
    "`a <b.rst>`_", "<c.md>`__", "``lit <d.rst>`_``", "..", ".. comment", ".. image:: e.png", " indented", "_`inline`",
    ".. note::", "   `f <g.rst>`_",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each kind, and nothing that they could link to."""
    made = tmp_path_factory.mktemp("pages")
    for suffix in (".md", ".rst"):
        (made / f"page{suffix}").touch()
    return made


@settings(max_examples=scale(200, 5_000), deadline=None)
@given(lines=st.lists(st.sampled_from(MARKDOWN), max_size=25))
def test_both_ways_of_reading_agree_on_markdown(folder: Path, lines: list[str]) -> None:
    assert_agreement("\n".join(lines), ".md", folder)


@settings(max_examples=scale(200, 5_000), deadline=None)
@given(lines=st.lists(st.sampled_from(RST), max_size=25))
def test_both_ways_of_reading_agree_on_restructured_text(folder: Path, lines: list[str]) -> None:
    assert_agreement("\n".join(lines), ".rst", folder)


@settings(max_examples=scale(200, 5_000), deadline=None)
@given(text=st.text(alphabet="ab \n#`~-=<>![]()_:.\\\"'{}|*&;/", max_size=120), suffix=st.sampled_from([".md", ".rst"]))
def test_both_ways_of_reading_agree_on_any_text(folder: Path, text: str, suffix: str) -> None:
    assert_agreement(text, suffix, folder)


def assert_agreement(text: str, suffix: str, folder: Path) -> None:
    path = folder / f"page{suffix}"
    page = read_page(text, suffix)
    report = PageReport("page", "", page, list(findings(page, path)))
    assert list(complaints(report, text, str(path))) == []
