"""The price list of a release, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.mechanisms.text import significant_up
from discreet.release.period import Every
from discreet.release.pricing.advice import advice
from discreet.release.pricing.priced_release import PricedRelease, PricedTable
from discreet.release.pricing.quotes import is_gaussian
from discreet.release.running.pricing import PricedRunning

__all__ = ["as_document", "as_text"]

_HEADINGS = ("table", "rows", "price", "ε alone", "± at 95 %", "of what is expected")
_FORMAT = "discreet-price-list-1"


def as_text(release: PricedRelease) -> str:
    """Write the price list."""
    lines = [f"{release.plan.title} ({release.period.label})", *_totals(release), ""]
    lines += _aligned([_HEADINGS, *(_row(table, release.delta) for table in release.tables)])
    hidden = (f"{table.name}: {table.threshold}" for table in release.tables if table.threshold)
    lines += _section("Groups that nobody listed", hidden)
    lines += _section("Totals so far, each paid for once, for all its days", map(_series, release.running))
    return "\n".join([*lines, *_section("What to change", advice(release))])


def _section(title: str, told: Iterable[str]) -> list[str]:
    found = [f"· {line}" for line in told]
    return ["", title, *found] if found else []


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
    yield f"One release costs ε = {significant_up(Fraction(release.epsilon))}{at}{amount}."
    held = f"{release.lifetime:,} such release{'' if release.lifetime == 1 else 's'}"
    beside = " beside its totals so far" if release.running else ""
    budget = release.plan.policy.budget.describe()
    yield f"The lifetime budget, {budget}, holds {held}{beside}{_until(release)}."


def _until(release: PricedRelease) -> str:
    if release.plan.schedule.every is Every.ONCE or not 0 < release.lifetime <= 1000:
        return ""
    return f": the last is {release.plan.schedule.period(release.lifetime - 1).label}"


def _row(table: PricedTable, delta: Fraction) -> tuple[str, ...]:
    rows = "unknown" if table.groups is None else f"{table.groups:,}"
    alone = significant_up(Fraction(table.epsilon(delta)), 3)
    return (table.name, rows, table.priced.cost, alone, _errors(table), _relative(table.relative_errors))


def _errors(table: PricedTable) -> str:
    return ", ".join(f"{name} ± {significant_up(error, 3)}" for name, error in table.errors.items()) or "–"


def _relative(errors: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} {significant_up(100 * error, 3)} %" for name, error in errors.items()) or "–"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "─" * max(map(len, lines)), *lines[1:]]
