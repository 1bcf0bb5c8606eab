"""A table of a plan, read and ready to be priced for any amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.text import significant_up
from discreet.query.catalogue import Catalogue
from discreet.query.planning import Priced, Spend
from discreet.query.planning import plan as plan_question
from discreet.query.planning.draft import Spread
from discreet.query.planning.targets import relative_errors_of
from discreet.query.reading import Reading, read
from discreet.release.period import Period
from discreet.release.places import located, place_of, told_at
from discreet.release.plan import Allowance, ReleasePlan, TablePlan
from discreet.release.reading.window import sql_in

__all__ = ["Quote", "is_gaussian", "quotes_of", "read_table"]

_ROWS = "*"
_WIDE = 10**6  # An amount divided by this makes noise so wide that rounding it to whole numbers is nothing.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One table: what it asks, and the delta that it needs for groups that nobody listed."""

    table: TablePlan
    sql: str  # within the window of the period
    reading: Reading
    catalogue: Catalogue
    pure: bool  # whether the lifetime budget takes no delta
    gaussian: bool  # whether what is split is rho
    delta: Fraction | None

    @property
    def hidden(self) -> bool:
        """Whether groups are found in the data."""
        return any(key.domain is None for key in self.reading.question.keys)

    def at(self, amount: Fraction) -> Priced:
        """Price the table for an amount of what is split: rho, or epsilon."""
        return self._priced({"rho" if self.gaussian else "epsilon": amount})

    def for_epsilon(self, epsilon: Fraction) -> Priced:
        """Price the table for an epsilon of its own, with Laplace noise."""
        return self._priced({"epsilon": epsilon})

    def reaching(self, error: Fraction, *, relative: bool) -> Priced:
        """Price the table for the least amount that reaches an error."""
        return self._priced({"error": error, "relative": relative, "concentrated": self.gaussian})

    def amount_of(self, priced: Priced) -> Fraction:
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

    def offer(self, priced: Priced) -> dict[str, Any]:
        """Return what `Session.sql` must be told to make the same price."""
        spend, table = priced.spend, self.table
        said = {"rho": spend.rho, "epsilon": spend.epsilon, "delta": self.delta}
        listed = {"expected": dict(table.expected), "keys": {name: list(keys) for name, keys in table.keys.items()}}
        return {name: value for name, value in (said | listed).items() if value}

    def _bends(self, amount: Fraction) -> bool:
        return any(isinstance(recipe, Spread) and recipe.root for recipe in self.at(amount).draft.recipes)

    def _priced(self, said: Mapping[str, Any]) -> Priced:
        expected = dict(self.table.expected)
        rows = expected.pop(_ROWS, None)
        spend = Spend(delta=self.delta, expected=None if rows is None else max(1, round(rows)), sizes=expected, **said)
        question, options = self.reading.question, self.reading.options
        return plan_question(question, self.catalogue, spend, limits=options, pure=self.pure)


def quotes_of(plan: ReleasePlan, catalogue: Catalogue, period: Period) -> tuple[Quote, ...]:
    """Read all tables, and give those that need one a delta: their own, or an even part of half the allowance's."""
    readings = [read_table(plan, table, catalogue, period) for table in plan.tables]
    hidden = [any(key.domain is None for key in reading.question.keys) for _, reading in readings]
    deltas = _deltas(plan, hidden)
    allowance = plan.allowance
    return tuple(
        Quote(
            table=table,
            sql=sql,
            reading=reading,
            catalogue=catalogue,
            pure=plan.policy.budget.kind == "pure",
            gaussian=is_gaussian(allowance),
            delta=delta,
        )
        for table, (sql, reading), delta in zip(plan.tables, readings, deltas, strict=True)
    )


def is_gaussian(allowance: Allowance) -> bool:
    """Whether rho is split, and noise Gaussian."""
    return allowance.rho is not None or allowance.delta is not None


def read_table(plan: ReleasePlan, table: TablePlan, catalogue: Catalogue, period: Period) -> tuple[str, Reading]:
    """Read the text as it was written, so that a refusal names its place there, and then that of the period."""
    keys = {name: list(values) for name, values in table.keys.items()}
    try:
        _check_clause(read(table.sql, catalogue, keys=keys))
        sql = sql_in(plan, table, period)
        return sql, read(sql, catalogue, keys=keys)
    except InvalidParameter as error:
        raise located(plan, place_of(plan, table.name, "sql", "keys", "measures"), error) from None
    except Refused as refused:
        raise located(plan, place_of(plan, table.name, "sql", _word(table, refused)), _helpful(refused)) from None


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


def _check_clause(reading: Reading) -> None:
    if reading.options.epsilon is not None or reading.options.delta is not None:
        raise InvalidParameter("the price of a table stands in the plan: leave epsilon and delta out of its SQL")


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
