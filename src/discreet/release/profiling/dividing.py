"""How the budget is divided, by a rule that everybody may know.

Every column gets one part, and how many people there are gets one part. Of the part of a column whose bounds are not
declared a sixth is spent on a ladder, a sixth on narrowing it, and two thirds on counting; where values are searched
for, a third on them. A fifth of delta is divided evenly among the columns whose values are searched for: what a ledger
keeps for events with a delta of their own. Noise is Laplace's or Gaussian, whichever makes the smaller ±.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.ledger import Account, Budget, Ledger
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy import epsilon as tight_epsilon
from discreet.privacy.events import ApproxDP, Composed, Event, Gaussian, PureDP, Repeated
from discreet.privacy.relation import Relation
from discreet.query import Unit
from discreet.release.profiling.subjects import ColumnSearch, ProfiledColumn

__all__ = ["ROUNDS", "Division", "divide", "share_of"]

ROUNDS = ("find", "narrow", "count")
_SHARES = {
    ColumnSearch.NOTHING: {"count": Fraction(1)},
    ColumnSearch.NUMBERS: {"find": Fraction(1, 6), "narrow": Fraction(1, 6), "count": Fraction(2, 3)},
    ColumnSearch.TIMES: {"find": Fraction(1, 6), "narrow": Fraction(1, 6), "count": Fraction(2, 3)},
    ColumnSearch.VALUES: {"find": Fraction(1, 3), "count": Fraction(2, 3)},
}
_LAPLACE_95, _NORMAL_95 = math.log(20), 1.96  # half widths at 95 %, in scales and in standard deviations
_STEPS = 40  # of a bisection
_SEARCHING = Fraction(1, 5)  # of delta: the share for events in the default split of a budget
_SPARE = Fraction(999_999, 1_000_000)  # so that what is rounded up, charge by charge, still fits


def share_of(subject: ProfiledColumn, at: str) -> Fraction | None:
    """Return which share of its part a column spends in a round; None if it takes no part in it."""
    return _SHARES[subject.search].get(at)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """What each part spends: an epsilon with Laplace noise, or a rho with Gaussian noise."""

    part: Fraction  # epsilon or rho
    gaussian: bool
    parts: int
    delta: Fraction | None  # of all; None for pure epsilon
    searched: int  # columns whose values are searched for
    unit: Unit

    @property
    def delta_each(self) -> Fraction | None:
        """What each search for values takes of delta."""
        return None if self.delta is None or not self.searched else self.delta * _SEARCHING / self.searched

    def law(self, share: Fraction, cells: int) -> RoundedGaussianLaw | DiscreteLaplaceLaw:
        """Return the noise of a count: a unit is in at most L cells, with at most M rows in each."""
        groups, rows = min(self.unit.max_groups, cells), self.unit.max_rows_per_group
        if self.gaussian:
            return RoundedGaussianLaw(groups * rows**2 / (2 * self.part * share))
        return DiscreteLaplaceLaw(groups * rows / (self.part * share))

    @property
    def law_of_units(self) -> RoundedGaussianLaw | DiscreteLaplaceLaw:
        """Return the noise of the number of units: one changes it by one."""
        if self.gaussian:
            return RoundedGaussianLaw(1 / (2 * self.part))
        return DiscreteLaplaceLaw(1 / self.part)

    def spent_on(self, shares: Fraction, searches: int) -> Event:
        """Return what some shares of parts and some searches for values spend together."""
        total = self.part * shares
        noise: Event = Gaussian(variance=1, squared_sensitivity=2 * total) if self.gaussian else PureDP(total)
        if self.delta_each is None or not searches:
            return noise
        return Composed((noise, _searches(self.delta_each, searches)))

    @property
    def event(self) -> Event:
        """What all rounds together spend."""
        return self.spent_on(Fraction(self.parts), self.searched)

    @property
    def epsilon(self) -> float:
        """What all rounds together spend at delta, rounded up; it is less than was allowed with Gaussian noise."""
        return tight_epsilon(self.event, self.delta or 0, relation=Relation.ADD_REMOVE)


def divide(subjects: tuple[ProfiledColumn, ...], *, epsilon: Fraction, delta: Fraction | None, unit: Unit) -> Division:
    """Divide what may be spent."""
    parts, searched = len(subjects) + 1, sum(subject.search is ColumnSearch.VALUES for subject in subjects)

    def divided(total: Fraction, *, gaussian: bool) -> Division:
        return Division(part=total / parts, gaussian=gaussian, parts=parts, delta=delta, searched=searched, unit=unit)

    plain = divided(epsilon, gaussian=False)
    if delta is None:
        return plain
    normal = divided(_largest_rho(epsilon, delta, searched), gaussian=True)
    return min(plain, normal, key=_half_width)


def _half_width(division: Division) -> float:
    """Return about the ± of a count, to compare two ways of noise."""
    groups = division.unit.max_groups
    if division.gaussian:
        return _NORMAL_95 * math.sqrt(groups / (2 * division.part))
    return _LAPLACE_95 * groups / float(division.part)


def _largest_rho(epsilon: Fraction, delta: Fraction, searched: int) -> Fraction:
    """Find how much Gaussian noise a new ledger with exactly this budget would take, by bisection.

    A profile is priced as the ledger of its data set prices it, so that one for (epsilon, delta) always fits a budget
    of (epsilon, delta).
    """
    account = Account("profile", "row", Relation.ADD_REMOVE, Budget(epsilon, delta))
    hidden = [_searches(delta * _SEARCHING / searched, searched)] if searched else []
    with Ledger.open("memory", account) as ledger:
        low, high = Fraction(0), epsilon
        for _ in range(_STEPS):
            middle = (low + high) / 2
            fits = ledger.affords(
                Composed((Gaussian(variance=1, squared_sensitivity=2 * middle), *hidden)), at_once=False
            )
            low, high = (middle, high) if fits else (low, middle)
    return (low * _SPARE).limit_denominator(10**12)


def _searches(delta: Fraction, times: int) -> Event:
    event = ApproxDP(0, delta)
    return event if times == 1 else Repeated(event, times)
