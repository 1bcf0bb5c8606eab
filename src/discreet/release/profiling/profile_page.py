"""A profile as one HTML file: an index of small charts, then a card for every column. No script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.exact import exact
from discreet.formatting import significant_up
from discreet.release.profiling.cells import written
from discreet.release.profiling.profile_results import estimate_text, share_text, spent_text
from discreet.release.report.page_style import PALETTE, policy_for, words

if TYPE_CHECKING:
    from discreet.release.profiling.cells import Bound
    from discreet.release.profiling.profile_results import CellCount, ColumnProfile, Profile, ProfileCost

__all__ = ["STYLE", "axis", "histogram", "miniature", "page", "value_bar"]

_TOP = 12  # values with a bar; the others are in a table that opens


def page(profile: Profile) -> str:
    """Write the page."""
    title = words(f"Profile of {profile.table}")
    columns = list(enumerate(profile.columns, 1))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy_for(STYLE)}">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header id=top>\n<p class=kicker>A private profile</p>\n<h1>{title}</h1>\n{_opening(profile)}</header>\n"
        "<main>\n"
        f"<h2>All columns</h2>\n<ul class=index>{''.join(_entry(place, one) for place, one in columns)}</ul>\n"
        f"{''.join(_card(place, one) for place, one in columns)}</main>\n<footer>{_closing(profile)}</footer>\n"
        "</body>\n</html>\n"
    )


def _opening(profile: Profile) -> str:
    whom = "rows" if profile.unit.is_row else f"different values of {profile.unit.column}"
    protected = "row" if profile.unit.is_row else profile.unit.column
    spent = profile.spent
    facts = (
        (estimate_text(profile.units), whom),
        (f"{len(profile.columns)}", "columns"),
        (spent_text(spent.allowed, spent.epsilon, spent.delta, tight=False), _tight(spent)),
    )
    told = "".join(f"<li><b>{words(number)}</b><span>{words(what)}</span></li>" for number, what in facts)
    return (
        "<p>Every number on this page has random noise in it, on purpose: it hides whether any one "
        f"{words(protected)} is in the data at all. The ± says how far off a number may be, nineteen times out of "
        f"twenty. The smaller ε is, the better the protection.</p>\n<ul class=cards>{told}</ul>\n"
    )


def _tight(spent: ProfileCost) -> str:
    return f"privacy spent; by tight accounting ε = {significant_up(exact(spent.epsilon, name='epsilon'), 3)}"


def _entry(place: int, column: ColumnProfile) -> str:
    return (
        f'<li><a href="#c{place}"><b>{words(column.name)}</b>{miniature(column)}'
        f"<span class=quiet>{words(_gist(column))}</span></a></li>"
    )


def _gist(column: ColumnProfile) -> str:
    """Say the most important of a column in a few words."""
    if column.quantiles:
        middle = column.quantiles[len(column.quantiles) // 2].value
        return "" if middle is None else f"half below {written(middle)}"
    if column.top:
        return f"mostly {column.top[0].label}" if len(column.top[0].label) <= 20 else f"{len(column.top)} values"
    return "values not named"


def _card(place: int, column: ColumnProfile) -> str:
    missing = f"{estimate_text(column.missing)} ({share_text(column.missing, column.present)})"
    reasons = "".join(f"<p class=reason>{words(reason)}</p>" for reason in column.reasons)
    return (
        f'<section id="c{place}"><header><h3>{words(column.name)}</h3>'
        f"<span class=quiet>{words(column.kind.value)} · {words(column.basis)} · "
        "<a href='#top'>top</a></span></header>"
        f"<p class=quiet>values {estimate_text(column.present)} · missing {missing}</p>"
        f"{_drawn(column)}{_quantiles(column)}{reasons}{_all_cells(column)}</section>\n"
    )


def _drawn(column: ColumnProfile) -> str:
    if column.ordered:
        return f"<div class=histogram>{histogram(column)}{axis(column)}</div>"
    if not column.top:
        return ""
    rest = [cell for cell in column.cells if cell.rest]
    most = max([1, *(cell.count.high for cell in column.top)])
    rows = "".join(_value_row(cell, most) for cell in [*column.top[:_TOP], *rest])
    return f"<table class=values><tbody>{rows}</tbody></table>"


def _value_row(cell: CellCount, most: int) -> str:
    """Write a value with its bar; all others together have none, for theirs would dwarf the rest."""
    name, bar = words(cell.label), value_bar(cell, most)
    name, bar = (f"<i>{name}</i>", "") if cell.rest else (name, bar)
    return f"<tr><td>{name}</td><td class=drawn>{bar}</td><td>{estimate_text(cell.count)}</td></tr>"


def _quantiles(column: ColumnProfile) -> str:
    if not column.quantiles:
        return ""
    head = "".join(f"<th>{int(100 * one.share)} %</th>" for one in column.quantiles)
    about = "".join(f"<td>{_end(one.value, '?')}</td>" for one in column.quantiles)
    low = "".join(f"<td>{_end(one.low, 'less')}</td>" for one in column.quantiles)
    high = "".join(f"<td>{_end(one.high, 'more')}</td>" for one in column.quantiles)
    return (
        f"<div class=scroll><table><thead><tr><th>this part lies below</th>{head}</tr></thead><tbody>"
        f"<tr><td>about</td>{about}</tr><tr><td>at least</td>{low}</tr><tr><td>at most</td>{high}</tr>"
        "</tbody></table></div>"
    )


def _end(end: Bound | None, otherwise: str) -> str:
    return f"<i>{otherwise}</i>" if end is None else words(written(end))


def _all_cells(column: ColumnProfile) -> str:
    """List all numbers, for those who want them."""
    if len(column.cells) < 2:
        return ""
    rows = "".join(
        f"<tr><td>{words(cell.label)}</td><td>{estimate_text(cell.count)}</td></tr>" for cell in column.cells
    )
    return f"<details><summary>all {len(column.cells)} counts</summary><table><tbody>{rows}</tbody></table></details>"


def _closing(profile: Profile) -> str:
    notes = "".join(f"<li>{words(note)}</li>" for note in (*profile.notes, *profile.rule))
    charges = ", ".join(profile.spent.charges)
    return (
        f"<h2>How to read this</h2><ul class=quiet>{notes}</ul>"
        f"<p class=quiet>Data set {words(profile.dataset)}; charged in its ledger under {words(charges)}.</p>"
    )


# --- page_charts ---
# The charts of a profile as inline SVG: bars, and whiskers that show between what the exact counts lie.


_HIGH = 100
_WIDE = 10  # of a bar and the gap beside it
_MINI = 12  # bars of a miniature of values


def histogram(column: ColumnProfile) -> str:
    """Draw a bar for each range, paler where it is open, with its whisker; hovering tells the numbers."""
    most = _most(column.cells)
    bars = "".join(_bar(place, cell, most, whisker=True) for place, cell in enumerate(column.cells))
    label = words(f"Histogram of {column.name}: {len(column.cells)} ranges")
    return _svg(len(column.cells) * _WIDE, bars, label)


def miniature(column: ColumnProfile) -> str:
    """Draw the same small and without whiskers; for values, the most frequent ones."""
    cells: Sequence[CellCount] = column.cells if column.ordered else column.top[:_MINI]
    if not cells:
        return _svg(_WIDE, "", "")
    most = _most(cells)
    bars = "".join(_bar(place, cell, most, whisker=False) for place, cell in enumerate(cells))
    return _svg(max(_MINI, len(cells)) * _WIDE, bars, "")


def value_bar(cell: CellCount, most: int) -> str:
    """Draw one bar from left to right with its whisker."""
    long, low, high = (100 * count / most for count in (cell.count.tidy, cell.count.low, min(cell.count.high, most)))
    return (
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" width="{long:.2f}" height="10"/>'
        f'<line class="whisker" x1="{low:.2f}" x2="{high:.2f}" y1="5" y2="5"/></svg>'
    )


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


def _svg(wide: int, inside: str, label: str) -> str:
    told = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    return f'<svg viewBox="0 0 {wide} {_HIGH}" preserveAspectRatio="none" {told}>{inside}</svg>'


# --- page_style ---
# How the page of a profile looks: light and dark, wide and narrow, on paper. Its colours are those of the report.


STYLE = (
    PALETTE
    + """\
:root{--open:#a9c9e2;--sheet:#fff}
@media(prefers-color-scheme:dark){:root{--open:#2f5d80;--sheet:#191d21}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:70rem;padding:2.2rem 1rem 3rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3{font-family:ui-serif,"Iowan Old Style",Georgia,"Times New Roman",serif;line-height:1.2;text-wrap:balance}
h1{font-size:2.1rem;margin:.2rem 0 .6rem}
h2{font-size:1.4rem;margin:2.4rem 0 .8rem}
h3{font-size:1.2rem;margin:0}
p{margin:.5rem 0;max-width:47rem}
a{color:var(--link)}
.kicker{margin:0;color:var(--accent);font-weight:600;font-size:.95rem}
.quiet{color:var(--quiet);font-size:.9rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:.8rem;margin:1.4rem 0;padding:0;
list-style:none}
.cards li{background:var(--card);border-radius:.7rem;padding:.9rem 1rem}
.cards b{display:block;font:600 1.4rem/1.25 ui-serif,Georgia,serif}
.cards span{color:var(--quiet);font-size:.92rem}
.index{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.6rem,1fr));gap:.6rem;padding:0;list-style:none}
.index a{display:block;height:100%;background:var(--sheet);border:1px solid var(--grid);border-radius:.5rem;
padding:.45rem .6rem;text-decoration:none;color:inherit}
.index a:hover,.index a:focus{border-color:var(--bar)}
.index b{display:block;font-size:.92rem;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.index svg{display:block;width:100%;height:2.2rem;margin:.3rem 0 .2rem}
.index span{display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
section{background:var(--sheet);border:1px solid var(--grid);border-radius:.7rem;padding:.9rem 1.1rem;margin:.9rem 0}
section header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.2rem .8rem;justify-content:space-between}
.histogram svg{display:block;width:100%;height:9rem;margin-top:.6rem}
.axis{display:flex;justify-content:space-between;gap:.5rem;font-size:.85rem;color:var(--quiet);
font-variant-numeric:tabular-nums;border-top:1px solid var(--grid);padding-top:.2rem}
.bar{fill:var(--bar)}
.open{fill:var(--open)}
.whisker{stroke:var(--accent);stroke-width:1.6;vector-effect:non-scaling-stroke}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums;margin:.6rem 0 0}
th,td{text-align:right;padding:.16rem .7rem .16rem 0;border-bottom:1px solid var(--grid);vertical-align:baseline;
overflow-wrap:normal}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
th{font-weight:400;color:var(--quiet)}
.values{width:100%}
.values td:first-child{width:30%}
.values svg{display:block;width:100%;height:.9rem}
.values td.drawn{width:52%;padding-top:.35rem}
.values td:last-child{white-space:nowrap;padding-right:0}
.reason{background:var(--card);border-radius:.5rem;padding:.45rem .8rem;font-size:.93rem}
details{margin-top:.6rem;font-size:.92rem}
summary{cursor:pointer;color:var(--link)}
footer{margin-top:2.5rem}
@media(max-width:34rem){
body{padding:1.4rem .7rem 2.5rem}
h1{font-size:1.7rem}
section{padding:.75rem}
.index{grid-template-columns:repeat(2,1fr)}
.values td:first-child{width:38%}
.values td.drawn{width:26%}
.histogram svg{height:7rem}
th,td{padding-right:.45rem;font-size:.86rem}
}
@media print{
:root{--paper:#fff;--card:#fff;--sheet:#fff;--ink:#000;--quiet:#444;--grid:#ccc;--link:#000}
section{break-inside:avoid}
details{display:none}
}
"""
)
