"""Pieces of the page that several parts use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.plots import Scale, ruler
from discreet.release.report.marks import paragraph, prose, section, words

__all__ = ["bars", "listing", "paragraph", "prose", "section", "words"]


def bars(caption: str, rows: Iterable[tuple[str, str, str]], scale: Scale) -> str:
    """Write a table of a name, a strip and a number each, with a ruler below."""
    body = "".join(
        f'<tr><th class="key" scope="row">{words(name)}</th><td class="drawn">{picture}</td>'
        f'<td class="number">{prose(told)}</td></tr>'
        for name, picture, told in rows
    )
    last = f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td><td></td></tr>'
    return f'<table class="chart"><caption><b>{words(caption)}</b></caption><tbody>{body}{last}</tbody></table>'


def listing(heads: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> str:
    """Write a plain table; all columns but the first are numbers. Cells are HTML already."""
    first, *rest = heads
    head = f"<th>{words(first)}</th>" + "".join(f'<th class="number">{words(one)}</th>' for one in rest)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f'<td class="number">{cell}</td>' for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f'<table class="{f"plain {kind}".strip()}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
