"""A profile as one HTML file: an index of small charts, then a card for every column. No script, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exact import exact
from discreet.mechanisms.text import significant_up
from discreet.release.profiling.page_charts import axis, histogram, miniature, value_bar
from discreet.release.profiling.page_style import STYLE
from discreet.release.profiling.partition import written
from discreet.release.profiling.text import estimate_text, share_text, spent_text
from discreet.release.report.marks import words
from discreet.release.report.style import policy_for

if TYPE_CHECKING:
    from discreet.release.profiling.partition import Bound
    from discreet.release.profiling.results import CellCount, ColumnProfile, Profile, ProfileCost

__all__ = ["page"]

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
