"""What to change in a plan to get more for the same price, or the same for less."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.mechanisms.text import significant_up
from discreet.privacy import epsilon
from discreet.privacy.events import Event, Gaussian
from discreet.privacy.relation import Relation
from discreet.query.session.catalogue_building import nearest
from discreet.release.plan import Wish
from discreet.release.pricing.priced_release import PricedRelease, PricedTable

__all__ = ["advice", "to_reach"]

_HELD = Fraction(51, 100)  # Of an even part: whoever has no more is held at the floor, but for rounding.


def advice(release: PricedRelease) -> Iterator[str]:
    """Say what decides the error, and what would make it smaller."""
    yield from _worst(release)
    yield from _greedy(release)
    yield from _undeclared(release)
    yield from _several(release)
    yield from _hidden(release)


def to_reach(release: PricedRelease, table: str, error: Fraction) -> str:
    """Say what a table would need so that none of its columns errs by more than this."""
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
    more = f" Twice as exact everywhere would cost ε = {significant_up(Fraction(twice), 3)}" if twice else ""
    yield f"the largest relative error is that of {column} in {table.name}: {significant_up(100 * error, 3)} %.{more}"


def _greedy(release: PricedRelease) -> Iterator[str]:
    """Name the table that would take most of all if the others were not held at half of an even part."""
    free = [table for table in release.tables if table.plan.wish == Wish()]
    split = sum((table.amount for table in free), Fraction(0))
    if release.plan.allowance.split != "accuracy" or len(free) < 2 or not split:
        return
    least, greedy = min(table.amount for table in free), max(free, key=lambda table: table.amount)
    if least * len(free) > _HELD * split:
        return
    column = max(greedy.relative_errors, key=lambda name: greedy.relative_errors[name], default="")
    yield (
        f"{greedy.name} takes {significant_up(100 * greedy.amount / split, 2)} % of what is split among {len(free)} "
        f"tables, for {column}, and would take more: every table keeps half of an even part. Narrow the bounds of what "
        'it adds up, publish it in fewer groups, or say its error or share; or write split = "even" in [release]'
    )


def _twice(release: PricedRelease) -> float | None:
    """Return the epsilon of the same release with half the noise, where that is one law."""
    event = _doubled(release.event)
    if event is None:
        return 2 * release.epsilon if not release.delta else None
    return epsilon(event, release.delta, relation=Relation.ADD_REMOVE)


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
        numbers = max(len(table.priced.draft.bundles) for table in tables)
        if numbers > 1:
            yield f"{name} pays for {numbers} numbers in every group, evenly: with fewer each errs less"


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
