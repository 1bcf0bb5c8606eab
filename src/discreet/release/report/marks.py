"""HTML in which no title, key or note can become anything but text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["bullets", "code", "paragraph", "prose", "section", "words"]


def words(text: object) -> str:
    """Write a text; letters that steer a screen are shown as such."""
    return escape("".join(letter if letter.isprintable() else "�" for letter in str(text)), quote=True)


def prose(text: str) -> str:
    """Write a sentence; no line ends within a formula or before a per cent sign."""
    return words(text).replace(" = ", "&nbsp;=&nbsp;").replace(" %", "&nbsp;%")


def paragraph(text: str, *, kind: str = "") -> str:
    """Write a paragraph of plain text."""
    return f"<p{_kind(kind)}>{prose(text)}</p>"


def code(text: str) -> str:
    """Write a name or a command."""
    return f"<code>{words(text)}</code>"


def bullets(texts: Iterable[str]) -> str:
    """Write a list of plain texts."""
    return f"<ul>{''.join(f'<li>{prose(text)}</li>' for text in texts)}</ul>"


def section(name: str, title: str, parts: Iterable[str]) -> str:
    """Write a section with a heading that can be linked to."""
    return f'<section id="{name}"><h2>{words(title)}</h2>{"".join(parts)}</section>'


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
