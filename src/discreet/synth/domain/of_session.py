"""A domain from what a session's policy declares of a table; nothing is read from the data."""

from __future__ import annotations

from discreet.errors import InvalidParameter
from discreet.query import Session
from discreet.query.catalogue import CatalogueColumn
from discreet.query.facts import Kind
from discreet.query.session.steps import private_table
from discreet.synth.domain.category import Category
from discreet.synth.domain.days import day_of
from discreet.synth.domain.domain import Declared, Domain
from discreet.synth.domain.numeric import Numeric

__all__ = ["domain_of_session"]


def domain_of_session(session: Session, table: str | None = None) -> Domain:
    """Return the domain of a private table: its columns with declared categories or bounds, or truth values.

    Columns of which nothing is declared, timestamps, and the column that tells people apart are left out.
    """
    known = private_table(session.catalogue, table)
    found = {
        column.name: declared
        for column in known.columns.values()
        if column.name != known.unit and (declared := _declared(column)) is not None
    }
    if not found:
        raise InvalidParameter(
            f"nothing is declared of the columns of table {known.name!r}: declare categories and bounds in the policy, "
            "or say domain=dp.synth.Domain({…})"
        )
    return Domain(found)


def _declared(column: CatalogueColumn) -> Declared | None:
    facts, null = column.facts, column.facts.nullable and column.missing is None
    if facts.kind is Kind.BOOLEAN:
        return Category([False, True], null=null)
    if facts.members is not None:
        return Category(facts.members, null=True)  # type: ignore[arg-type]
    if facts.low is None or facts.high is None:
        return None
    if facts.kind is Kind.DATE:
        return Numeric.dates(day_of(int(facts.low)), day_of(int(facts.high)), null=null)
    if not facts.kind.is_number:
        return None
    return Numeric(facts.low, facts.high, whole=facts.kind is Kind.INTEGER, null=null)
