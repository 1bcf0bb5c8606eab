"""Statistics of one unit's own rows in SQL: exact whole numbers on the grid, saturated, then the kind of the field."""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.query.engines.expressions import write, write_as
from discreet.query.engines.placing import place
from discreet.query.engines.writing import SQL_TYPES, Writer, real
from discreet.query.facts import Kind
from discreet.query.sources import UnitStatistic, UnitTotal

__all__ = ["total"]

_MOST = 1 << 62  # Steps; a sum beyond them stays there.


def total(item: UnitTotal, writer: Writer) -> str:
    """Write a statistic of the rows of one unit."""
    if item.statistic is UnitStatistic.ROWS:
        return "count(*)"
    argument = item.argument
    assert argument is not None
    match item.statistic:
        case UnitStatistic.COUNT:
            return f"count({write(argument, writer)})"
        case UnitStatistic.DISTINCT:
            return f"count(DISTINCT {write(argument, writer)})"
        case UnitStatistic.LEAST:
            return f"min({write_as(argument, item.field.facts.kind, writer)})"
        case UnitStatistic.GREATEST:
            return f"max({write_as(argument, item.field.facts.kind, writer)})"
        case _:
            return _sum_or_mean(item, writer)


def _sum_or_mean(item: UnitTotal, writer: Writer) -> str:
    index, step = _index(item, writer)
    if item.statistic is UnitStatistic.SUM:
        added = f"sum({index})"
        ends = f"WHEN {added} > {_MOST} THEN {_MOST} WHEN {added} < {-_MOST} THEN {-_MOST}"
        steps = f"CAST(CASE {ends} ELSE {added} END AS BIGINT)"
    else:
        steps = f"(CAST(sum({index}) AS DOUBLE) / count({index}))"
    kind = item.field.facts.kind
    if kind is Kind.INTEGER:
        return steps if step == 1 else f"TRY_CAST({steps} * CAST({step.numerator} AS HUGEINT) AS BIGINT)"
    double = steps if item.statistic is UnitStatistic.MEAN else f"CAST({steps} AS {SQL_TYPES[Kind.REAL]})"
    return f"({double} / {real(step.denominator)})" if step.numerator == 1 else f"({double} * {real(step)})"


def _index(item: UnitTotal, writer: Writer) -> tuple[str, Fraction]:
    argument = item.argument
    assert argument is not None
    facts = argument.facts
    step = item.step if item.step is not None else (Fraction(1) if facts.kind is not Kind.REAL else facts.step)
    if step is None:
        raise InvalidParameter("a sum of reals for each unit needs a step")
    return place(write(argument, writer), facts, step, -_MOST, _MOST, writer), step
