"""Totals so far: a picture of each series, its last days in numbers, and what all its days cost."""

from __future__ import annotations

from discreet.plots import course
from discreet.query.results.text import shown
from discreet.release.bundle.naming import table_file
from discreet.release.bundle.telling import series_words
from discreet.release.published import Published, RunningRelease
from discreet.release.report.marks import paragraph, section, words

__all__ = ["series_part"]

_LAST = 5  # Days in numbers.


def series_part(published: Published) -> str:
    """Write the section of all series; nothing if there are none."""
    if not published.running:
        return ""
    told = paragraph(
        "A running total is published day after day. All its days were paid for once, before the first, and share "
        "their noise, so that the line can be followed without paying for each point of it."
    )
    each = (_series(published, running, number) for number, running in enumerate(published.running, 1))
    return section("running", "Totals so far", [told, *each])


def _series(published: Published, running: RunningRelease, number: int) -> str:
    table = running.table
    days, total = table.column("day"), table.column("total")
    cells = [total[row] for row in range(len(table))]
    drawn = course(
        [shown(days, row) for row in range(len(table))],
        [float(cell.value) for cell in cells],
        [float(cell.low or 0) for cell in cells],
        [float(cell.high or 0) for cell in cells],
        name=f"series-{number}",
    )
    rows = "".join(
        f'<tr><th class="key" scope="row">{words(shown(days, row))}</th>'
        f'<td class="number">{words(shown(total, row))}</td></tr>'
        for row in range(max(0, len(table) - _LAST), len(table))
    )
    path = table_file(running.plan.name, published.plan.output.formats[0], tidy=False, dummy=published.ledger is None)
    where = f'<p class="note">All {len(table):,} days are in <a href="{words(path)}">{words(path)}</a>.</p>'
    return (
        f"<article><h3>{words(running.plan.title or running.plan.name)}</h3>{paragraph(series_words(running))}{drawn}"
        f"<table><caption><b>The last days</b></caption><tbody>{rows}</tbody></table>{where}</article>"
    )
