"""What the tests of planning share: a small table, questions about it, and an engine that adds up by hand."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.exponential import exponential_outcomes
from discreet.mechanisms.joint_quantiles import QuantileInterval
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.mechanisms.order_statistics import Ranked
from discreet.privacy import outcomes
from discreet.privacy.events import Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation
from discreet.query.ast import (
    Field,
    Key,
    KeyValue,
    Measure,
    OutputColumn,
    Query,
    ReleasedMeasure,
    Statistic,
    Table,
    TableColumn,
)
from discreet.query.bounding.aggregation import MeasureTally, Tally, Values
from discreet.query.catalogue import Catalogue, CatalogueTable
from discreet.query.engine import ExactCounts, Stage, StageColumn
from discreet.query.execute import exact_numbers
from discreet.query.functions.expressions import evaluate
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.plan.choices import interval_of, intervals_of, mode_factor, mode_scores, quantile_of, quantiles_of
from discreet.query.plan.draft import Chooser, ModePick, QuantilesPick, Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.policy import FamilyChoice, Unit
from discreet.schema.columns import ExpressionFacts, Kind

X = Field("x", ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(4)))
SURE = Field("sure", ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(4), nullable=False))
LATER = Field("later", ExpressionFacts(kind=Kind.INTEGER, low=Fraction(3), high=Fraction(5)))
PAY = Field("pay", ExpressionFacts(kind=Kind.REAL, low=Fraction(0), high=Fraction(5000)))
FLAG = Field("flag", ExpressionFacts(kind=Kind.BOOLEAN, low=Fraction(0), high=Fraction(1), members=(False, True)))
WORD = Field("word", ExpressionFacts(kind=Kind.TEXT, members=("p", "q")))
FREE = Field("free", ExpressionFacts(kind=Kind.TEXT))
CITY = Field("city", ExpressionFacts(kind=Kind.TEXT, members=("a", "b", "c")))
WHO = Field("who", ExpressionFacts(kind=Kind.TEXT))
FIELDS = (X, SURE, LATER, PAY, FLAG, WORD, FREE, CITY, WHO)
CITIES = ("a", "b", "c")

Row = tuple[str, Any]  # the city, and a value from which all columns follow, or what each of them holds
People = tuple[tuple[Row, ...], ...]  # by unit


def table(unit: str | None = "who") -> Table:
    return Table("people", True, tuple(TableColumn(field.name, field) for field in FIELDS), unit)


def catalogue(
    max_groups: int = 1, max_rows: int = 1, *, rows: bool = False, relation: Relation = Relation.ADD_REMOVE
) -> Catalogue:
    many = 3 if relation is Relation.REPLACE_ONE else None
    unit = (
        Unit("row", relation=relation, units=many)
        if rows
        else Unit("who", max_groups, max_rows, relation=relation, units=many)
    )
    listed = CatalogueTable(name="people", private=True, columns={}, unit=None if rows else "who")
    return Catalogue(tables={"people": listed}, unit=unit)


def question(*measures: Measure, keys: str = "none", **more: Any) -> Query:
    """Ask for some measures, named m0, m1, …, with no keys, with known or with unknown ones."""
    asked = {"none": (), "known": (Key("city", CITY, CITIES),), "unknown": (Key("city", CITY),)}[keys]
    outputs = [OutputColumn("city", KeyValue(0))] if asked else []
    outputs += [OutputColumn(f"m{place}", ReleasedMeasure(place)) for place in range(len(measures))]
    defaults: dict[str, Any] = {"source": table(), "keys": asked, "measures": measures, "outputs": tuple(outputs)}
    return Query(**(defaults | more))


def priced(
    *measures: Measure,
    keys: str = "none",
    limits: tuple[int, int] = (1, 1),
    family: int | None = None,
    pure: bool = False,
    relation: Relation = Relation.ADD_REMOVE,
    **spend: Any,
) -> PricedQuery:
    """Price a question; one of a family counts so many rows of a unit, in all groups together."""
    choice = None if family is None else FamilyChoice(name="f", max_rows=family)
    said, known = PrivacyOptions(family=choice), catalogue(*limits, relation=relation)
    return plan(question(*measures, keys=keys), known, Spend(**spend), limits=said, pure=pure)


EVERY = {
    "rows": Measure(Statistic.ROWS),
    "units": Measure(Statistic.UNITS),
    "count": Measure(Statistic.COUNT, X),
    "count of sure": Measure(Statistic.COUNT, SURE),
    "distinct": Measure(Statistic.DISTINCT, X),
    "sum": Measure(Statistic.SUM, X),
    "sum of later": Measure(Statistic.SUM, LATER),
    "mean": Measure(Statistic.MEAN, X),
    "mean of later": Measure(Statistic.MEAN, LATER),
    "mean of flag": Measure(Statistic.MEAN, FLAG),
    "variance": Measure(Statistic.VARIANCE, X),
    "deviation": Measure(Statistic.DEVIATION, X, sample=False),
    "covariance": Measure(Statistic.COVARIANCE, X, sample=False, other=LATER),
    "correlation": Measure(Statistic.CORRELATION, SURE, other=X),
}


# An engine by hand: rows are dictionaries, and every unit is within its limits already.


def _values(row: Row) -> dict[str, Any]:
    city, value = row
    if isinstance(value, dict):
        return value | {"city": city}
    known: dict[str, Any] = {field.name: value for field in FIELDS}
    known["flag"] = None if value is None else value in (1, True, 4)
    known["word"] = "p" if value == 0 else "q" if value == 4 else None
    known["sure"] = 0 if value is None else value
    known["later"] = None if value is None else value + 1
    return known | {"city": city}


def tallied(stage: Stage, people: People) -> ExactCounts:
    """Add up rows group by group, as the text of `Stage` says."""
    rows = [(unit, _values(row)) for unit, rows in enumerate(people) for row in rows]
    keys = _groups(stage, [row for _, row in rows])
    place = {key: number for number, key in enumerate(keys)}
    inside = [(unit, place[key], row) for unit, row in rows if (key := _key(stage, row)) in place]
    groups = range(len(keys))
    tally = Tally(
        units=np.array([len({unit for unit, group, _ in inside if group == g}) for g in groups], dtype=np.int64),
        rows=np.array([sum(group == g for _, group, _ in inside) for g in groups], dtype=np.int64),
        measures=tuple(_measure(column, [(g, row) for _, g, row in inside], len(keys)) for column in stage.columns),
    )
    return ExactCounts(groups=len(keys), tally=tally, keys=lambda some: [keys[g] for g in some])


def _key(stage: Stage, row: dict[str, Any]) -> tuple[Hashable, ...]:
    return tuple(evaluate(key.expression, row) for key in stage.keys)


def _groups(stage: Stage, rows: Sequence[dict[str, Any]]) -> list[tuple[Hashable, ...]]:
    if all(key.domain is not None for key in stage.keys):
        return list(product(*(key.domain or () for key in stage.keys)))
    return sorted({_key(stage, row) for row in rows})


def index(column: StageColumn, row: dict[str, Any]) -> Any:
    """Place a value on the grid, or among the members; None is NULL."""
    value = evaluate(column.expression, row)
    if value is None:
        return None
    if column.members is not None:
        return column.members.index(value) if value in column.members else None
    if column.grid is None:
        return value
    return min(max(round(Fraction(value) / column.grid.step), column.grid.first), column.grid.last)


def _measure(column: StageColumn, rows: list[tuple[int, dict[str, Any]]], groups: int) -> MeasureTally:
    found: list[list[Any]] = [[] for _ in range(groups)]
    for group, row in rows:
        if (placed := index(column, row)) is not None:
            found[group].append(placed)
    numeric = column.grid is not None
    moved = [[value - column.centre for value in values] if numeric else [] for values in found]
    starts = np.concatenate(([0], np.cumsum([len(values) for values in found]))).astype(np.int64)
    listed = [value for values in found for value in sorted(values)] if column.wants.values else []
    return MeasureTally(
        counts=np.array([len(values) for values in found], dtype=np.int64),
        total=np.array([sum(values) for values in moved], dtype=object) if column.wants.total else None,
        squares=np.array([sum(v * v for v in values) for values in moved], dtype=object)
        if column.wants.squares
        else None,
        distinct=np.array([len(set(values)) for values in found], dtype=np.int64) if column.wants.distinct else None,
        values=Values(starts=starts, indices=np.array(listed, dtype=np.int64)) if column.wants.values else None,
    )


# All that one unit may give within its limits.


def units(max_groups: int, max_rows: int, values: Sequence[int | None] = (0, 2, 4, None)) -> Iterator[tuple[Row, ...]]:
    """List all sets of rows of one unit: at most so many groups, and so many rows in each; at least one row."""
    in_one = [rows for size in range(1, max_rows + 1) for rows in combinations_with_replacement(values, size)]
    for size in range(1, max_groups + 1):
        for cities in combinations(CITIES, size):
            for chosen in product(in_one, repeat=size):
                yield tuple((city, value) for city, rows in zip(cities, chosen, strict=True) for value in rows)


def exact_by_group(plan: PricedQuery, people: People) -> dict[Hashable, tuple[int, ...]]:
    """Return the exact numbers by key; a group that is not there has only zeros."""
    found = tallied(plan.stage, people)
    arrays = exact_numbers(plan.draft, found.tally)
    keys = found.keys(list(range(found.groups)))
    return {key: tuple(int(array[g]) for array in arrays) for g, key in enumerate(keys)}


def changes(plan: PricedQuery, others: People, unit: tuple[Row, ...]) -> list[list[int]]:
    """Return how much each number changes in each group when a unit comes."""
    before, after = exact_by_group(plan, others), exact_by_group(plan, (*others, unit))
    nothing = (0,) * len(plan.draft.numbers)
    return [[b - a for a, b in zip(before.get(key, nothing), after[key], strict=True)] for key in after]


def exchanges(plan: PricedQuery, others: People, states: Sequence[tuple[Row, ...]]) -> Iterator[list[list[int]]]:
    """Return how much each number changes in each group when all rows of a unit are exchanged, for all pairs."""
    nothing = (0,) * len(plan.draft.numbers)
    found = [exact_by_group(plan, (*others, rows)) for rows in states]
    for first, second in combinations(found, 2):
        keys = {**first, **second}
        yield [[b - a for a, b in zip(first.get(key, nothing), second.get(key, nothing), strict=True)] for key in keys]


# The law of a release, listed outcome by outcome.


@dataclass(frozen=True)
class Planned:
    """A plan whose law on tiny data can be listed, so that it can be verified."""

    plan: PricedQuery
    shared: bool = False  # a mutant: groups are shown by the noise of their first value
    lower: int = 0  # a mutant: by so much the threshold is too low
    claim: Event | None = None
    relation: Relation = Relation.ADD_REMOVE
    symmetric: bool = True

    @property
    def event(self) -> Event:
        return self.plan.event if self.claim is None else self.claim

    def distribution(self, people: People) -> Outcomes:
        draft, found = self.plan.draft, tallied(self.plan.stage, people)
        numbers = exact_numbers(draft, found.tally)
        cells = [self._group(found, [int(array[g]) for array in numbers], g) for g in range(found.groups)]
        whole = outcomes.product(*cells)
        return outcomes.map(whole, lambda row: tuple(cell for cell in row if cell is not None))

    def _group(self, found: ExactCounts, numbers: list[int], group: int) -> Outcomes:
        """The law of one group: None if it is not shown, else its key and values."""
        noising = self.plan.draft.noising
        key = found.keys([group])[0]
        parts = [outcomes.from_law(one.law, exact) for one, exact in zip(noising.numbers, numbers, strict=True)]
        values = outcomes.product(
            *parts, *(self._pick(found, place, group) for place in range(len(self.plan.draft.picks)))
        )
        if noising.selection is None:
            return outcomes.map(values, lambda row: (key, row))
        least = noising.selection.threshold - self.lower
        if self.shared:
            return outcomes.map(values, lambda row: (key, row) if row[0] > least else None)
        chosen = outcomes.from_law(noising.selection.law, int(found.tally.units[group]))
        flags = outcomes.map(chosen, lambda noisy: noisy > least)
        both = outcomes.product(flags, values)
        return outcomes.map(both, lambda pair: (key, pair[1]) if pair[0] else None)

    def _pick(self, found: ExactCounts, place: int, group: int) -> Outcomes:
        draft = self.plan.draft
        asked, chooser = draft.picks[place], draft.choosers[place]
        kept = found.tally.measures[asked.column].values
        assert kept is not None
        if isinstance(asked, QuantilesPick):
            return self._list(asked, chooser, kept.of(group))
        if not isinstance(asked, ModePick):
            mechanism = (interval_of if chooser.interval else quantile_of)(draft, asked, chooser)
            return mechanism.distribution([int(i) * asked.grid.step for i in kept.of(group)])
        scores: Any = mode_scores(asked, kept.of(group))
        factor = mode_factor(draft, chooser)
        if not chooser.flips:
            return exponential_outcomes(dict(enumerate(scores.tolist())), factor=factor)
        flip = PermuteAndFlip(
            epsilon=factor,
            sensitivity=Fraction(1),
            candidates=len(scores),
            relation=Relation.ADD_REMOVE,  # Its factor is what was decided, whatever the neighbours are.
            monotone=True,
        )
        return flip.distribution(scores)

    def _list(self, asked: QuantilesPick, chooser: Chooser, indices: NDArray[np.int64]) -> Outcomes:
        """The law of points that are chosen together, and of a width around each of them."""
        draft, values = self.plan.draft, [int(i) * asked.grid.step for i in indices]
        # Rows that share a value are in one order here: the claim holds for each of them, and so for all.
        points = replace(quantiles_of(draft, asked, chooser), fineness=1).distribution(values)
        widths = intervals_of(draft, asked, chooser) if chooser.interval else ()
        sample = Ranked.of(values, asked.grid)

        def beside(chosen: tuple[int, ...]) -> Outcomes:
            around = [_ends_law(width, sample, point) for width, point in zip(widths, chosen, strict=False)]
            return outcomes.map(outcomes.product(*around), lambda ends: (chosen, ends))

        return outcomes.mixture((mass, beside(chosen)) for chosen, mass in points.masses.items())


def _ends_law(width: QuantileInterval, sample: Ranked, point: int) -> Outcomes:
    ends = width.ends(point)
    law = width._chooser(len(ends)).distribution(width.scores(sample, ends))
    return outcomes.map(law, lambda place: ends[place])


def people(unit_states: Sequence[tuple[Row, ...]], most: int) -> list[People]:
    """List all data sets of up to so many units."""
    return [row for size in range(most + 1) for row in combinations_with_replacement(unit_states, size)]
