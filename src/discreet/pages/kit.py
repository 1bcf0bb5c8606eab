"""HTML pages: the document, its style sheet, sections, cards, tables and figures; no text can become anything but text.

A page is one file for a phone, a desk, the dark and paper. Its content security policy forbids to load or run anything.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

from discreet.pages.svg import Scale, hundred, ruler, words

__all__ = [
    "BUNDLE_STYLE",
    "PAGE_STYLE",
    "Described",
    "DescribedTable",
    "bar_row",
    "bar_table",
    "bullets",
    "cards",
    "code",
    "content_policy",
    "document",
    "figure",
    "grid",
    "guess_figure",
    "opening",
    "paragraph",
    "pictures",
    "prose",
    "ruler_row",
    "section",
    "table",
    "words",
]

# --- style sheets ---
#
# `BUNDLE_STYLE` is part of the report of every bundle, whose bytes are verified: a change of it needs a new format of
# bundles. What only other pages need is in `PAGE_STYLE`.


BUNDLE_STYLE = """\
:root{color-scheme:light dark;--paper:#fdfcf9;--card:#f4f1ea;--ink:#1d2125;--quiet:#5a636c;--grid:#dedad0;--bar:#2b7bba;
--accent:#b4470f;--link:#1b5e93;--warn:#8a1c1c}
@media(prefers-color-scheme:dark){:root{--paper:#15181b;--card:#1f2429;--ink:#e9e6e0;--quiet:#a7afb7;--grid:#363d44;
--bar:#4c9bd6;--accent:#ff9b57;--link:#86c2f0;--warn:#ff9d9d}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
main,header,footer{max-width:47rem;margin:0 auto;padding:0 1rem}
header{padding-top:3rem}
h1,h2,h3{font-family:ui-serif,"Iowan Old Style",Georgia,"Times New Roman",serif;line-height:1.2;text-wrap:balance}
h1{font-size:2.3rem;margin:.2rem 0 .6rem}
h2{font-size:1.55rem;margin:3.2rem 0 .6rem;padding-top:1.2rem;border-top:1px solid var(--grid)}
h3{font-size:1.2rem;margin:2.2rem 0 .3rem}
h4{font-size:1rem;margin:1.4rem 0 .3rem}
p,ul,dl{margin:.6rem 0}
a{color:var(--link)}
code{font:0.88em ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--card);border-radius:.5rem;padding:.8rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere}
.kicker{margin:0;color:var(--accent);font-weight:600;font-size:.95rem}
.by,.note,figcaption,caption{color:var(--quiet);font-size:.92rem}
.dummy{border:2px solid var(--warn);color:var(--warn);border-radius:.5rem;padding:.7rem 1rem;font-weight:600}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.8rem;margin:1.6rem 0}
.card{background:var(--card);border-radius:.7rem;padding:.9rem 1rem}
.card b{display:block;font:600 1.5rem/1.25 ui-serif,Georgia,serif;margin:.1rem 0 .2rem}
.card span{color:var(--quiet);font-size:.92rem}
nav ul{columns:2 15rem;padding-left:1.1rem}
table{width:100%;border-collapse:collapse;margin:.4rem 0 .2rem;table-layout:fixed}
caption{text-align:left;padding-bottom:.3rem}
caption b{color:var(--ink);font-weight:600}
th,td{text-align:left;vertical-align:middle;padding:.12rem .6rem .12rem 0;font-weight:400}
thead th{color:var(--quiet);font-size:.88rem;border-bottom:1px solid var(--grid)}
tbody th.group{font-weight:600;padding-top:.6rem}
td.number,th.number{text-align:right;padding-right:0;padding-left:.5rem}
td.number{font-variant-numeric:tabular-nums;font-size:.95rem}
.key{width:24%}
.drawn{width:34%}
.tidy{width:15%}
.wide .key{width:38%}
.wide .drawn{width:42%}
td svg{display:block}
.pictures{display:flex;flex-wrap:wrap;gap:1rem 3rem;align-items:flex-start;margin:1rem 0}
figure{margin:0;max-width:20rem}
figcaption{margin-top:.5rem}
.picture{max-width:100%;height:auto;display:block}
.key-to i{font-style:normal;display:inline-block;margin-right:1rem}
.key-to svg{vertical-align:-.25em;margin-right:.35em}
footer{color:var(--quiet);font-size:.9rem;padding:2.5rem 1rem 3rem}
@media(max-width:34rem){
body{font-size:16px}
header{padding-top:1.8rem}
h1{font-size:1.8rem}
table.chart,table.chart tbody,table.chart caption{display:block}
table.chart thead{display:none}
table.chart tr{display:grid;grid-template-columns:1fr auto;align-items:baseline;margin:.35rem 0}
table.chart th.group{grid-column:1/-1}
table.chart td.drawn{grid-column:1/-1;grid-row:2;width:auto;padding:0}
table.chart th.key{width:auto;padding-right:.5rem}
table.chart td.tidy{grid-column:1/-1;grid-row:3;width:auto;padding:0;color:var(--quiet);font-size:.9rem}
table.chart td.tidy::before{content:"tidy: "}
table.chart tr.ruler{margin:0}
table.chart tr.ruler td.drawn{grid-row:1}
}
@media print{
:root{--paper:#fff;--card:#fff;--ink:#000;--quiet:#444;--grid:#ccc;--bar:#5b8fb9;--accent:#b4470f;--link:#000}
body{font-size:10.5pt}
header{padding-top:0}
h2,h3,h4{break-after:avoid}
tr,figure,.card{break-inside:avoid}
.card{border:1px solid #ccc}
nav{display:none}
}
"""
PAGE_STYLE = (
    BUNDLE_STYLE
    + """\
.chart .key{width:33%}
.chart .drawn{width:50%}
.chart td.number{white-space:nowrap}
figure.wide{max-width:100%}
.pictures.maps{gap:1rem 1.4rem}
.pictures.maps figure{max-width:100%;flex:1 1 19rem}
.axis{display:flex;justify-content:space-between;gap:.5rem;font-size:.82rem;color:var(--quiet);
font-variant-numeric:tabular-nums;border-top:1px solid var(--grid)}
.scroll{overflow-x:auto}
table.plain{table-layout:auto}
table.plain td,table.plain th{padding:.22rem .6rem .22rem 0;border-bottom:1px solid var(--grid)}
table.plain td.number{white-space:nowrap}
table.plain thead th{overflow-wrap:normal}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--link)}
@media(max-width:34rem){
table.plain{font-size:.88rem}
table.plain thead th{font-size:.78rem;padding-right:.3rem}
table.plain td.number{font-size:.86rem;padding-left:.2rem;padding-right:.3rem}
}
@media print{
details{display:none}
}
"""
)


# --- the document ---


MADE = "Made with Discreet. This page loads nothing and runs nothing; it works offline."


def document(
    title: str,
    head: str,
    main: Iterable[str],
    *,
    foot: Iterable[str] = (),
    style: str = BUNDLE_STYLE,
    images: bool = False,
) -> str:
    """Write a whole page: what stands above, its sections, and plain texts for its foot."""
    below = "".join(f"<p>{words(text)}</p>" for text in (*foot, MADE))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(style, images=images)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{words(title)}</title><style>{style}</style></head><body>{head}<main>{''.join(main)}</main>"
        f"<footer>{below}</footer></body></html>\n"
    )


def content_policy(style: str, *, images: bool = False) -> str:
    """Return the policy of a page: nothing is loaded, nothing runs, and the only style is this one."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    inside = " img-src data:;" if images else ""
    return f"default-src 'none';{inside} style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def opening(kicker: str, title: str, parts: Iterable[str]) -> str:
    """Write the head that is seen."""
    return f'<header><p class="kicker">{words(kicker)}</p><h1>{words(title)}</h1>{"".join(parts)}</header>'


def cards(told: Iterable[tuple[str, str, str]]) -> str:
    """Write the few things to know: of each its name, which may be empty, the value, and what it means."""
    listed = "".join(
        f'<div class="card">{f"<span>{words(name)}</span>" if name else ""}<b>{prose(value)}</b>'
        f"<span>{prose(more)}</span></div>"
        for name, value, more in told
    )
    return f'<div class="cards">{listed}</div>'


def section(name: str, title: str, parts: Iterable[str]) -> str:
    """Write a section with a heading that can be linked to."""
    return f'<section id="{name}"><h2>{words(title)}</h2>{"".join(parts)}</section>'


# --- texts ---


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


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


# --- tables ---


# A constant: no name and no value is part of it. Numbers are compared as numbers, all else as text, and up and down in
# turn; 1,008 ± 8 is the number 1008.
_SORT = (
    "(h=>{const b=h.closest('table').tBodies[0],i=h.cellIndex,d=h.dataset.d=-(h.dataset.d||-1),"
    "t=r=>r.cells[i].textContent,n=r=>parseFloat(t(r).replace(/,/g,''));"
    "[...b.rows].sort((x,y)=>d*(n(x)-n(y)||t(x).localeCompare(t(y)))).forEach(r=>b.append(r))})(this)"
)


def grid(
    rows: Iterable[Sequence[object]],
    heads: Sequence[str] = (),
    *,
    named: bool = False,
    right: Sequence[bool] = (),
    sorts: bool = False,
) -> str:
    """Write texts as a bare table, for notebooks; with `named` the first of each row is its name.

    `right` says of each column whether head and cells stand on the right, as numbers do: notebooks put all of it there.
    With `sorts` a click on a head sorts the rows, where a notebook runs what it shows; elsewhere the table is as plain
    as without.
    """
    click = f' title="sort" onclick="{_SORT}"' if sorts else ""
    top = "".join(
        f'<th style="{_side(right, place)}{";cursor:pointer" if sorts else ""}"{click}>{words(one)}</th>'
        for place, one in enumerate(heads)
    )
    body = "".join(f"<tr>{''.join(_cells(row, right, named))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object], right: Sequence[bool], named: bool) -> Iterable[str]:
    for place, cell in enumerate(row):
        tag = "th" if named and place == 0 else "td"
        yield f'<{tag} style="{_side(right, place)}">{words(cell)}</{tag}>'


def _side(right: Sequence[bool], place: int) -> str:
    return f"text-align:{'right' if right and right[place] else 'left'}"


@final
@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A title, heads and rows of texts; without heads, the first of each row is its name."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def html(self) -> str:
        """Write it for a notebook."""
        title = paragraph(self.title) if self.title else ""
        return title + grid(self.rows, self.heads, named=not self.heads)


@final
class Described(str):
    """A text of several lines that shows itself as it is printed, and in a notebook as the `tables` it is made of."""

    __slots__ = ("tables",)
    tables: tuple[DescribedTable, ...]
    __repr__ = str.__str__

    def __new__(cls, text: str, tables: Iterable[DescribedTable] = ()) -> Self:
        """Keep a text and the same as tables."""
        made = super().__new__(cls, text)
        made.tables = tuple(tables)
        return made

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "", kind: str | Sequence[str] = "number"
) -> str:
    """Write a plain table, whose cells are HTML already; columns after the first are of a kind, or of one each."""
    first, *rest = heads
    kinds = [_kind(one) for one in ([kind] * len(rest) if isinstance(kind, str) else kind)]
    told = f"<caption>{caption}</caption>" if caption else ""
    head = f"<th>{words(first)}</th>" + "".join(f"<th{k}>{words(one)}</th>" for k, one in zip(kinds, rest, strict=True))
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f"<td{k}>{cell}</td>" for k, cell in zip(kinds, row[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<table class="plain">{told}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def bar_table(caption: str, rows: Iterable[tuple[str, str, str]], scale: Scale, *, kind: str = "chart") -> str:
    """Write a bar chart: a name, a strip and a number a row, with a ruler below."""
    body = "".join(bar_row(words(name), picture, prose(told)) for name, picture, told in rows)
    return (
        f'<table class="{kind}"><caption><b>{words(caption)}</b></caption><tbody>{body}{ruler_row(scale)}</tbody>'
        "</table>"
    )


def bar_row(name: str, picture: str, number: str, last: str = "") -> str:
    """Write one row of a bar chart; everything is HTML already."""
    return (
        f'<tr><th class="key" scope="row">{name}</th><td class="drawn">{picture}</td>'
        f'<td class="number">{number}</td>{last}</tr>'
    )


def ruler_row(scale: Scale) -> str:
    """Write the last row of a bar chart: the numbers of its scale."""
    return f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td></tr>'


# --- figures ---


def pictures(figures: Iterable[str], *, kind: str = "pictures") -> str:
    """Put figures beside each other, as far as there is room."""
    return f'<div class="{kind}">{"".join(figures)}</div>'


def figure(drawn: str, caption: str = "") -> str:
    """Write a drawing with what it shows; without a caption, as wide as there is room."""
    if not caption:
        return f'<figure class="wide">{drawn}</figure>'
    return f"<figure>{drawn}<figcaption>{words(caption)}</figcaption></figure>"


def guess_figure(guess: float, secret: str, having: str) -> str:
    """Draw how many of a hundred guesses of a secret are right at most, `having` some tables."""
    after = min(100, math.ceil(Fraction(guess) * 100))
    told = (
        f"A hundred guesses {secret}. Grey: right by tossing a coin. Orange: at most "
        f"{after - 50} more with {having}. Empty: wrong."
    )
    return figure(hundred(after, name="guesses"), told)
