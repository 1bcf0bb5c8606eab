"""Contribution limits and value bounds beside the error that each would bring: noise, and what it leaves out.

A wider limit counts more and takes more noise. Noise is the price list's, exactly: the plan is edited to each limit and
priced. What a limit leaves out is computed on rows that are made up, or that whoever asks says are public. No private
table is opened, and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import enumerated, significant_up
from discreet.pages.progress import working
from discreet.query.ast import Expression, Field, Query, ReleasedMeasure, Statistic, column_names, walk
from discreet.query.engine import Deadline, RowEngine
from discreet.query.plan.planner import PricedQuery
from discreet.release.plan import Period, ReleasePlan, TablePlan, catalogue_of
from discreet.release.pricing.limit_bias import Contributions, GroupValues, bias_share, contributions, expected_values
from discreet.release.pricing.limit_change import (
    Bounds,
    LimitChange,
    bounded,
    bounds_text,
    edited,
    has_bounds,
    scaled_bounds,
    widened,
)
from discreet.release.pricing.priced_release import PricedRelease
from discreet.release.pricing.public_sample import sample_rows
from discreet.release.pricing.quotes import quotes_of
from discreet.release.pricing.release_price import price
from discreet.schema.columns import Declared

__all__ = ["LimitGrid", "LimitRow", "tune"]

Counted: TypeAlias = tuple[PricedQuery, Contributions]  # what is asked, and what it counts of each unit

_STEPS = (1, 2, 3, 5, 10, 20)
_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2))
_ADDED = (Statistic.SUM, Statistic.MEAN)
_SECONDS = 600.0
_ONE = Fraction(1)  # An amount that draws what a table asks; nothing is spent.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRow:
    """One limit, and the error of one column of one table under it. Shares are parts of what is expected."""

    published: str  # the name in [[publish]]
    table: str
    column: str
    of: Literal["contributions", "bounds"]  # which of the grids of its table it is in
    limit: str  # as the plan would say it
    noise: Fraction | None  # the ± at 95 %, as in the price list; None where such a plan is refused
    noise_share: float | None
    bias_share: float | None  # what the limit leaves out of these rows
    current: bool  # whether the plan says so now
    least: bool = False  # whether its total is the least in its grid

    @property
    def total_share(self) -> float | None:
        """Noise and bias together."""
        parts = self.noise_share, self.bias_share
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LimitGrid:
    """Limits beside the error that each would bring. Nothing of it comes from private rows."""

    plan: str
    period: str
    rows: str  # "made-up" or "public"
    grid: tuple[LimitRow, ...]
    proposals: Mapping[str, str]  # by name in [[publish]]: the limits whose worst column errs least
    left_out: tuple[str, ...]  # columns without figures, and why

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures are, and what they are not."""
        whose = {
            "made-up": "rows that were made up from what the plan declares, about three for each unit",
            "public": "the rows that you said are public",
        }[self.rows]
        return (
            f"Bias is that of {whose}. It is not that of your data: your units may have more rows, or fewer.",
            "Noise is that of the price list with the plan edited to the limit, as a part of what is expected, or "
            "where nothing is expected of the average group of these rows.",
            "Nothing private was read, and nothing was charged.",
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything that people read as one JSON object."""
        return {
            "plan": self.plan,
            "period": self.period,
            "rows": self.rows,
            "grid": [_as_document(row) for row in self.grid],
            "proposals": dict(self.proposals),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"Limits of {self.plan} ({self.period}), on {self.rows} rows"]
        for row in self.grid:
            marks = f"{'  now' if row.current else ''}{'  least' if row.least else ''}"
            told = " + ".join(map(percents, (row.noise_share, row.bias_share)))
            lines.append(f"{row.table} {row.column}, {row.limit}: {told} = {percents(row.total_share)}{marks}")
        lines += [f"{name}: of these, {limit} errs least on {self.rows} rows" for name, limit in self.proposals.items()]
        return "\n".join([*lines, *self.left_out, *self.notes])

    def __repr__(self) -> str:
        least = enumerated([f"{name}: {limit}" for name, limit in self.proposals.items()])
        return f"LimitGrid({self.plan!r}, on {self.rows} rows: {len(self.grid)} figures; least of {least})"


def percents(share: float | None) -> str:
    """Write a share, rounded up; a dash where there is none."""
    return "–" if share is None else f"{significant_up(100 * share, 3)} %"


def _as_document(row: LimitRow) -> dict[str, Any]:
    return {
        "published": row.published,
        "table": row.table,
        "column": row.column,
        "of": row.of,
        "limit": row.limit,
        "noise": None if row.noise is None else float(row.noise),
        "noise_share": row.noise_share,
        "bias_share": row.bias_share,
        "total_share": row.total_share,
        "current": row.current,
        "least": row.least,
    }


@working("comparing limits", terminal=False)
def tune(
    plan: ReleasePlan,
    period: Period | None = None,
    *,
    public: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> LimitGrid:
    """Compare contribution limits and value bounds by the error that each would bring, without private rows.

    Each table has a grid of its limits, other limits staying what they are: `max_rows` of a family, `max_groups` and
    `max_rows_per_group` of a table by itself, and the bounds of the columns that it adds up or averages.

    Utility     Noise is the ± of the price list once the plan is edited to that limit, exactly. Bias is what the limit
                leaves out on average over the choice of rows, of rows that are made up or public: it says nothing of
                the private ones, where it may be larger or smaller. The spread by the choice itself is not in it.

    Args:
        plan: The plan, as `read_release_plan` returns it.
        period: The period of the release; the first of the plan if not said.
        public: Rows in place of every private table, by its name, that are public as whoever calls this knows: tables,
            or paths of files. Made-up rows if left out.
        tables: Public tables that name no source in the plan, by name.

    Returns:
        The grid, with the least error of each column marked and a proposal for each table or family.

    Raises:
        InvalidParameter: If something in the plan is wrong, a private table has no public rows here, or these lack a
            column.
        Refused: If two units are protected, one within the other, or what is called public is a private source.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> grid = dp.release.tune(plan)
        >>> grid.notes[-1]
        'Nothing private was read, and nothing was charged.'
        >>> [row.limit for row in grid.grid if row.current][0]
        'max_rows = 1'
    """
    if plan.policy.chain is not None:
        raise Refused(
            "limits are compared for one unit, and two are protected here, one within the other",
            way_out="write a plan with [unit] alone for the comparison, with the columns of the inner unit",
        )
    chosen = plan.schedule.period(0) if period is None else period
    price(plan, chosen, tables=tables)  # What is wrong with the plan as it is, is said before anything is compared.
    with sample_rows(plan, chosen, public, tables) as engine:
        search = _Search(plan, chosen, tables, engine, is_public=public is not None)
        grid = [row for name, members in _published(plan).items() for row in search.rows(name, members)]
    if not grid:
        raise InvalidParameter(
            f"there is nothing to compare: of the period {chosen.label} none of these rows counts, or nothing that is "
            "published is a count, a sum or a mean that a limit is for"
        )
    return LimitGrid(
        plan=plan.name,
        period=chosen.label,
        rows="made-up" if public is None else "public",
        grid=tuple(grid),
        proposals=_proposals(grid),
        left_out=tuple(search.left_out(grid)),
    )


def _published(plan: ReleasePlan) -> dict[str, list[TablePlan]]:
    """Return tables by the entry of [[publish]] that says their limits; a kept share has another's."""
    found: dict[str, list[TablePlan]] = {}
    for table in plan.tables:
        if table.kept_of is None:
            found.setdefault(table.family or table.name, []).append(table)
    return found


# --- the search ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Limits of a plan, tried one after the other on the same rows."""

    plan: ReleasePlan
    period: Period
    tables: Mapping[str, Any] | None
    engine: RowEngine
    is_public: bool = field(kw_only=True)

    def rows(self, published: str, members: Sequence[TablePlan]) -> Iterator[LimitRow]:
        """Yield the grids of one table, or of one family: contributions first, then bounds."""
        names = [table.name for table in members]
        declared = self._added_columns(names)
        exact = self._exact(names, declared)
        now = {name: (one, contributions(self.engine, one)) for name, one in self._asked(self.plan, names).items()}
        yield from _marked(self._figures(published, names, exact, self._contributions(members[0], now), now))
        yield from _marked(self._figures(published, names, exact, self._bounds(declared), None))

    def left_out(self, grid: Sequence[LimitRow]) -> Iterator[str]:
        """Say which columns have no figures, and why."""
        found = {(row.table, row.column) for row in grid}
        names = [table.name for table in self.plan.tables if table.kept_of is None]
        for name, asked in self._asked(self.plan, names).items():
            for output in asked.question.outputs:
                if (name, output.name) not in found and isinstance(output.value, ReleasedMeasure):
                    yield (
                        f"{name} {output.name} has no figures: counts, sums and means have them, means where expected "
                        "says how many rows a group has, and all where some of these rows count"
                    )

    def _asked(self, plan: ReleasePlan, names: Sequence[str]) -> dict[str, PricedQuery]:
        """Return what some tables ask; at which price does not matter."""
        quotes = quotes_of(plan, catalogue_of(plan, self.tables), self.period)
        return {quote.table.name: quote.at(_ONE) for quote in quotes if quote.table.name in names}

    def _exact(self, names: Sequence[str], declared: Bounds) -> dict[str, dict[str, GroupValues]]:
        """Return what the tables have if no limit and no bound leaves anything out."""
        widest = bounded(self.plan, {name: self._widest(name, said) for name, said in declared.items()})
        return {
            name: expected_values(asked.draft, contributions(self.engine, asked), limited=False)
            for name, asked in self._asked(widest, names).items()
        }

    def _widest(self, column: str, said: Declared) -> Declared:
        """Return bounds that hold all values that are here."""
        if not self.is_public:  # Made-up values lie within the declared ones.
            return said
        low, high = said.facts.low or Fraction(0), said.facts.high or Fraction(0)
        for name, table in self.plan.policy.tables.items():
            if not table.public and column in table.columns:
                values = self.engine.rows(name, [column], [column], deadline=Deadline.after(_SECONDS)).column(0)
                there = [Fraction(value) for value in values.to_pylist() if _is_finite(value)]
                low, high = min([low, *there]), max([high, *there])
        return widened(said, low, high)

    def _added_columns(self, names: Sequence[str]) -> dict[str, Declared]:
        """Find the columns with bounds that the tables add up or average."""
        found: dict[str, Declared] = {}
        declared = {
            column: said
            for table in self.plan.policy.tables.values()
            if not table.public
            for column, said in table.columns.items()
            if has_bounds(said)
        }
        for asked in self._asked(self.plan, names).values():
            called = column_names(asked.question.source)
            for argument in _arguments(asked.question):
                columns = [called[one.name] for one in walk(argument) if isinstance(one, Field) and one.name in called]
                found |= {column: declared[column] for column in columns if column in declared}
        return found

    def _contributions(self, table: TablePlan, now: Mapping[str, Counted]) -> Iterator[LimitChange]:
        unit, limits = self.plan.policy.unit, table.limits
        if unit.is_row:
            return
        each = limits.max_rows_per_group or unit.max_rows_per_group
        if limits.family is not None:
            most = limits.rows_in_family(unit) or 1
            for rows in self._steps(most, max(one.most_in_all for _, one in now.values())):
                yield LimitChange(limit=f"max_rows = {rows}", max_rows=rows, current=rows == most)
            return
        said = limits.max_groups or unit.max_groups
        for groups in self._steps(said, max(one.most_groups for _, one in now.values())):
            for rows in self._steps(each, max(one.most_rows for _, one in now.values())):
                yield LimitChange(
                    limit=f"max_groups = {groups}, max_rows_per_group = {rows}",
                    max_groups=groups,
                    max_rows_per_group=rows,
                    current=(groups, rows) == (said, each),
                )

    def _steps(self, now: int, needed: int) -> list[int]:
        """Return limits worth trying: up to the first that leaves nothing out, and the one that holds now."""
        most = self.plan.policy.unit.rows_at_most
        enough = min((step for step in _STEPS if step >= needed), default=_STEPS[-1])
        found = {step for step in _STEPS if step <= enough and (most is None or step <= most)}
        return sorted(found | {now})

    def _bounds(self, declared: Bounds) -> Iterator[LimitChange]:
        for factor in _FACTORS if declared else ():
            bounds = {name: scaled_bounds(said, factor) for name, said in declared.items()}
            if factor == 1 or bounds != dict(declared):  # Bounds of whole numbers may have no half.
                yield LimitChange(limit=bounds_text(bounds), bounds=bounds, current=factor == 1)

    def _figures(
        self,
        published: str,
        names: Sequence[str],
        exact: Mapping[str, Mapping[str, GroupValues]],
        changes: Iterator[LimitChange],
        now: Mapping[str, Counted] | None,
    ) -> list[LimitRow]:
        """Return the figures of every change; contributions are added up anew where it changes what is added up."""
        found = []
        for change in changes:
            changed = edited(self.plan, published, change)
            priced = self._priced(changed)
            tables = self._asked(changed, names) if priced is None else {one.name: one.priced for one in priced.tables}
            for name in names:
                asked = tables[name]
                pairs = now[name][1] if now and _same(now[name][0], asked) else contributions(self.engine, asked)
                values = expected_values(asked.draft, pairs, limited=True)
                found += [
                    _row(published, name, column, change, priced, bias_share(value, exact[name][column]), exact[name])
                    for column, value in values.items()
                    if now is not None or _is_added(asked.question, column)
                ]
        return found

    def _priced(self, plan: ReleasePlan) -> PricedRelease | None:
        """Price an edited plan; None if one release cannot pay for it."""
        try:
            return price(plan, self.period, tables=self.tables)
        except (InvalidParameter, Refused):
            return None


def _same(one: PricedQuery, other: PricedQuery) -> bool:
    """Whether two add up the same numbers: with several rows of a unit these and units are two."""
    return (one.draft.numbers, one.draft.columns) == (other.draft.numbers, other.draft.columns)


def _row(
    published: str,
    name: str,
    column: str,
    change: LimitChange,
    priced: PricedRelease | None,
    bias: float | None,
    exact: Mapping[str, GroupValues],
) -> LimitRow:
    noise = None if priced is None else priced.table(name).errors.get(column)
    relative = None if priced is None else priced.table(name).relative_errors.get(column)
    sizes = [abs(value) for value in exact[column].values()]
    typical = sum(sizes) / len(sizes) if sizes else 0.0
    if relative is None and noise is not None and typical:
        relative = noise / Fraction(typical)
    return LimitRow(
        published=published,
        table=name,
        column=column,
        of="bounds" if change.bounds else "contributions",
        limit=change.limit,
        noise=noise,
        noise_share=None if relative is None else float(relative),
        bias_share=bias,
        current=change.current,
    )


def _marked(rows: Sequence[LimitRow]) -> Iterator[LimitRow]:
    """Mark the least total of every column of a grid: the first of equal ones. What has no ± at all is left out."""
    columns: dict[tuple[str, str], list[LimitRow]] = {}
    for row in rows:
        columns.setdefault((row.table, row.column), []).append(row)
    for grid in columns.values():
        totals = [row.total_share for row in grid]
        known = [total for total in totals if total is not None]
        least = totals.index(min(known)) if known else None
        yield from (replace(row, least=place == least) for place, row in enumerate(grid) if least is not None)


def _proposals(grid: Sequence[LimitRow]) -> dict[str, str]:
    """Return of each entry of [[publish]] the limit of contributions, and the bounds, whose worst total is least."""
    worst: dict[tuple[str, str], dict[str, float]] = {}
    for row in grid:
        each = worst.setdefault((row.published, row.of), {})
        total = float("inf") if row.total_share is None else row.total_share
        each[row.limit] = max(each.get(row.limit, 0.0), total)
    found: dict[str, list[str]] = {}
    for (published, _), limits in worst.items():
        found.setdefault(published, []).append(min(limits, key=lambda limit: limits[limit]))
    return {published: "; ".join(limits) for published, limits in found.items()}


def _arguments(question: Query) -> Iterator[Expression]:
    for measure in question.measures:
        if measure.statistic in _ADDED and measure.argument is not None:
            yield measure.argument


def _is_added(question: Query, column: str) -> bool:
    """Whether bounds of values matter to a column."""
    value = next(one.value for one in question.outputs if one.name == column)
    return isinstance(value, ReleasedMeasure) and question.measures[value.measure].statistic in _ADDED


def _is_finite(value: Any) -> bool:
    return value is not None and value == value and abs(value) != float("inf")
