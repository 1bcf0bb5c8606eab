"""A few private statistics of a bundled table, each with its error and its cost: `python -m discreet.demo`."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from importlib.resources import as_file, files

from discreet import query, statistics
from discreet.ledger import Budget
from discreet.mechanisms.release import Release
from discreet.mechanisms.text import significant_up
from discreet.privacy import epsilon
from discreet.privacy.events import Composed
from discreet.privacy.relation import Relation
from discreet.query import ReleaseTable, Session

__all__ = ["answers", "ask", "main"]

CLINICS = ("Harbour", "Hillside", "Market", "Old Mill", "Station")
_BOTH = Relation.ADD_REMOVE
_DELTA = Fraction(1, 10**6)
_SQL = "SELECT clinic, COUNT(*) AS patients, AVG(age) AS age FROM visits GROUP BY clinic"


def main() -> None:
    """Print the answers, what each cost, and what all of them cost together."""
    print("Visits to five clinics, one row a patient. The table is made up; treat it as if it were not.")
    print("Whether any one patient is in it changes the chance of each answer by a factor of e^ε at most.\n")
    table = ask(_SQL)
    print(f"{_SQL}\n\n{table}\n")
    spent = [table.event]
    for question, release in answers(_table()):
        spent.append(release.event)
        print(f"{question:<42}{release}" if release.labels is None else _by_label(question, release))
    total = epsilon(Composed(spent), _DELTA, relation=_BOTH)
    print(f"\nAll answers together: ε = {significant_up(Fraction(total))} at δ = {significant_up(_DELTA)}.")
    print("± holds with 95 % confidence, for the noise. The exact numbers are not printed: that is the point.")
    print("Next: docs/quickstart.md")


def ask(sql: str) -> ReleaseTable:
    """Ask the table in SQL. A ledger in memory ends with the demo; yours is a file."""
    columns = {"clinic": query.categories(CLINICS), "age": query.between(0, 120)}
    with (
        as_file(files("discreet") / "data" / "visits.csv") as path,
        Session(
            path,
            unit="row",
            budget=Budget(epsilon=1),
            columns=columns,
            ledger="memory",
            dataset="visits",
            principal="demo",
        ) as session,
    ):
        return session.sql(sql, epsilon="0.5").release()


def answers(table: dict[str, list[str]]) -> Iterator[tuple[str, Release[object]]]:
    """Ask a few questions of the table, each at its own price."""
    waits = table["wait_minutes"]
    yield "patients", statistics.count(table["patient"], relation=_BOTH, epsilon="0.2")
    yield (
        "share of satisfied patients",
        statistics.proportion([v == "yes" for v in table["satisfied"]], relation=_BOTH, epsilon="0.3"),
    )
    yield (
        "mean waiting time, minutes, of 0 to 120",
        statistics.mean(waits, relation=_BOTH, bounds=(0, 120), step="0.1", epsilon="0.5"),
    )
    yield (
        "nine in ten wait less than, minutes",
        statistics.quantile(waits, "0.9", relation=_BOTH, bounds=(0, 240), step=1, epsilon="0.3"),
    )
    histogram = statistics.histogram(table["clinic"], relation=_BOTH, bins=CLINICS, rho="0.01")
    yield "patients of each clinic", histogram


def _by_label(question: str, release: Release[object]) -> str:
    """Write one line for each cell of a table."""
    (error, *_) = release.plus_minus()
    cells = (f"  {label:<40}{value:,} ± {error}" for label, value in release.as_dict().items())
    return "\n".join([f"{question:<42}(95 % each), {release.cost}", *cells])


def _table() -> dict[str, list[str]]:
    """Read the bundled table, column by column."""
    with (files("discreet") / "data" / "visits.csv").open(encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    return {name: [row[name] for row in rows] for name in rows[0]}


if __name__ == "__main__":
    main()
