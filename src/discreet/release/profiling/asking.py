"""The questions of a profile, and the rounds in which they are asked: each is one charge, and each can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.query import CatalogueTable, Plan, ReleaseTable, Session
from discreet.query.session.words import name
from discreet.release.profiling.dividing import Division, share_of
from discreet.release.profiling.partition import Partition
from discreet.release.profiling.subjects import ProfiledColumn

__all__ = ["UNITS", "ask", "count_cells", "count_units", "find_values", "named"]

UNITS = "units"
_WHOLE = Fraction(1)


def named(subject: ProfiledColumn) -> str:
    """Return under which name a column is asked; none is the name of the number of units."""
    return f"column {subject.name}"


def count_units(session: Session, table: CatalogueTable, division: Division) -> Plan:
    """Ask how many units, or rows where these are the units, the table has."""
    counted = "COUNT(*)" if table.unit is None else f"COUNT(DISTINCT {name(table.unit)})"
    return _priced(session, f"SELECT {counted} AS n FROM {name(table.name)}", division, _WHOLE)


def find_values(session: Session, table: CatalogueTable, subject: ProfiledColumn, division: Division) -> Plan:
    """Ask for the values that enough units share."""
    share = share_of(subject, "find")
    assert share is not None
    value = subject.value
    found = f"SELECT {value} AS found FROM {name(table.name)} GROUP BY {value}"  # not counted: all goes into finding
    return _priced(session, found, division, share, delta=division.delta_each)


def count_cells(
    session: Session, table: CatalogueTable, subject: ProfiledColumn, cells: Partition, division: Division, *, at: str
) -> Plan:
    """Ask how many rows are in each cell of a column. A row is in one of them, so all of them cost what one does."""
    share = share_of(subject, at)
    assert share is not None
    cell = "cell" if (table.unit or "").casefold() != "cell" else "cell_of_column"
    unit = "" if table.unit is None else f"{name(table.unit)}, "
    rows = f"SELECT {unit}{cells.sql(subject.value)} AS {cell} FROM {name(table.name)}"
    return _priced(session, f"SELECT {cell}, COUNT(*) AS n FROM ({rows}) AS cells GROUP BY {cell}", division, share)


def _priced(
    session: Session, query: str, division: Division, share: Fraction, *, delta: Fraction | None = None
) -> Plan:
    spent = division.part * share
    if division.gaussian:
        return session.sql(query, rho=spent, delta=delta)
    return session.sql(query, epsilon=spent, delta=delta)


def ask(session: Session, plans: Mapping[str, Plan], *, key: str, at: str) -> Mapping[str, ReleaseTable]:
    """Pay for a round and answer it, or return what was answered under its key."""
    if not plans:
        return {}
    purpose = f"profile, {at}: {len(plans)} questions"
    return session.together(plans, key=f"{key}/{at}", purpose=purpose).release().tables
