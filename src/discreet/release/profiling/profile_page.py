"""A profile as one HTML file: an index of small charts, then a card for every column. No script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.exact import exact
from discreet.formatting import significant_up
from discreet.pages.kit import PAGE_STYLE, bar_row, bullets, cards, document, opening, paragraph, ruler_row, table
from discreet.pages.svg import Scale, box, span_of, stretched, strip, words
from discreet.release.profiling.cells import written
from discreet.release.profiling.estimates import ASKED
from discreet.release.profiling.profile_results import (
    beyond_text,
    counted_text,
    estimate_text,
    share_text,
    spent_text,
    whose_text,
)

if TYPE_CHECKING:
    from discreet.release.profiling.cells import Bound
    from discreet.release.profiling.profile_results import CellCount, ColumnProfile, Profile, ProfileCost

__all__ = ["axis", "histogram", "miniature", "page"]

_TOP = 12  # values with a bar; the others are in a table that opens


def page(profile: Profile) -> str:
    """Write the page."""
    columns = list(enumerate(profile.columns, 1))
    whose = whose_text(profile.unit)
    index = "".join(_entry(place, one, whose) for place, one in columns)
    main = (
        f'<h2 id="all">All columns</h2><ul class="index">{index}</ul>',
        *(_card(place, one, whose) for place, one in columns),
        f"<h2>How to read this</h2>{bullets((*profile.notes, *profile.rule))}",
    )
    charged = f"Data set {profile.dataset}; charged in its ledger under {', '.join(profile.spent.charges)}."
    return document(f"Profile of {profile.table}", _opening(profile), main, foot=[charged], style=_STYLE)


def _opening(profile: Profile) -> str:
    spent = profile.spent
    facts = (
        ("", estimate_text(profile.units), profile.unit.nouns),
        ("", f"{len(profile.columns)}", "columns"),
        ("", spent_text(spent.allowed, spent.epsilon, spent.delta, tight=False), _tight(spent)),
    )
    told = (
        "Every number on this page has random noise in it, on purpose: it hides whether any one "
        f"{profile.unit.noun} is in the data at all. The ± says how far off a number may be, nineteen times out of "
        "twenty. The smaller ε is, the better the protection."
    )
    several = [] if profile.unit.is_row else [_several(profile)]
    return opening("A private profile", f"Profile of {profile.table}", [paragraph(told), *several, cards(facts)])


def _several(profile: Profile) -> str:
    """Say, before any number, that these are not counts of all rows."""
    return f'<p class="reason"><b>Not counts of all rows.</b> {words(counted_text(profile.unit))}</p>'


def _tight(spent: ProfileCost) -> str:
    return f"privacy spent; by tight accounting ε = {significant_up(exact(spent.epsilon, name='epsilon'), 3)}"


def _entry(place: int, column: ColumnProfile, whose: str) -> str:
    return (
        f'<li><a href="#c{place}"><b>{words(column.name)}</b>{miniature(column)}'
        f'<span class="note">{words(_gist(column, whose))}</span></a></li>'
    )


def _gist(column: ColumnProfile, whose: str) -> str:
    """Say the most important of a column in a few words, and only what is surely so."""
    if column.quantiles:
        middle = column.quantiles[len(column.quantiles) // 2]
        if middle.value is None:
            return ""
        half = f"half{' or more' if middle.beyond else ''} {'at' if middle.beyond == 'above' else 'below'}"
        told = f"{half} {written(middle.value)}{' or above' if middle.beyond == 'above' else ''}"
        return f"as counted: {told}" if whose else told
    if column.top:
        first = column.leader
        if first is not None and len(first.label) <= 20:
            return f"most often {first.label}"
        return f"{len(column.top)} value{'s' * (len(column.top) > 1)}"
    return "values not named"


def _card(place: int, column: ColumnProfile, whose: str) -> str:
    missing = f"{estimate_text(column.missing)} ({share_text(column.missing, column.present)})"
    reasons = "".join(paragraph(reason, kind="reason") for reason in column.reasons)
    return (
        f'<section id="c{place}"><div class="title"><h3>{words(column.name)}</h3><span class="note">'
        f'{words(column.kind.value)} · {words(column.basis)} · <a href="#all">all columns</a></span></div>'
        f'<p class="note">values {estimate_text(column.present)} · missing {missing}</p>'
        f"{_drawn(column)}{_quantiles(column, whose)}{reasons}{_all_cells(column)}</section>"
    )


def _drawn(column: ColumnProfile) -> str:
    if column.ordered:
        return f'<div class="histogram">{histogram(column)}{axis(column)}</div>{_box(column)}'
    if not column.top:
        return ""
    rest = [cell for cell in column.cells if cell.rest]
    scale = Scale(0.0, float(_most(column.top)))
    rows = "".join(_value_row(cell, scale) for cell in [*column.top[:_TOP], *rest])
    return f'<table class="chart"><tbody>{rows}</tbody></table>'


def _box(column: ColumnProfile) -> str:
    """Draw the quantiles as a box plot, where all of them are known: those beyond the outermost cuts are not."""
    values = [one.value for one in column.quantiles if not one.beyond]
    numbers = [float(value) for value in values if isinstance(value, Fraction)]
    if len(numbers) != len(ASKED) or numbers != sorted(numbers):
        return ""
    told = ("box plot", box(span_of(numbers), numbers, grid=False), "5 to 95 %; the box holds 25 to 75 %")
    return f'<table class="chart"><tbody>{bar_row(*told)}{ruler_row(span_of(numbers))}</tbody></table>'


def _value_row(cell: CellCount, scale: Scale) -> str:
    """Write a value with its bar; all others together have none, for theirs would dwarf the rest."""
    name, count = words(cell.label), cell.count
    if cell.rest:
        return bar_row(f"<i>{name}</i>", "", estimate_text(count))
    drawn = strip(scale, count.tidy, low=count.low, high=min(count.high, scale.high), grid=False)
    return bar_row(name, drawn, estimate_text(count))


def _quantiles(column: ColumnProfile, whose: str) -> str:
    if not column.quantiles:
        return ""
    heads = (f"this part{whose} lies below", *(f"{int(100 * one.share)} %" for one in column.quantiles))
    rows = (
        ("about", *(words(beyond_text(one)) or _end(one.value, "?") for one in column.quantiles)),
        ("at least", *(_end(one.low, "less") for one in column.quantiles)),
        ("at most", *(_end(one.high, "more") for one in column.quantiles)),
    )
    return f'<div class="scroll">{table(heads, rows)}</div>'


def _end(end: Bound | None, otherwise: str) -> str:
    return f"<i>{otherwise}</i>" if end is None else words(written(end))


def _all_cells(column: ColumnProfile) -> str:
    """List all numbers, for those who want them."""
    if len(column.cells) < 2:
        return ""
    listed = table(("value", "counted"), [(words(cell.label), estimate_text(cell.count)) for cell in column.cells])
    return f"<details><summary>all {len(column.cells)} counts</summary>{listed}</details>"


# --- page_charts ---
# The charts of a profile as inline SVG: bars, and whiskers that show between what the exact counts lie.


_HIGH = 100
_WIDE = 10  # of a bar and the gap beside it
_MINI = 12  # bars of a miniature of values


def histogram(column: ColumnProfile) -> str:
    """Draw a bar for each range, paler where it is open, with its whisker; hovering tells the numbers."""
    most = _most(column.cells)
    bars = "".join(_bar(place, cell, most, whisker=True) for place, cell in enumerate(column.cells))
    return _svg(len(column.cells), bars, f"Histogram of {column.name}: {len(column.cells)} ranges")


def miniature(column: ColumnProfile) -> str:
    """Draw the same small and without whiskers; for values, the most frequent ones."""
    cells: Sequence[CellCount] = column.cells if column.ordered else column.top[:_MINI]
    if not cells:
        return _svg(1, "")
    most = _most(cells)
    bars = "".join(_bar(place, cell, most, whisker=False) for place, cell in enumerate(cells))
    return _svg(max(_MINI, len(cells)), bars)


def axis(column: ColumnProfile) -> str:
    """Write where the first range ends, where the middle is, and where the last range begins."""
    cuts = [cell.low for cell in column.cells[1:] if cell.low is not None]
    if not cuts:
        return ""
    first, last = column.cells[0], column.cells[-1]
    left = f"← {written(cuts[0])}" if first.low is None else written(first.low)
    right = f"{written(cuts[-1])} →" if last.high is None else written(last.high)
    middle = written(cuts[len(cuts) // 2]) if len(cuts) > 2 else ""
    told = "".join(f"<span>{words(text)}</span>" for text in (left, middle, right) if text)
    return f'<div class="axis" aria-hidden="true">{told}</div>'


def _most(cells: Sequence[CellCount]) -> int:
    return max([1, *(cell.count.high for cell in cells)])


def _bar(place: int, cell: CellCount, most: int, *, whisker: bool) -> str:
    tall = _HIGH * cell.count.tidy / most
    x, open_ = place * _WIDE, cell.rest or cell.low is None or cell.high is None
    shape = "open" if open_ and (cell.value is None or cell.rest) else "bar"
    bar = f'<rect class="{shape}" x="{x + 1}" y="{_HIGH - tall:.1f}" width="{_WIDE - 2}" height="{tall:.1f}"/>'
    if not whisker:
        return bar
    low, high = (_HIGH - _HIGH * count / most for count in (cell.count.low, cell.count.high))
    line = f'<line class="whisker" x1="{x + 5}" x2="{x + 5}" y1="{low:.1f}" y2="{high:.1f}"/>'
    return f"<g><title>{words(cell.label)}: {estimate_text(cell.count)}</title>{bar}{line}</g>"


def _svg(many: int, inside: str, label: str = "") -> str:
    return stretched(f"0 0 {many * _WIDE} {_HIGH}", [inside], label=label)


# --- style: The index and a card for each column; the rest is as on every page. ---


_STYLE = (
    PAGE_STYLE
    + """\
:root{--open:#a9c9e2;--sheet:#fff}
@media(prefers-color-scheme:dark){:root{--open:#2f5d80;--sheet:#191d21}}
.index{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.6rem,1fr));gap:.6rem;padding:0;list-style:none}
.index a{display:block;height:100%;background:var(--sheet);border:1px solid var(--grid);border-radius:.5rem;
padding:.45rem .6rem;text-decoration:none;color:inherit}
.index a:hover,.index a:focus{border-color:var(--bar)}
.index b,.index span{display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.index svg{display:block;width:100%;height:2.2rem;margin:.3rem 0 .2rem}
section{background:var(--sheet);border:1px solid var(--grid);border-radius:.7rem;padding:.9rem 1.1rem;margin:.9rem 0}
.title{display:flex;flex-wrap:wrap;align-items:baseline;gap:.2rem .8rem;justify-content:space-between}
.title h3{margin:0}
.histogram svg{display:block;width:100%;height:9rem;margin-top:.6rem}
.bar{fill:var(--bar)}
.open{fill:var(--open)}
.whisker{stroke:var(--ink);stroke-width:1.5;vector-effect:non-scaling-stroke}
.reason{background:var(--card);border-radius:.5rem;padding:.45rem .8rem;font-size:.93rem}
@media(max-width:34rem){
section{padding:.75rem}
.index{grid-template-columns:repeat(2,1fr)}
.histogram svg{height:7rem}
}
@media print{
:root{--sheet:#fff}
section{break-inside:avoid}
}
"""
)
