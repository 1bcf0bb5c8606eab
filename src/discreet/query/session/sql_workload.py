"""Many counts of one private table in SQL, answered together: cells are the rows for which the same conditions hold.

Which combinations of conditions can hold at all follows from the questions and from what is declared, never from rows:
a column is only compared with constants, between which it makes no difference; or it is clamped to close bounds of
whole numbers, or is a truth value, of which all are tried. A row is in the cell of its combination, and in none if none
of the conditions holds, or if the combination was not foreseen. So it is in one cell at most, whatever it holds, and
prices need nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product
from math import ceil, floor, inf, nextafter, prod
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Refused
from discreet.exact import Number, exact
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.release import Release
from discreet.mechanisms.workloads.linear_queries import MOST_DENSE
from discreet.mechanisms.workloads.matrix_mechanism import CountedCells, MatrixMechanism
from discreet.query.ast import (
    Apply,
    Case,
    Expression,
    Field,
    Filter,
    Literal,
    Operator,
    Query,
    ReleasedMeasure,
    Source,
    Statistic,
    Table,
    TableColumn,
    walk,
)
from discreet.query.engine import Deadline, LimitedEngine, Stage, StageKey
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, evaluate, literal_value, when
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.parse.select import read
from discreet.query.plan.contribution_limits import check_work
from discreet.query.plan.draft import Spend
from discreet.query.session.executor import check_price
from discreet.query.session.session import Session
from discreet.schema.columns import ExpressionFacts, Kind
from discreet.statistics.budget_and_payment import noise_from

__all__ = ["workload"]

Truths: TypeAlias = NDArray[np.bool_]

_MOST_QUERIES = 1000
_MOST_VALUES = 10_000  # Of a column that is not only compared with constants.
_MOST_TRIED = 1 << 18  # Combinations of values of all columns,
_MOST_TRUTHS = 1 << 26  # times queries.
_COMPARISONS = (
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
    Operator.IN,
    Operator.IS_NULL,
)
_OF_TEXTS = (Operator.EQUAL, Operator.NOT_EQUAL, Operator.IN, Operator.IS_NULL)


def workload(
    session: Session,
    queries: Sequence[str] | Mapping[str, str],
    *,
    aim: str = "sum",
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Answer many `SELECT COUNT(*) FROM … WHERE …` of one private table together, for one price.

    The counts are linear queries of cells, the combinations of conditions that can hold: see `dp.workload`, which this
    is for SQL. Conditions compare columns with constants (texts by equality), or are of truth values and of whole
    numbers with close bounds. There are at most 1,000 questions and 2,048 combinations. Of a unit with several rows one
    is counted, in one cell, drawn in secret. Sessions under replace-one are refused.

    Args:
        session: Who has the table, and pays.
        queries: The questions, in a list or by name; without GROUP BY.
        aim: Whether the "sum" of all variances shall be least, or the "largest" of them.
        epsilon: What to spend. Alone it buys Laplace noise, with `delta` Gaussian noise.
        delta: The delta that goes with epsilon.
        rho: What to spend of zero-concentrated privacy, instead of epsilon; it buys Gaussian noise.

    Returns:
        One count a question, right on average, with an interval for each. Their errors are correlated:
        `release.accuracy.covariance()` tells how.

    Raises:
        Refused: If a question is none of these, questions are of different tables, there are too many combinations, or
            a unit is counted with several rows.
        BudgetExceeded: If the session cannot pay; nothing is read.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"age": [20, 40, 60, 80] * 250}), unit="row", budget=dp.Budget(rho=1), ledger="memory",
        ...     dataset="people", principal="ana", columns={"age": dp.between(0, 120, whole=True)},
        ... )
        >>> release = dp.query.workload(
        ...     session, [f"SELECT COUNT(*) FROM people WHERE age < {age}" for age in range(10, 100, 10)], rho=0.5
        ... )
        >>> len(release.value), abs(release.value[4] - 500) < 40
        (9, True)
        >>> session.close()
    """
    asked = _asked(session, list(queries.values() if isinstance(queries, Mapping) else queries))
    names = tuple(queries)
    truths = _combinations(asked)
    noise = noise_from(epsilon=epsilon, delta=delta, rho=rho)
    check_price([Spend(epsilon=_read_if_any(epsilon, "epsilon"), rho=_read_if_any(rho, "rho"))])
    mechanism = replace(
        MatrixMechanism.best(
            truths.astype(np.float64),
            cells=[range(truths.shape[1])],
            relation=session.unit.relation,
            noise=noise,
            aim=aim,
        ),
        labels=names,
    )
    stage = _stage(asked, truths)
    engine = session._desk.engine
    if isinstance(engine, LimitedEngine):
        engine.check_stages([stage])

    def counted() -> Release[tuple[Fraction, ...]]:
        found = engine.run(stage, deadline=Deadline.after(session._desk.seconds))
        return mechanism.release(CountedCells(np.array(found.tally.rows, np.int64)))

    release = session._read(
        counted,
        event=mechanism.event,
        relation=mechanism.relation,
        purpose=f"workload of {len(names)} counts",
        unit=session.unit.account,
    )
    return replace(release, delta=noise.delta if isinstance(noise, GaussianNoise) else None, unit=session.unit.noun)


def _read_if_any(said: Number | None, name: str) -> Fraction | None:
    return None if said is None else exact(said, name=name)


# --- questions: Each is a condition of rows of the same table. ---


@final
@dataclass(frozen=True, slots=True)
class _CountedTable:
    table: Table
    conditions: tuple[Expression, ...]


def _asked(session: Session, queries: list[str]) -> _CountedTable:
    unit = session.unit
    if not 0 < len(queries) <= _MOST_QUERIES:
        raise Refused(f"a workload has from 1 to {_MOST_QUERIES:,} questions")
    if not unit.is_row and (unit.max_groups, unit.max_rows_per_group) != (1, 1):
        raise Refused(
            f"a workload counts one row of each {unit.noun}, and this session allows more",
            reason="the strategy is searched for units that are in one cell, once",
            way_out="ask with session.sql and session.batch, or declare the unit with max_groups=1 and "
            "max_rows_per_group=1",
        )
    read_all = [_condition(session, query, number) for number, query in enumerate(queries, 1)]
    first = read_all[0][0]
    if any(table.table != first.table for table, _ in read_all):
        raise Refused(
            "the questions of a workload are of one table",
            way_out="ask for one workload a table, or with session.sql and session.batch",
        )
    counted = _same_fields(read_all)
    together = Filter(counted.table, _marked(counted, [1] * len(counted.conditions)))
    check_work(Query(source=together, keys=(), measures=(), outputs=()), session.catalogue)
    return counted


def _condition(session: Session, query: str, number: int) -> tuple[Table, Expression]:
    reading = read(query, session.catalogue)
    question = reading.question
    plain = not (question.keys or question.having or question.order or question.limit)
    counts = [measure.statistic for measure in question.measures] == [Statistic.ROWS]
    told = [output.value for output in question.outputs]
    found = _of_table(question.source)
    if found is None or not plain or not counts or told != [ReleasedMeasure(0)] or reading.options != PrivacyOptions():
        raise Refused(
            f"question {number} of the workload is no count of rows of one private table",
            reason="only SELECT COUNT(*) FROM … WHERE … is a sum of cells",
            way_out="ask for it with session.sql",
        )
    return found


def _of_table(source: Source) -> tuple[Table, Expression] | None:
    match source:
        case Table() if source.private:
            return source, literal(True)
        case Filter():
            below = _of_table(source.source)
            if below is None:
                return None
            table, condition = below
            return table, source.condition if isinstance(condition, Literal) else apply(
                Operator.AND, condition, source.condition
            )
        case _:
            return None


def _same_fields(asked: Sequence[tuple[Table, Expression]]) -> _CountedTable:
    """Give each column one field in all questions: every text numbers its own."""
    columns: dict[TableColumn, TableColumn] = {}
    for table, _ in asked:
        for one in table.columns:
            columns.setdefault(_nameless(one), replace(one, field=replace(one.field, name=f"w{len(columns) + 1}")))
    each = [{one.field.name: columns[_nameless(one)].field for one in table.columns} for table, _ in asked]
    conditions = [_renamed(condition, fields) for (_, condition), fields in zip(asked, each, strict=True)]
    first = asked[0][0]
    unit = None if first.unit is None else each[0][first.unit].name
    return _CountedTable(replace(first, columns=tuple(columns.values()), unit=unit), tuple(conditions))


def _nameless(column: TableColumn) -> TableColumn:
    return replace(column, field=replace(column.field, name=""))


def _renamed(expression: Expression, fields: Mapping[str, Field]) -> Expression:
    match expression:
        case Field():
            return fields[expression.name]
        case Literal():
            return expression
        case Apply():
            return replace(expression, arguments=tuple(_renamed(one, fields) for one in expression.arguments))
        case Case():
            branches = tuple((_renamed(one, fields), _renamed(value, fields)) for one, value in expression.branches)
            return replace(expression, branches=branches, otherwise=_renamed(expression.otherwise, fields))


# --- combinations: Which conditions can hold together, by what is declared. ---


def _combinations(asked: _CountedTable) -> Truths:
    """Return the distinct columns of truths, one row a question; without the one in which nothing holds."""
    fields = {one.name: one for condition in asked.conditions for one in walk(condition) if isinstance(one, Field)}
    values = {name: _values(field, asked.conditions) for name, field in fields.items()}
    shape = [len(found) for found in values.values()]
    if prod(shape) > _MOST_TRIED or prod(shape) * len(asked.conditions) > _MOST_TRUTHS:
        raise _too_many()
    truths = np.stack([_table(condition, values).reshape(-1) for condition in asked.conditions])
    _, places = np.unique(np.packbits(truths, axis=0), axis=1, return_index=True)
    found = truths[:, np.sort(places)]
    found = found[:, found.any(axis=0)]
    if found.shape[1] > MOST_DENSE:
        raise _too_many()
    if not found.any(axis=1).all():
        raise Refused(
            "a condition of the workload holds for no row that can be",
            reason="by what is declared of the columns its count is always 0",
            way_out="leave it out, or correct the declaration",
        )
    return found


def _too_many() -> Refused:
    return Refused(
        f"the conditions of this workload divide rows into more than {MOST_DENSE:,} cells, or too many to try",
        reason="the best strategy is searched over all cells",
        way_out="ask in several workloads, each of fewer columns",
    )


def _table(condition: Expression, values: Mapping[str, Sequence[Any]]) -> Truths:
    """Return whether a condition holds, for all combinations of values of all columns; it looks at its own only."""
    own = {one.name for one in walk(condition) if isinstance(one, Field)}
    names = [name for name in values if name in own]
    found = [
        evaluate(condition, dict(zip(names, row, strict=True))) is True
        for row in product(*(values[name] for name in names))
    ]
    narrow = [len(values[name]) if name in own else 1 for name in values]
    return np.broadcast_to(np.array(found).reshape(narrow), [len(one) for one in values.values()])


def _values(field: Field, conditions: Sequence[Expression]) -> list[Any]:
    """Return values of a column, NULL among them, such that any other makes the same conditions hold as one of them."""
    facts = field.facts
    if facts.kind is Kind.BOOLEAN:
        return [False, True, None]
    constants = _compared(field, conditions)
    if constants is not None:  # Declared values are no limit: others are compared as they are.
        return [*dict.fromkeys(_around(sorted(constants), facts)), None]
    if facts.members is None and facts.kind is Kind.INTEGER and facts.low is not None and facts.high is not None:
        low, high = ceil(facts.low), floor(facts.high)
        if high - low < _MOST_VALUES:
            return [*range(low, high + 1), None]
    raise Refused(
        "a condition of the workload computes with a column of which too little is declared",
        reason="cells are found from what is declared, never from rows",
        way_out="compare the column with constants, or declare close bounds of whole numbers",
    )


def _compared(field: Field, conditions: Sequence[Expression]) -> set[Any] | None:
    """Return all constants that a column is compared with; None if it is used in any other way."""
    constants: set[Any] = set()
    allowed = _OF_TEXTS if field.facts.kind is Kind.TEXT else _COMPARISONS
    for node in (node for condition in conditions for node in walk(condition)):
        below = list(_below(node))
        if field not in below:
            continue
        others = [one for one in below if one != field]
        fixed = [one for one in others if isinstance(one, Literal)]
        if not isinstance(node, Apply) or node.operator not in allowed or len(fixed) < len(others):
            return None
        constants.update(value for value in map(literal_value, fixed) if value is not None)
    return constants


def _below(node: Expression) -> Iterator[Expression]:
    match node:
        case Apply():
            yield from node.arguments
        case Case():
            yield from (part for branch in node.branches for part in branch)
            yield node.otherwise
        case _:
            return


_STEPS: dict[Kind, Any] = {
    Kind.INTEGER: 1,
    Kind.DATE: timedelta(days=1),
    Kind.TIMESTAMP: timedelta(microseconds=1),
}


def _around(constants: list[Any], facts: ExpressionFacts) -> Iterator[Any]:
    """Yield the constants, and values between, before and after them, each within the declared bounds."""
    if facts.kind is Kind.TEXT:
        yield from constants
        yield max(constants, key=len, default="") + "?"  # It equals none of them.
        return
    if facts.kind is Kind.REAL:
        near = [*constants, *((low + high) / 2 for low, high in pairwise(constants))]
        # The next doubles: 1 less is the same number where numbers are large.
        near += [nextafter(constants[0], -inf), nextafter(constants[-1], inf)] if constants else [0.0]
        yield from (_clamped(float(value), facts) for value in near)
        return
    step = _STEPS.get(facts.kind)
    if step is None:
        raise Refused("a workload compares numbers, texts, truth values and times")
    whole = [part for one in constants for part in ({floor(one), ceil(one)} if facts.kind is Kind.INTEGER else {one})]
    yield from (_clamped(value, facts) for one in whole or [_origin(facts)] for value in _neighbours(one, step))


def _neighbours(value: Any, step: Any) -> Iterator[Any]:
    yield value
    for move in (-1, 1):
        try:
            yield value + move * step
        except OverflowError:
            continue  # There is no day after the last one.


def _origin(facts: ExpressionFacts) -> Any:
    return {Kind.DATE: date(1970, 1, 1), Kind.TIMESTAMP: datetime(1970, 1, 1)}.get(facts.kind, 0)


def _clamped(value: Any, facts: ExpressionFacts) -> Any:
    if isinstance(value, (date, datetime)):
        return value  # A value that cannot be is one more combination that does no harm.
    if facts.low is not None and value < facts.low:
        return float(facts.low) if isinstance(value, float) else ceil(facts.low)
    if facts.high is not None and value > facts.high:
        return float(facts.high) if isinstance(value, float) else floor(facts.high)
    return value


# --- stage: Rows are counted by one whole number, the sum of the marks of the conditions that hold. ---


def _stage(asked: _CountedTable, truths: Truths) -> Stage:
    for attempt in range(100):
        marks = [_mark(attempt, place) for place in range(len(asked.conditions))]
        codes = [sum(mark for mark, holds in zip(marks, one, strict=True) if holds) for one in truths.T.tolist()]
        if len(set(codes)) == len(codes):
            break
    else:  # Of 2^40 marks, so many do not collide by chance.
        raise Refused("the conditions of this workload cannot be told apart")
    key = StageKey(expression=_marked(asked, marks), domain=tuple(codes))
    return Stage(
        source=asked.table,
        unit=asked.table.unit,
        keys=(key,),
        columns=(),
        max_groups=1,
        max_rows_per_group=1,
    )


def _mark(attempt: int, place: int) -> int:
    """Return a public number of 40 bits: sums of a thousand of them are below 2^50, and no two cells have the same."""
    return int.from_bytes(hashlib.sha256(f"{attempt} {place}".encode()).digest()[:5], "big") + 1


def _marked(asked: _CountedTable, marks: Sequence[int]) -> Expression:
    """Return the sum of the marks of the conditions that hold for a row."""
    none = literal(0)
    return _added([when([(one, literal(mark))], none) for one, mark in zip(asked.conditions, marks, strict=True)])


def _added(parts: Sequence[Expression]) -> Expression:
    """Add up by halves, so that no expression is deep."""
    if len(parts) == 1:
        return parts[0]
    return reduce(lambda one, other: apply(Operator.ADD, one, other), [_added(half) for half in _halves(parts)])


def _halves(parts: Sequence[Expression]) -> tuple[Sequence[Expression], Sequence[Expression]]:
    return parts[: len(parts) // 2], parts[len(parts) // 2 :]
