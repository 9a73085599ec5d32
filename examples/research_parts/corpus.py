"""The documents that may be quoted: Markdown and text files of a folder, found by their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

DOCUMENTS = Path(__file__).parent / "documents"
SUFFIXES = (".md", ".txt", ".rst")
MAX_FOUND = 5
MIN_QUOTE_WORDS = 4


def one_line(text: str) -> str:
    """With one blank in place of any white space."""
    return " ".join(text.split())


class Quote(BaseModel, frozen=True):
    """Words of a document, on one line."""

    document: str = Field(description="name of the document")
    text: Annotated[str, AfterValidator(one_line)] = Field(
        description="a sentence or part of one, word for word as in the document"
    )


@lru_cache(maxsize=8)
def load(folder: str) -> Mapping[str, str]:
    """Text by name, as it was when this process first looked."""
    files = sorted(file for file in Path(folder).rglob("*") if file.suffix in SUFFIXES and file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_text(errors="replace") for file in files}


def beginnings(folder: str) -> dict[str, str]:
    """What each document begins with."""
    return {name: one_line(text[:300]) for name, text in load(folder).items()}


def search(folder: str, words: str) -> list[Quote]:
    """The sentences that have most of the words in them, the best first."""
    wanted = words_of(words)
    rated = [
        (len(wanted & words_of(sentence)), name, sentence)
        for name, text in load(folder).items()
        for sentence in sentences(text)
    ]
    best = sorted((item for item in rated if item[0]), key=lambda item: (-item[0], item[1], len(item[2])))
    return [Quote(document=name, text=sentence) for _, name, sentence in best[:MAX_FOUND]]


def misquoted(folder: str, quotes: Iterable[Quote]) -> list[str]:
    """What is wrong with quotes: each has to stand in its document, word for word (a line may end anywhere), and be
    long enough to say something."""
    documents, wrong = load(folder), []
    for quote in quotes:
        if quote.document not in documents:
            wrong.append(f"there is no document {quote.document!r}")
        elif quote.text not in one_line(documents[quote.document]):
            wrong.append(f"{quote.document} does not say {quote.text!r}: quote it word for word")
        elif len(quote.text.split()) < MIN_QUOTE_WORDS:
            wrong.append(f"{quote.text!r} is too short to support anything")
    return wrong


def sentences(text: str) -> list[str]:
    """The sentences of a text, without headings."""
    paragraphs = [one_line(part) for part in re.split(r"\n\s*\n", text) if not part.lstrip().startswith("#")]
    found = [sentence for paragraph in paragraphs for sentence in re.split(r"(?<=[.!?]) +", paragraph)]
    return [sentence for sentence in found if len(sentence.split()) >= MIN_QUOTE_WORDS]


def words_of(text: str) -> frozenset[str]:
    """The words of a text that may carry meaning: long ones, cut to their stem, roughly."""
    return frozenset(word[:5] for word in re.findall(r"[^\W\d_]{4,}", text.lower()) if word not in EMPTY)


EMPTY = frozenset(("does", "from", "have", "into", "that", "their", "them", "they", "this", "what", "when", "with"))
