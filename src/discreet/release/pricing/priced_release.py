"""A priced release: what every table costs and how exact it will be, before anything is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.formatting import significant_up
from discreet.ledger.accounts import windows_words
from discreet.privacy import epsilon
from discreet.privacy.events import Event, Gaussian
from discreet.privacy.relation import Relation
from discreet.query.ast import ReleasedMeasure
from discreet.query.plan.choices import error_words
from discreet.query.plan.draft import Picked
from discreet.query.plan.planner import PricedQuery
from discreet.query.session.catalogue_builder import nearest
from discreet.release.cumulative.series_price import PricedRunning
from discreet.release.plan import Every, Period, ReleasePlan, TablePlan, Wish
from discreet.release.pricing.quotes import is_gaussian

__all__ = ["PricedRelease", "PricedTable", "advice", "as_document", "as_text", "to_reach"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PricedTable:
    """One table with its price. `offer` is what `Session.sql(sql, …)` must be told to make the same price."""

    plan: TablePlan
    sql: str  # within the window of the period
    priced: PricedQuery
    offer: Mapping[str, Any]
    errors: Mapping[str, Fraction]  # the ± of each column at 95 %, where it follows from public facts
    relative_errors: Mapping[str, Fraction]  # the same as a part of the expected value, where one is declared
    threshold: str  # which groups stay hidden, in words; empty if all are listed

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def amount(self) -> Fraction:
        """What it spends: rho, or epsilon if its noise is not paid by rho."""
        spend = self.priced.spend
        amount = spend.rho if spend.rho is not None else spend.epsilon
        assert amount is not None
        return amount

    @property
    def groups(self) -> int | None:
        """How many rows it has; None if data must tell."""
        return self.priced.draft.groups

    def epsilon(self, delta: Fraction) -> float:
        """Return the epsilon of this table by itself, rounded up; tables together cost less than the sum."""
        return epsilon(self.priced.alone, delta, relation=self.priced.relation)

    def __repr__(self) -> str:
        return f"PricedTable({self.name!r}: {self.priced.cost})"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PricedRelease:
    """All tables of one release with their prices, and what they cost together. Everything in it is public."""

    plan: ReleasePlan
    period: Period
    tables: tuple[PricedTable, ...]
    event: Event  # of the whole release, as it is charged
    epsilon: float  # of the whole release, at `delta`, rounded up
    delta: Fraction
    total: Fraction  # the sum of what is split: rho with Gaussian noise, epsilon with Laplace noise
    lifetime: (
        int | None
    )  # how many such releases the lifetime budget holds, beside its running series; None without one
    running: tuple[PricedRunning, ...] = ()  # series of totals so far, each charged once and by itself
    nested: tuple[Event, ...] = ()  # of the whole release, for the inner unit of a chain

    @property
    def relation(self) -> Relation:
        return self.plan.policy.unit.relation

    @property
    def worst(self) -> Fraction | None:
        """The largest relative error of any table that declares what it expects."""
        return max((error for table in self.tables for error in table.relative_errors.values()), default=None)

    def table(self, name: str) -> PricedTable:
        """Return a table by its name."""
        return next(table for table in self.tables if table.name == name)

    def to_json(self) -> str:
        """Write everything that people read as one JSON object."""
        return json.dumps(as_document(self), ensure_ascii=False)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return str(self)


# --- price_list: The price list of a release, for people and as JSON. ---


_HEADINGS = ("table", "rows", "price", "ε alone", "± at 95 %", "of what is expected")
_FORMAT = "discreet-price-list-1"
_NO_INTERVAL = "Quantiles and choices, which have no ± (quantile_intervals = true pays for one of a quantile)"


def as_text(release: PricedRelease) -> str:
    """Write the price list."""
    lines = [f"{release.plan.title} ({release.period.label})", *_totals(release), ""]
    lines += _aligned([_HEADINGS, *(_row(table, release.delta) for table in release.tables)])
    lines += _section("Noise that the tables of a family share", shared_noise(release))
    hidden = (f"{table.name}: {table.threshold}" for table in release.tables if table.threshold)
    lines += _section("Groups that nobody listed", hidden)
    lines += _section(_NO_INTERVAL, map(" ".join, _chosen(release, paid=False)))
    lines += _section(
        "Quantiles whose ± is found in the data, and paid for", map(" ".join, _chosen(release, paid=True))
    )
    lines += _section("Totals so far, each paid for once, for all its days", map(_series, release.running))
    return "\n".join([*lines, *_section("What to change", advice(release))])


def shared_noise(release: PricedRelease) -> list[str]:
    """Say of every family whose tables share their noise what it is best for, and what that gains."""
    from discreet.release.pricing.family_noise import shared_words

    return list(shared_words(release.plan, {table.name: table.priced for table in release.tables}))


def _section(title: str, told: Iterable[str]) -> list[str]:
    found = [f"· {line}" for line in told]
    return ["", title, *found] if found else []


def _chosen(release: PricedRelease, *, paid: bool) -> Iterator[tuple[str, str]]:
    """Say how far off each column is that is chosen from its values, with a ± that is paid for or without."""
    for table in release.tables:
        draft = table.priced.draft
        for output in draft.question.outputs:
            recipe = draft.recipes[output.value.measure] if isinstance(output.value, ReleasedMeasure) else None
            if isinstance(recipe, Picked) and bool(draft.choosers[recipe.pick].interval) is paid:
                yield f"{output.name} in {table.name}:", error_words(draft, recipe.pick)


def _series(series: PricedRunning) -> str:
    return f"{series.running.name}: {series.cost}; ± {significant_up(max(series.errors), 3)} at most"


def as_document(release: PricedRelease) -> dict[str, Any]:
    """Return what JSON writes: numbers rounded up for readers, and the exact ones as fractions in text."""
    return {
        "format": _FORMAT,
        "plan": release.plan.name,
        "title": release.plan.title,
        "period": release.period.label,
        "epsilon": release.epsilon,
        "delta": str(release.delta),
        "total": {"unit": "rho" if is_gaussian(release.plan.allowance) else "epsilon", "amount": str(release.total)},
        "releases_in_lifetime_budget": release.lifetime,
        "lifetime_budget": release.plan.policy.budget.describe(),
        "tables": [_table(table, release.delta) for table in release.tables],
        "running": [one.to_json() for one in release.running],
        "shared_noise": shared_noise(release),
        "advice": list(advice(release)),
    }


def _table(table: PricedTable, delta: Fraction) -> dict[str, Any]:
    spend = table.priced.spend
    return {
        "name": table.name,
        "title": table.plan.title,
        "rows": table.groups,
        "price": table.priced.cost,
        "rho": None if spend.rho is None else str(spend.rho),
        "epsilon": None if spend.epsilon is None else str(spend.epsilon),
        "epsilon_alone": table.epsilon(delta),
        "delta": None if table.priced.draft.groups is not None or spend.delta is None else str(spend.delta),
        "errors": {name: float(error) for name, error in table.errors.items()},
        "relative_errors": {name: float(error) for name, error in table.relative_errors.items()},
        "expected": {name: float(size) for name, size in table.plan.expected.items()},
        "threshold": table.threshold or None,
    }


def _totals(release: PricedRelease) -> Iterator[str]:
    at = f" at δ = {significant_up(release.delta)}" if release.delta else ", pure"
    amount = (
        f" (ρ = {significant_up(release.total)}, Gaussian noise)"
        if is_gaussian(release.plan.allowance)
        else " (Laplace noise)"
    )
    policy = release.plan.policy
    whom = "" if policy.chain is None else f" for one {policy.chain.outer.noun}"
    yield f"One release costs ε = {significant_up(release.epsilon)}{at}{amount}{whom}."
    for event, (_, budget) in zip(release.nested, policy.account.nested, strict=True):
        level, noun = epsilon(event, release.delta, relation=release.relation), policy.counted.noun
        yield f"For one {noun} it costs ε = {significant_up(level)}{at}, of a budget of its own: {budget.describe()}."
    if release.lifetime is None:
        yield f"{windows_words(policy.quotas)}. There is no lifetime budget."
        return
    held = f"{release.lifetime:,} such release{'' if release.lifetime == 1 else 's'}"
    beside = " beside its totals so far" if release.running else ""
    yield f"The lifetime budget, {policy.budget.describe()}, holds {held}{beside}{_until(release, release.lifetime)}."


def _until(release: PricedRelease, held: int) -> str:
    if release.plan.schedule.every is Every.ONCE or not 0 < held <= 1000:
        return ""
    return f": the last is {release.plan.schedule.period(held - 1).label}"


def _row(table: PricedTable, delta: Fraction) -> tuple[str, ...]:
    rows = "unknown" if table.groups is None else f"{table.groups:,}"
    alone = significant_up(table.epsilon(delta), 3)
    return (table.name, rows, table.priced.cost, alone, _errors(table), _relative(table.relative_errors))


def _errors(table: PricedTable) -> str:
    return ", ".join(f"{name} ± {significant_up(error, 3)}" for name, error in table.errors.items()) or "–"


def _relative(errors: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} {significant_up(100 * error, 3)} %" for name, error in errors.items()) or "–"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "─" * max(map(len, lines)), *lines[1:]]


# --- advice: What to change in a plan to get more for the same price, or the same for less. ---


_MORE = Fraction(5, 4)  # Of an even part: whoever takes no more is not greedy.
_HELD = Fraction(51, 100)  # Of an even part: whoever has no more is held at the floor, but for rounding.


def advice(release: PricedRelease) -> Iterator[str]:
    """Say what decides the error, and what would make it smaller."""
    yield from _largest(release)
    yield from _worst(release)
    yield from _undeclared(release)
    yield from _several(release)
    yield from _hidden(release)


def to_reach(release: PricedRelease, table: str, error: Fraction) -> str:
    """Say what a table would need so that none of its columns errs by more than this.

    Args:
        release: A price, as `price` returns it.
        table: The name of one of its tables.
        error: The ± that is wanted, in units of its columns.

    Returns:
        A sentence.

    Raises:
        InvalidParameter: If there is no such table, or no ± of it follows from public facts.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> print(dp.release.to_reach(dp.release.price(plan), "patients", 50))
        patients: ± 50 is wanted, ± 41 is reached for patients: nothing needs to change
    """
    found = next((one for one in release.tables if one.name == table), None)
    if found is None:
        raise InvalidParameter(f"there is no table {table!r}. {nearest(table, [one.name for one in release.tables])}")
    if not found.errors:
        raise InvalidParameter(f"no column of {table!r} has a ± that follows from public facts")
    column, reached = max(found.errors.items(), key=lambda named: named[1])
    said = f"{table}: ± {significant_up(error)} is wanted, ± {significant_up(reached)} is reached for {column}"
    if reached <= error:
        return f"{said}: nothing needs to change"
    gaussian = found.priced.spend.rho is not None
    ratio = reached / error
    times = ratio**2 if gaussian else ratio
    return (
        f"{said}: it needs {'ρ' if gaussian else 'ε'} × {significant_up(times, 2)}; write error = "
        f"{significant_up(error)} for this table, let it have a larger share, publish fewer tables or fewer columns in "
        "it, or raise what a release may spend"
    )


def _worst(release: PricedRelease) -> Iterator[str]:
    named = [(error, table, column) for table in release.tables for column, error in table.relative_errors.items()]
    if not named:
        return
    error, table, column = max(named, key=lambda found: found[0])
    twice = _twice(release)
    more = f" Twice as exact everywhere would cost ε = {significant_up(twice, 3)}" if twice else ""
    yield f"the largest relative error is that of {column} in {table.name}: {significant_up(100 * error, 3)} %.{more}"


def _largest(release: PricedRelease) -> Iterator[str]:
    """Name what takes most of the price, what for, and how the others would get more of it."""
    published = _published(release)
    takes = {name: sum((_split(release, table) for table in tables), Fraction(0)) for name, tables in published.items()}
    name = max(takes, key=lambda name: takes[name], default="")
    if not name or takes[name] * len(takes) <= _MORE * release.total:
        return
    part = f"{name} takes {significant_up(100 * takes[name] / release.total, 2)} % of the price"
    free = [table for table in release.tables if table.plan.wish == Wish()]
    if any(table not in free for table in published[name]):
        yield f"{part}, as it says itself: a smaller share or price, or a larger error, leaves more for the others"
    elif release.plan.allowance.split == "accuracy" and len(free) > 1:
        yield from _needed(release, part, published[name], free)
    else:
        yield f"{part}, with {len(published[name])} of {len(release.tables)} tables: share = … gives it another part"


def _needed(
    release: PricedRelease, part: str, tables: Sequence[PricedTable], free: Sequence[PricedTable]
) -> Iterator[str]:
    """Say for which column the split gives so much, and what an even one would change."""
    errors = {column: error for table in tables for column, error in table.relative_errors.items()}
    column = max(errors, key=lambda name: errors[name], default="it")
    amounts = [_split(release, table) for table in free]
    even = sum(amounts, Fraction(0)) / len(free)
    held = min(amounts) <= _HELD * even
    yield f"{part}, for {column}{', and would take more: every table keeps half of an even part' if held else ''}"
    yield (
        "to leave more for the others, narrow the bounds of what it adds up, or publish it in fewer groups. "
        f'Or write split = "even" in [release]: each of {len(free)} tables then takes '
        f"{significant_up(100 * even / release.total, 2)} %, {column} errs {_change(release, max(amounts) / even)}, "
        f"and what takes least now {_change(release, min(amounts) / even)}"
    )


def _split(release: PricedRelease, table: PricedTable) -> Fraction:
    """Return how much of what is split a table takes: nothing, if it has an epsilon of its own beside a rho."""
    gaussian = is_gaussian(release.plan.allowance)
    return table.amount if gaussian == (table.priced.spend.rho is not None) else Fraction(0)


def _change(release: PricedRelease, less: Fraction) -> str:
    """Say by how much an error changes if so many times less is paid for it."""
    factor = float(less) ** 0.5 if is_gaussian(release.plan.allowance) else float(less)
    return f"{significant_up(factor, 2)} times as much"


def _twice(release: PricedRelease) -> float | None:
    """Return the epsilon of the same release with half the noise, where that is one law."""
    event = _doubled(release.event)
    if event is None:
        return 2 * release.epsilon if not release.delta else None
    return epsilon(event, release.delta, relation=release.relation)


def _doubled(event: Event) -> Event | None:
    return Gaussian(variance=1, squared_sensitivity=4 * event.mu_squared) if isinstance(event, Gaussian) else None


def _undeclared(release: PricedRelease) -> Iterator[str]:
    for name, tables in _published(release).items():
        left = {column: None for table in tables for column in table.errors if column not in table.relative_errors}
        if left and any(table.relative_errors for table in tables):
            yield (
                f"{name} says nothing of {', '.join(left)} in expected, so the split does not look at "
                f"{'it' if len(left) == 1 else 'them'}"
            )


def _several(release: PricedRelease) -> Iterator[str]:
    for name, tables in _published(release).items():
        numbers = max(min(len(table.priced.draft.bundles), _columns(table)) for table in tables)
        if numbers > 1:
            yield f"{name} pays for {numbers} numbers in every group, evenly: with fewer each errs less"


def _columns(table: PricedTable) -> int:
    """Count what is asked for: a mean is one number to its readers, of a sum and a count."""
    return sum(isinstance(output.value, ReleasedMeasure) for output in table.priced.draft.question.outputs)


def _published(release: PricedRelease) -> dict[str, list[PricedTable]]:
    """Return tables by what they are published under: those of a family are told of once."""
    found: dict[str, list[PricedTable]] = {}
    for table in release.tables:
        found.setdefault(table.plan.family or table.name, []).append(table)
    return found


def _hidden(release: PricedRelease) -> Iterator[str]:
    for table in release.tables:
        if table.threshold:
            keys = [key.name for key in table.priced.question.keys if key.domain is None]
            yield f"list the values of {', '.join(keys)} in keys for {table.name}: then no group is hidden, for less"
