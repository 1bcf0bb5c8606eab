"""Markdown, in which no title, key or note can become anything but text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["code", "line", "paragraphs", "table_of"]

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")


def line(text: str) -> str:
    """Write a text on one line, with every mark of Markdown and of HTML escaped."""
    return _MARKS.sub(r"\\\1", " ".join("".join(c if c.isprintable() else " " for c in text).split()))


def paragraphs(parts: Iterable[str]) -> str:
    """Join paragraphs; the text ends with a newline."""
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: str) -> str:
    """Write a name in the type of code; one with odd letters as plain text."""
    return f"`{text}`" if re.fullmatch(r"[\w ./:=+-]+", text) else line(text)


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; its cells are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
