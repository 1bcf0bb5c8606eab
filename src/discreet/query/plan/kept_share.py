"""The kept share: which part of all units and rows an answer counts, and what its totals are without the limits.

Contribution limits cut rows, and an answer is then of the counted rows. How much that leaves out is private itself, so
it is a question like any other, with a price: units that are counted with all their rows, and the others.

Theorem     A unit is counted with all its rows, or it is not: one unit more or less changes one of the two numbers of
            units, by one, so both are paid like one. Of rows at most R are taken of each unit, so it changes the number
            of rows by at most R, a sum of values from a to b by at most R max(|a|, |b|), and the number of counted
            rows by at most what the limits leave. [DMNS06]
Proof       The rows of a unit become one row with their number and their sums, cut at R (`PerUnit`): planner and
            engine keep it, one for each unit. Units with more than R rows are cut, so that a wrong R makes totals too
            small and never breaks the promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import significant_up
from discreet.query.answer_columns import Cell, cell_text
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Key,
    Measure,
    Named,
    Operator,
    OutputColumn,
    PerUnit,
    Query,
    ReleasedMeasure,
    Source,
    Statistic,
    UnitStatistic,
    UnitTotal,
    fields_of,
    unit_of,
)
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, cast, clamp, when
from discreet.query.parse.aggregates import Aggregate
from discreet.query.parse.per_unit import unit_total
from discreet.query.plan.contribution_limits import copies
from discreet.query.plan.draft import LimitedDraft
from discreet.query.plan.explain import cuts_groups, cuts_rows, only_units
from discreet.query.policy import Unit
from discreet.query.release_table import ReleaseTable
from discreet.schema.columns import ExpressionFacts, Kind

__all__ = [
    "ALL_ROWS",
    "COUNTED",
    "OTHERS",
    "WHOLE",
    "KeptShare",
    "can_cut",
    "kept_question",
    "kept_share",
    "total_of",
]

WHOLE, OTHERS, ALL_ROWS, COUNTED = "whole_units", "other_units", "all_rows", "counted_rows"
_O, _U = Operator, UnitStatistic
_COUNT = ExpressionFacts(kind=Kind.INTEGER, low=Fraction(1), nullable=False)


def can_cut(draft: LimitedDraft) -> bool:
    """Whether a unit may have rows that this question does not count; a row that is a unit has itself only."""
    if draft.catalogue.unit.is_row:
        return False
    return cuts_groups(draft) or cuts_rows(draft) or draft.nesting is not None


def kept_question(draft: LimitedDraft) -> Query:
    """Ask for the units that a question counts with all their rows, and for the others.

    A unit is counted wholly if it is in no more groups than `max_groups`, and has no more rows than `max_rows` in any,
    or in all groups together where a family has one choice: then, whatever the secret choice, all its rows are kept.
    With `Unit.rows_at_most` there are the number of all rows too, that of those which are counted, on average over the
    choice, and the sums of the question without its limits. Each is one number, not a sum of cells; one that a unit
    changes by c times as much as the limits leave of its rows has sqrt(c) times their part of the price, which makes
    the sum of all relative errors least.
    """
    if draft.nesting is not None:
        raise Refused(
            "the kept share is measured for one unit, and two are protected here, one within the other",
            way_out="ask without kept_share; notes say what max_inner and the limits of the inner unit leave out",
        )
    each = _units(draft)
    measures: list[Measure] = []
    outputs: list[OutputColumn] = []
    for name, statistic, expression, weight in (*_both_kinds(draft, each), *_totals(draft, each)):
        outputs.append(OutputColumn(name, ReleasedMeasure(len(measures))))
        measures.append(Measure(statistic, expression, weight=weight))
    return Query(source=each.source, keys=(), measures=tuple(measures), outputs=tuple(outputs))


_Asked: TypeAlias = tuple[str, Statistic, Expression, int | None]  # name, what is asked, of what, and its weight


@final
@dataclass(frozen=True, slots=True)
class _Units:
    """One row for each unit, and what it has in it."""

    source: Source
    groups: Field  # in how many groups it is
    most: Field  # how many rows it has in the group where it has most
    rows: Field  # in all groups
    capped: Field  # how many would be counted if no group were left out
    sums: Mapping[str, Field]  # by column of the question


def _units(draft: LimitedDraft) -> _Units:
    """Add up the rows of each unit in each group, and then its groups; rows of no listed group are in none."""
    source, added = draft.question.source, dict(_added(draft))
    keys = tuple(
        Named(Field(f"kept_key{at}", key.expression.facts), key.expression)
        for at, key in enumerate(draft.question.keys)
    )
    rows = UnitTotal(Field("kept_n", _COUNT), _U.ROWS, None)
    inner = {name: unit_total(f"kept_a{at}", asked) for at, (name, asked) in enumerate(added.items())}
    pairs: Source = PerUnit(source, _unit_field(source, "kept_u1"), keys, (rows, *inner.values()))
    listed = [one for key, named in zip(draft.question.keys, keys, strict=True) for one in _listed(key, named.field)]
    for condition in listed:
        pairs = Filter(pairs, condition)
    few = apply(_O.LEAST, rows.field, literal(draft.max_rows))
    groups = UnitTotal(Field("kept_groups", _COUNT), _U.ROWS, None)
    most = UnitTotal(Field("kept_most", replace(_COUNT, nullable=True)), _U.GREATEST, rows.field)
    total = UnitTotal(Field("kept_rows", _COUNT), _U.SUM, rows.field, Fraction(1))
    capped = UnitTotal(Field("kept_capped", _COUNT), _U.SUM, few, Fraction(1))
    outer = {name: _again(f"kept_s{at}", one) for at, (name, one) in enumerate(inner.items())}
    each = PerUnit(pairs, _unit_field(pairs, "kept_u2"), (), (groups, most, total, capped, *outer.values()))
    sums = {name: one.field for name, one in outer.items()}
    return _Units(each, groups.field, most.field, total.field, capped.field, sums)


def _unit_field(source: Source, name: str) -> Field:
    own = next(field for field in fields_of(source) if field.name == unit_of(source))
    return Field(name, replace(own.facts, nullable=False))


def _again(name: str, inner: UnitTotal) -> UnitTotal:
    """Add up what was added up in each group."""
    step = inner.step if inner.step is not None else Fraction(1)
    return UnitTotal(Field(name, replace(inner.field.facts, nullable=True)), _U.SUM, inner.field, step)


def _listed(key: Key, field: Field) -> Iterator[Expression]:
    """Leave out what is in no group, as the question itself does: values that nobody listed."""
    if key.domain is None:
        return
    missing = apply(_O.IS_NULL, field)
    there = [literal(value) for value in key.domain if value is not None]  # type: ignore[arg-type]
    inside = apply(_O.IN, field, *there)
    yield apply(_O.OR, inside, missing) if None in key.domain else inside


def _both_kinds(draft: LimitedDraft, each: _Units) -> Iterator[_Asked]:
    """Count units of which all rows are kept, whatever the choice, and the others; none is among both."""
    conditions = []
    if cuts_groups(draft):
        conditions.append(apply(_O.LESS_OR_EQUAL, each.groups, literal(draft.max_groups)))
    if cuts_rows(draft):
        rows = each.most if draft.family is None else each.rows
        conditions.append(apply(_O.LESS_OR_EQUAL, rows, literal(draft.max_rows)))
    whole = conditions[0] if len(conditions) == 1 else apply(_O.AND, *conditions)
    kind = when([(whole, literal(1))], literal(0))
    for name, code in ((WHOLE, 1), (OTHERS, 0)):
        yield name, Statistic.COUNT, when([(apply(_O.EQUAL, kind, literal(code)), literal(1))]), None


def _added(draft: LimitedDraft) -> Iterator[tuple[str, Aggregate]]:
    """Find the columns of a question that are totals of values, where it is known how many rows a unit has."""
    if not _most_rows(draft):
        return
    for output in draft.question.outputs:
        measure = draft.question.measures[output.value.measure] if isinstance(output.value, ReleasedMeasure) else None
        if measure is not None and measure.statistic in (Statistic.SUM, Statistic.COUNT):
            argument = measure.argument
            if argument is not None and argument.facts.kind is Kind.BOOLEAN and measure.statistic is Statistic.SUM:
                argument = cast(argument, Kind.INTEGER)
            yield output.name, Aggregate(statistic=measure.statistic, argument=argument)


def _totals(draft: LimitedDraft, each: _Units) -> Iterator[_Asked]:
    """Return what is added up over units, none with more than R rows."""
    most = _most_rows(draft)
    if not most:
        return
    left = min(most, draft.max_rows * (1 if draft.family is not None else draft.max_groups))
    weight = max(1, round(math.sqrt(Fraction(most, left))))
    heavy = None if weight == 1 else weight
    yield ALL_ROWS, Statistic.SUM, apply(_O.LEAST, each.rows, literal(most)), heavy
    yield COUNTED, Statistic.SUM, clamp(_kept(draft, each), Fraction(0), Fraction(left)), None
    for name, asked in _added(draft):
        low, high = _bounds(asked, most)
        yield total_of(name), Statistic.SUM, clamp(each.sums[name], low, high), heavy


def total_of(column: str) -> str:
    """Name the total of a column; one that is called `rows` is not the number of all rows."""
    return f"all_{column}" if column != "rows" else "all_of_rows"


def _kept(draft: LimitedDraft, each: _Units) -> Expression:
    """Return how many rows of a unit are kept, on average over the choice of its groups."""
    if draft.family is not None:
        return apply(_O.LEAST, each.rows, literal(draft.max_rows))
    if not cuts_groups(draft):
        return each.capped
    some = apply(_O.DIVIDE, apply(_O.MULTIPLY, each.capped, literal(draft.max_groups)), each.groups)
    many = apply(_O.GREATER, each.groups, literal(draft.max_groups))
    return when([(many, some)], each.capped)


def _most_rows(draft: LimitedDraft) -> int:
    """Return how many rows a unit has in the source at most; 0 where nobody said, or joins may make more of them."""
    unit = draft.catalogue.unit
    single = copies(draft.question.source, draft.catalogue) == 1
    return unit.rows_at_most if unit.rows_at_most is not None and single and not only_units(draft) else 0


def _bounds(asked: Aggregate, most: int) -> tuple[Fraction, Fraction]:
    """Return what a unit with so many rows adds to a total, at least and at most."""
    if asked.statistic is Statistic.COUNT:
        return Fraction(0), Fraction(most)
    assert asked.argument is not None
    facts = asked.argument.facts
    if facts.low is None or facts.high is None:  # The question itself could not have been planned without them.
        raise InvalidParameter("a total of values needs their bounds")
    return most * min(facts.low, Fraction(0)), most * max(facts.high, Fraction(0))


# --- what was measured ---
# From released numbers alone: shares and totals with intervals, and the sentences that go with an answer.


# Of a standard deviation, with 97.5 %: Laplace noise reaches 2.61, Gaussian 2.25. Two such bounds hold at once with
# 95 %.
_REACH = Fraction(262, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShare:
    """Which part of all units and rows an answer counts, each with its interval at 95 %.

    Args:
        unit: Whom the answer protects.
        units: The share of units that are counted with all their rows.
        rows: The share of rows that are counted, where `rows_at_most` is declared.
        totals: Totals of all rows by column, with `all_rows` for their number: none of a unit counts more than
            `rows_at_most` of its rows.
        cost: What it was measured for.
        release: The answer that all of it comes from.
    """

    unit: Unit
    units: Cell
    rows: Cell | None
    totals: Mapping[str, Cell]
    cost: str
    release: ReleaseTable

    def sentences(self) -> Iterator[str]:
        """Say it, for the notes of an answer."""
        whom = "units" if self.unit.name is None else self.unit.nouns
        yield (
            f"{_percent(self.units)} of all {whom} that have rows here are counted with all their rows (kept share, "
            f"measured for {self.cost} before this answer)"
            if self.units.plus_minus is not None
            else self._unknown(f"{whom} that have rows here is counted with all their rows")
        )
        if self.rows is None:
            return
        most = f"at most rows_at_most = {self.unit.rows_at_most:,} of each {self.unit.noun}"
        yield (
            f"{_percent(self.rows)} of all rows are counted ({most}): a count is of the counted rows, and of all rows "
            "there are at least so many"
            if self.rows.plus_minus is not None
            else self._unknown(f"rows is counted ({most})")
        )
        totals = (f"{_named(name)} {cell_text(_whole(cell))}" for name, cell in self.totals.items())
        yield f"corrected totals, of all rows and all groups ({most}): {'; '.join(totals)}"

    def _unknown(self, counted: str) -> str:
        """Say that a share was not found, and what finds it."""
        return (
            f"it is not known which part of all {counted}: there are too few for the noise of the kept share, measured "
            f"for {self.cost} before this answer. Give it more: a larger kept_share, or a larger ε"
        )

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def _named(name: str) -> str:
    return (
        "number of rows" if name == ALL_ROWS else name.removeprefix("all_of_" if name == total_of("rows") else "all_")
    )


def _whole(cell: Cell) -> Cell:
    """Round what is shown to whole numbers where the error is larger than a few."""
    if cell.plus_minus is None or cell.plus_minus < 10:
        return cell
    return cell._replace(value=round(cell.value), plus_minus=Fraction(-(-cell.plus_minus // 1)))


def _percent(cell: Cell) -> str:
    """Write a share with its error."""
    assert cell.plus_minus is not None
    return f"{float(100 * cell.value):.1f} ± {significant_up(100 * cell.plus_minus, 2)} %"


def kept_share(table: ReleaseTable, deviations: Mapping[str, Fraction], unit: Unit) -> KeptShare:
    """Compute shares and totals from what was released of `kept_question`, with the deviations of its noise.

    Theorem     With W whole units and C others, each with noise of at most h, |(1 - s) W' - s C'| <= h for the exact
                share s = W / (W + C), since it is (1 - s) X - s Y of noises X and Y. So s is within h / (W' + C') of
                W' / (W' + C'), whatever s is.
    """
    cells = {name: Fraction(table.column(name)[0].value) for name in deviations}
    errors = {name: _REACH * deviation + 1 for name, deviation in deviations.items()}
    units = _quotient(cells[WHOLE], cells[WHOLE] + cells[OTHERS], max(errors[WHOLE], errors[OTHERS]))
    totals = {
        name: _about(value, errors[name]) for name, value in cells.items() if name not in (WHOLE, OTHERS, COUNTED)
    }
    rows = _kept_rows(cells[COUNTED], cells[ALL_ROWS], errors[COUNTED], errors[ALL_ROWS]) if totals else None
    return KeptShare(unit=unit, units=units, rows=rows, totals=totals, cost=table.cost, release=table)


def _about(value: Fraction, error: Fraction) -> Cell:
    return Cell(value, error, value - error, value + error)


def _quotient(part: Fraction, total: Fraction, error: Fraction) -> Cell:
    """Enclose a share, given by how much `part - share * total` is off at most."""
    if total <= error:
        return Cell(None, None, Fraction(0), Fraction(1))
    share, off = min(max(part / total, Fraction(0)), Fraction(1)), error / total
    low, high = (part - error) / total, (part + error) / total
    return Cell(share, off, min(max(low, Fraction(0)), Fraction(1)), max(min(high, Fraction(1)), Fraction(0)))


def _kept_rows(counted: Fraction, total: Fraction, own: Fraction, others: Fraction) -> Cell:
    """Enclose the share of rows that are counted: a share s with |counted - s total| <= h + s g."""
    if total <= others:
        return Cell(None, None, Fraction(0), Fraction(1))
    most = min(Fraction(1), max(Fraction(0), counted + own) / (total - others))  # no share s can be larger
    return _quotient(counted, total, own + most * others)
