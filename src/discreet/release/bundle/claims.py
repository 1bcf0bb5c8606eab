"""What a release promises, in numbers: for the guarantee, the report, the registry and the manifest alike.

All of it follows from the plan and the event. Bounds on what an attacker learns are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

from discreet.exact import up
from discreet.formatting import significant_up
from discreet.ledger import Budget
from discreet.ledger.accounts import declare, windows_words
from discreet.ledger.budget import Sums
from discreet.ledger.charge_record import ROW_OR_NONE
from discreet.ledger.filters import held
from discreet.ledger.restoration import whole
from discreet.ledger.spending import Left
from discreet.privacy import Relation, delta, epsilon
from discreet.privacy.curves import deltas
from discreet.privacy.events import (
    ApproxDP,
    Composed,
    Event,
    Grouped,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomlyStopped,
    Repeated,
    event_name,
)
from discreet.privacy.guarantee import curve
from discreet.release.plan import SeenFact
from discreet.release.published import Published

__all__ = ["StatedGuarantee", "best_guess", "best_tests", "claim_of", "e_to", "mechanisms_of"]

_NOISES = {
    "PureDP": "noise that is known to be ε-private",
    "ApproxDP": "hidden groups: shown only above a noisy threshold",
    "ZCDP": "noise that is known to be ρ-private",
    "GDP": "Gaussian noise",
    "Laplace": "Laplace noise",
    "DiscreteLaplace": "discrete Laplace noise",
    "Gaussian": "Gaussian noise, exactly rounded to a grid",
    "DiscreteGaussian": "discrete Gaussian noise",
    "BoundedRange": "exponential mechanism",
    "RandomizedResponse": "randomized response",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedGuarantee:
    """The numbers of a guarantee."""

    unit: str  # the column, or "row"
    noun: str  # what one unit is called
    shared: str  # what all rows of a unit have in common; nothing for rows
    window: str | None  # the stretch of time that is protected, if it is not all time
    known: str  # under replace-one, how many units there are, in words; nothing under add-remove
    event: Event  # everything in the bundle that protects this unit: the release, and series that were paid for before
    epsilon: float  # of that event
    delta: Fraction
    factor: Fraction | None  # e^epsilon, rounded up; None if it is beyond any sense
    guess: float  # how often the best attacker is right who starts at one half
    pair_guess: float  # the same from ε and δ alone, whatever noise has them
    budget: Budget  # for the lifetime of the data set
    windows: str  # what quotas per window promise, where there is no lifetime budget
    lifetime_guess: float | None  # the same after everything the budget allows
    times: int | None  # how many releases like this one the lifetime budget holds
    left: Left | None  # of the lifetime budget, after what is in the bundle was charged
    alone: tuple[tuple[str, float], ...]  # epsilon of each table by itself, at the same delta
    mechanisms: tuple[str, ...]
    from_data: tuple[SeenFact, ...]  # what was read from the data for the plan: no number here covers it
    apart: tuple[str, ...]  # series of the plan that protect each day of a unit by itself: no number here covers them
    within: NestedPromise | None = None  # what is promised to units within the first, if anything is

    @property
    def is_row(self) -> bool:
        return self.unit in ("row", ROW_OR_NONE)

    @property
    def protected(self) -> str:
        """Who is protected, in a few words: both units of a chain."""
        if self.is_row:
            return "Each row"
        inner = "" if self.within is None else f", and every {self.within.noun} in it"
        return f"Every {self.noun}{inner}"

    @property
    def is_exchanged(self) -> bool:
        """Whether neighbours exchange the rows of a unit: then what it says is hidden, not that it took part."""
        return bool(self.known)

    @property
    def secret(self) -> str:
        """What an attacker wants to find out, in a sentence."""
        if self.is_exchanged:
            said = "one certain row says" if self.is_row else f"the rows of one certain {self.noun} say"
            return f"which of two things {said}"
        return f"whether one certain {self.noun} is in the data"

    @property
    def is_composed(self) -> bool:
        """Whether a unit is made of several columns, or of a window."""
        return bool(self.shared) and self.shared != f"one value of the column “{self.unit}”"

    @property
    def epsilon_text(self) -> str:
        return significant_up(self.epsilon)

    @property
    def delta_text(self) -> str:
        return significant_up(self.delta)

    @property
    def factor_text(self) -> str:
        return "∞" if self.factor is None else significant_up(self.factor, 3)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NestedPromise:
    """What a release promises to each inner unit of a chain."""

    unit: str  # as the ledger has it
    noun: str
    shared: str
    most: int  # of them that are counted of one outer unit
    event: Event
    epsilon: float
    delta: Fraction
    guess: float
    budget: Budget

    @property
    def epsilon_text(self) -> str:
        return significant_up(self.epsilon)

    @property
    def delta_text(self) -> str:
        return significant_up(self.delta)


def _within(published: Published) -> NestedPromise | None:
    chain, budget = published.plan.policy.chain, published.plan.policy.inner_budget
    if chain is None or budget is None:
        return None
    (event,) = published.nested
    return NestedPromise(
        unit=chain.inner.account,
        noun=chain.inner.noun,
        shared=chain.inner.shared,
        most=chain.max_inner,
        event=event,
        epsilon=epsilon(event, published.delta, relation=published.relation),
        delta=published.delta,
        guess=best_guess(event, published.relation),
        budget=budget,
    )


def claim_of(published: Published) -> StatedGuarantee:
    """Work out what a release promises."""
    policy, relation = published.plan.policy, published.relation
    event, level = _together(published)
    return StatedGuarantee(
        unit=policy.unit.account,
        noun=policy.unit.noun,
        shared=policy.unit.shared if policy.unit.columns else "",
        window=policy.unit.window,
        known=policy.unit.known,
        event=event,
        epsilon=level,
        delta=published.delta,
        factor=_factor(level),
        guess=best_guess(event, relation),
        pair_guess=best_guess(_pair(level, published.delta), relation),
        budget=policy.budget,
        windows=windows_words(policy.quotas) if policy.budget.kind == "unlimited" else "",
        lifetime_guess=None if policy.budget.kind == "unlimited" else best_guess(whole(policy.budget), relation),
        times=_times(published),
        left=None if published.ledger is None else published.ledger.left,
        alone=tuple((name, epsilon(each, published.delta, relation=relation)) for name, each in _events(published)),
        mechanisms=mechanisms_of(event),
        from_data=published.plan.from_data,
        apart=tuple(running.name for running in published.plan.running if running.person_day),
        within=_within(published),
    )


def _pair(level: float, delta: Fraction) -> Event:
    if not math.isfinite(level):
        return ApproxDP(0, 1)
    return ApproxDP(Fraction(level), delta) if delta else PureDP(Fraction(level))


def _together(published: Published) -> tuple[Event, float]:
    """Return everything that tells about one unit: series with other units, such as one day, are told apart."""
    unit = published.plan.policy.unit.account
    series = [running.event for running in published.running if running.unit == unit]
    if not series:
        return published.event, published.epsilon
    event = Composed([published.event, *series])
    return event, epsilon(event, published.delta, relation=published.relation)


def _events(published: Published) -> list[tuple[str, Event]]:
    tables = [(table.plan.name, table.raw.event) for table in published.tables]
    return tables + [(running.plan.name, running.event) for running in published.running]


def best_guess(event: Event, relation: Relation) -> float:
    """Return how often anybody can be right who guesses whether one unit is in the data, at even odds before.

    Theorem     With both answers equally likely, the best test is right with probability (1 + TV) / 2, and the total
                variation distance of two neighbours is at most delta(0). [WZ10, KOV15]
    """
    return min(1.0, up((1 + Fraction(delta(event, 0, relation=relation))) / 2))


def mechanisms_of(event: Event) -> tuple[str, ...]:
    """Name the kinds of noise in an event, each once, in the order they come."""
    return tuple(dict.fromkeys(_NOISES.get(name, name) for name in _leaves(event)))


def _leaves(event: Event) -> list[str]:
    match event:
        case Composed() | Parallel() | RandomlyStopped():
            return [name for part in event.events for name in _leaves(part)]
        case Repeated() | Grouped() | PoissonSampled():
            return _leaves(event.event)
    return [event_name(event)]


def _factor(level: float) -> Fraction | None:
    return e_to(level) if level < 700 else None


def e_to(level: float) -> Fraction:
    """Return e^ε, rounded up."""
    # One step up covers the rounding of exp, which is right to within one unit in the last place.
    return Fraction(math.nextafter(math.exp(level), math.inf))


def _times(published: Published) -> int | None:
    """Count how many such releases an untouched budget holds, by the rule of the ledger."""
    policy = published.plan.policy
    if policy.budget.kind == "unlimited":
        return None
    book = declare(policy.account, ())
    priced = [(book.rule, published.event), *zip(book.nested, published.nested, strict=True)]
    return min(held(rule, Sums.nothing(rule.shares.kept), event, published.relation) for rule, event in priced)


# --- tests: Every test that an attacker can run, bounded. ---


_LEVELS, _RATES = 40, 60
_OUTWARDS = 1e-9  # Floats of a picture, moved to the attacker's side.


@lru_cache(maxsize=16)
def best_tests(event: Event, relation: Relation) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return rates of false alarms, and for each a bound on the share of units that any test finds.

    Theorem     found <= e^epsilon * alarms + delta, and 1 - found >= e^-epsilon (1 - delta - alarms), for every
                (epsilon, delta) that holds. [WZ10, KOV15]
    """
    known = curve(event, relation)
    reach = min(known.upper(Fraction(1, 1000)), 50.0)
    levels = [Fraction(reach * number / _LEVELS) for number in range(_LEVELS + 1)]
    pairs = [(math.exp(level), delta) for level, delta in zip(levels, deltas(known, levels), strict=True)]
    alarms = tuple(number / _RATES for number in range(_RATES + 1))
    return alarms, tuple(_found(rate, pairs) for rate in alarms)


def _found(rate: float, pairs: list[tuple[float, float]]) -> float:
    bounds = (min(factor * rate + delta, 1 - (1 - delta - rate) / factor) for factor, delta in pairs)
    return min(1.0, max(rate, min(bounds) + _OUTWARDS))
