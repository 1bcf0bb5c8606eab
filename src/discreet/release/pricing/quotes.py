"""A table of a plan, read and ready to be priced for any amount."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import significant_up
from discreet.query.ast import Field, Key, Query, column_names
from discreet.query.catalogue import Catalogue
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.parse.select import Reading, read
from discreet.query.plan.contribution_limits import bound_contributions
from discreet.query.plan.draft import PlanRequest, Spend, SpreadTerm
from discreet.query.plan.kept_share import can_cut, kept_question
from discreet.query.plan.planner import PricedQuery, relative_errors_of
from discreet.query.plan.planner import plan as plan_question
from discreet.release.levels_and_families import days_of, sql_in
from discreet.release.plan import Allowance, Period, ReleasePlan, TablePlan, located, place_of, told_at
from discreet.schema.columns import Kind

__all__ = ["Quote", "TableReading", "is_gaussian", "quotes_of", "read_table"]

# --- readings ---
# The question of a table in a period, read from public facts; what is refused names its place in the plan file.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableReading:
    """What a table asks in one period, and which values of its keys are listed beside those that are declared."""

    sql: str
    question: Query
    options: PrivacyOptions
    keys: Mapping[str, tuple[Hashable, ...]]

    @property
    def hidden(self) -> bool:
        """Whether groups are found in the data."""
        return any(key.domain is None for key in self.question.keys)


def read_table(plan: ReleasePlan, table: TablePlan, catalogue: Catalogue, period: Period) -> TableReading:
    """Read the text as it was written, so that a refusal names its place there, and then that of the period."""
    try:
        reading = _read(table.sql, catalogue, table.keys)
        _check_clause(reading)
        sql, keys = sql_in(plan, table, period), table.keys
        if sql != table.sql:
            keys = _listed(plan, table, period, _read(sql, catalogue, table.keys).question)
            reading = _read(sql, catalogue, keys)
        table.limits.check(catalogue.unit, catalogue.chain)
    except InvalidParameter as error:
        raise located(plan, place_of(plan, table.name, "sql", "keys", "measures"), error) from None
    except Refused as refused:
        raise located(plan, place_of(plan, table.name, "sql", _word(table, refused)), _helpful(refused)) from None
    options = reading.options.tightened(table.limits)
    if table.kept_of is None:
        return TableReading(sql=sql, question=reading.question, options=options, keys=keys)
    # What it asks is about units, one row each: no family has a choice of these.
    question = _kept(plan, table, catalogue, reading.question, options)
    return TableReading(sql=sql, question=question, options=replace(options, family=None), keys=keys)


def _kept(plan: ReleasePlan, table: TablePlan, catalogue: Catalogue, question: Query, options: PrivacyOptions) -> Query:
    """Ask what limits leave out of a question; the price decides nothing here."""
    limited = bound_contributions(
        PlanRequest(
            question=question, catalogue=catalogue, spend=Spend(epsilon=Fraction(1)), tighter=options, pure=True
        )
    )
    if not can_cut(limited):
        raise InvalidParameter(
            told_at(
                plan,
                place_of(plan, table.name),
                f"no limit can cut rows off {table.kept_of!r}: everything is counted, so leave kept_share out",
            )
        )
    return kept_question(limited)


def _read(sql: str, catalogue: Catalogue, keys: Mapping[str, tuple[Hashable, ...]]) -> Reading:
    return read(sql, catalogue, keys={name: list(values) for name, values in keys.items()})


def _listed(plan: ReleasePlan, table: TablePlan, period: Period, question: Query) -> Mapping[str, tuple[Hashable, ...]]:
    """Where days of the schedule are a key, those of the period are its values: there are no others in the window."""
    column, names = plan.schedule.column, column_names(question.source)
    if column is None or period.first is None:
        return table.keys
    days = {key.name: days_of(period) for key in question.keys if _is_day(key, column, names)}
    return days | dict(table.keys)


def _is_day(key: Key, column: str, names: Mapping[str, str]) -> bool:
    found = names.get(key.expression.name) if isinstance(key.expression, Field) else None
    return found is not None and found.casefold() == column.casefold() and key.expression.facts.kind is Kind.DATE


def _check_clause(reading: Reading) -> None:
    if reading.options.epsilon is not None or reading.options.delta is not None:
        raise InvalidParameter("the price of a table stands in the plan: leave epsilon and delta out of its SQL")


def _word(table: TablePlan, refused: Refused) -> str:
    """Tell what of a family is refused: which rows it counts, or what it measures."""
    before, _, after = table.sql.partition(" WHERE (")
    return "where" if after and (refused.column or 0) > len(before) else "measures"


def _helpful(refused: Refused) -> Refused:
    """Say that a plan names every column, also those of which nothing is known."""
    if "no column of this name" not in refused.problem:
        return refused
    near = f"{refused.way_out} " if refused.way_out.endswith("?") else ""
    return Refused(
        refused.problem,
        reason=refused.reason,
        way_out=f'{near}a plan declares every column that it names, such as note = {{ kind = "text" }}',
        line=refused.line,
        column=refused.column,
        excerpt=refused.excerpt,
        caret=refused.caret,
    )


_ROWS = "*"
_INTERVALS = ("quantile_intervals", "population")  # What a table says of its means and quantiles.
_WIDE = 10**6  # An amount divided by this makes noise so wide that rounding it to whole numbers is nothing.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One table: what it asks, and the delta that it needs for groups that nobody listed."""

    table: TablePlan
    reading: TableReading
    catalogue: Catalogue
    pure: bool  # whether the lifetime budget takes no delta
    gaussian: bool  # whether what is split is rho
    delta: Fraction | None

    def at(self, amount: Fraction) -> PricedQuery:
        """Price the table for an amount of what is split: rho, or epsilon."""
        return self._priced({"rho" if self.gaussian else "epsilon": amount})

    def for_epsilon(self, epsilon: Fraction) -> PricedQuery:
        """Price the table for an epsilon of its own, with Laplace noise."""
        return self._priced({"epsilon": epsilon})

    def reaching(self, error: Fraction, *, relative: bool) -> PricedQuery:
        """Price the table for the least amount that reaches an error."""
        return self._priced({"error": error, "relative": relative, "concentrated": self.gaussian})

    def amount_of(self, priced: PricedQuery) -> Fraction:
        """Return how much of what is split a price takes: none of rho, if it is an epsilon of its own."""
        return (priced.spend.rho if self.gaussian else priced.spend.epsilon) or Fraction(0)

    def worst(self, amount: Fraction) -> Fraction | None:
        """Return the largest relative error of any column with an expected value; None if no column has one."""
        return max(relative_errors_of(self.at(amount).draft).values(), default=None)

    def constant(self, amount: Fraction) -> Fraction | None:
        """Return k² for rho, or k for epsilon, where the worst relative error is k / √rho, or k / epsilon.

        Errors of counts, sums and means scale like this at all amounts, so it is found where noise is wide; that of a
        standard deviation does not, so it is found near the amount that matters.
        """
        tried = amount if self._bends(amount) else amount / _WIDE
        worst = self.worst(tried)
        if worst is None:
            return None
        return worst**2 * tried if self.gaussian else worst * tried

    def offer(self, priced: PricedQuery) -> dict[str, Any]:
        """Return what `Session.sql` must be told to make the same price, but for the choice of a family."""
        spend = priced.spend
        said = {"rho": spend.rho, "epsilon": spend.epsilon, "delta": self.delta}
        keys = {name: list(values) for name, values in self.reading.keys.items()}
        limits = {name: getattr(self.table.limits, name) for name in ("max_groups", "max_rows_per_group")}
        if self.table.kept_of is not None:
            said |= {"keys": keys} | limits
            return {name: value for name, value in said.items() if value}
        listed = {"expected": dict(self.table.expected), "keys": keys} | limits
        listed |= {name: getattr(self.table, name) for name in _INTERVALS}
        return {name: value for name, value in (said | listed).items() if value}

    def _bends(self, amount: Fraction) -> bool:
        return any(isinstance(recipe, SpreadTerm) and recipe.root for recipe in self.at(amount).draft.recipes)

    def _priced(self, said: Mapping[str, Any]) -> PricedQuery:
        expected = dict(self.table.expected)
        rows = expected.pop(_ROWS, None)
        typical = None if rows is None else max(1, round(rows))
        intervals = {name: getattr(self.table, name) for name in _INTERVALS}
        spend = Spend(delta=self.delta, expected=typical, sizes=expected, **intervals, **said)
        asked = self.reading
        return plan_question(asked.question, self.catalogue, spend, limits=asked.options, pure=self.pure)


def quotes_of(plan: ReleasePlan, catalogue: Catalogue, period: Period) -> tuple[Quote, ...]:
    """Read all tables, and give those that need one a delta: their own, or an even part of half the allowance's."""
    readings = [read_table(plan, table, catalogue, period) for table in plan.tables]
    deltas = _deltas(plan, [reading.hidden for reading in readings])
    allowance = plan.allowance
    return tuple(
        Quote(
            table=table,
            reading=reading,
            catalogue=catalogue,
            pure=any(budget.kind == "pure" for budget in plan.policy.account.budgets),
            gaussian=is_gaussian(allowance),
            delta=delta,
        )
        for table, reading, delta in zip(plan.tables, readings, deltas, strict=True)
    )


def is_gaussian(allowance: Allowance) -> bool:
    """Whether rho is split, and noise Gaussian."""
    return allowance.rho is not None or allowance.delta is not None


def _deltas(plan: ReleasePlan, hidden: list[bool]) -> list[Fraction | None]:
    """A table whose groups are all listed needs no delta."""
    shared = sum(needed and table.delta is None for table, needed in zip(plan.tables, hidden, strict=True))
    allowed = plan.allowance.delta
    even = None if allowed is None or not shared else allowed / (2 * shared)
    each = [(table.delta or even) if needed else None for table, needed in zip(plan.tables, hidden, strict=True)]
    total = sum((delta for delta in each if delta is not None), Fraction(0))
    if total and (allowed is None or total >= allowed):
        raise InvalidParameter(told_at(plan, ("release",), _too_much_delta(total, allowed)))
    return each


def _too_much_delta(total: Fraction, allowed: Fraction | None) -> str:
    said = "none is" if allowed is None else f"{significant_up(allowed)} is"
    return (
        f"tables whose groups nobody listed take δ = {significant_up(total)} together, and {said} allowed for all of a "
        "release: raise delta here, lower it there, or list the groups in keys"
    )
