"""Optimal partition selection: name the bins that are not empty as often as (epsilon, delta) allows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from discreet.adaptive.bounded_memberships import Memberships, Totals, bounded_totals, labels, selections, shown
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, integer, positive, positive_integer
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.parameters import read_confidence, settle, small_delta
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.lazy_bits import Coin
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["OptimalPartitionSelection", "partition_probability"]

_BITS = 256
_NO_INTERVAL = NoInterval(reason="keys have no confidence interval; ask a truncated histogram for counts")


def partition_probability(count: int, *, epsilon: Number, delta: Number) -> Fraction:
    """Return the largest chance with which (epsilon, delta) lets a bin of so many units be named, rounded down.

    Theorem     One unit may raise the chance p to e^epsilon p + delta, and lower the chance 1 - p of silence to
                e^-epsilon (1 - p - delta), not more; the largest sequence from 0 on takes the smaller of the two
                at each step. It is the best for units in one bin each, under add-remove. [DVGM22]

    Args:
        count: How many units are in the bin.
        epsilon: What the selection spends.
        delta: The delta that goes with it.

    Returns:
        The chance, rounded down.

    Examples:
        >>> dp.adaptive.partition_probability(1000, epsilon=1, delta=1e-6)
        Fraction(1, 1)
    """
    curve = _curve(positive(epsilon, name="epsilon"), small_delta(delta, public_rows=None))
    return curve.chance_down(_count(count))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalPartitionSelection:
    """Name the bins that units are in, each with the largest chance that its number of units allows.

    A unit is counted in at most `bins_per_unit` bins, taken at random if it is in more. Only keys are released.

    Guarantee   (epsilon, delta).
    Theorem     One unit touches c bins under add-remove and 2 c under replace-one, one step each; every bin has its
                part of epsilon and delta, and they add up. For c = 1 under add-remove no mechanism names a bin more
                often. [DVGM22, DKMMN06]
    Utility     `reliable_count(confidence)`: about ln(1 / delta) / epsilon units for an even chance.

    Args:
        epsilon: What a release spends.
        delta: The delta that goes with it.
        relation: The neighbouring relation.
        bins_per_unit: In how many bins a unit is counted at most (contribution bounding).

    Examples:
        >>> selection = dp.adaptive.OptimalPartitionSelection(epsilon=1, delta=1e-6, relation=dp.Relation.ADD_REMOVE)
        >>> selection.release(["flu"] * 1000).value
        ('flu',)
    """

    epsilon: Fraction
    delta: Fraction
    relation: Relation
    bins_per_unit: int = 1

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, public_rows=None),
            bins_per_unit=positive_integer(self.bins_per_unit, name="bins_per_unit"),
        )
        settle(self, relation=read_relation(self.relation))

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def release_probability(self, count: int) -> arb:
        """Enclose the chance of a bin to be named, at the working precision."""
        return self._curve.chance(_count(count))

    def reliable_count(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return the least count that is named with at least this probability. It is public."""
        return self._curve.least_count(confidence)

    def release(self, data: Data | Memberships, *, session: Payer | None = None) -> Release[tuple[Hashable, ...]]:
        """Name bins, in the order of their keys."""
        with paid(session, self, purpose="the keys of bins that are not declared"):
            totals = bounded_totals(data, bins_per_unit=self.bins_per_unit, contribution=1)
            named = tuple(shown(key) for key, heads in zip(totals, self._flips(totals), strict=True) if heads)
            return Release(
                value=named,
                event=self.event,
                relation=self.relation,
                accuracy=_NO_INTERVAL,
                labels=labels(named),
                delta=self.delta,
            )

    def distribution(self, data: Data | Memberships) -> Outcomes:
        chosen = selections(data, bins_per_unit=self.bins_per_unit, contribution=1)
        return outcomes.mixture((chance, self._named(totals)) for chance, totals in chosen)

    def _flips(self, totals: Totals) -> NDArray[np.int64]:
        """Flip an exact coin for every bin; those of one count share their coin."""
        counts = np.fromiter(totals.values(), np.int64, len(totals))
        heads = np.zeros(counts.size, np.int64)
        for count in np.unique(counts).tolist():
            here = counts == count
            heads[here] = self._curve.coin(count).array(int(here.sum()))
        return heads

    def _named(self, totals: Totals) -> Outcomes:
        chances = [(shown(key), self.release_probability(count)) for key, count in totals.items()]
        cells = [Outcomes({(key,): chance, (): 1 - chance}) for key, chance in chances]
        return outcomes.map(outcomes.product(*cells), lambda row: tuple(key for cell in row for key in cell))

    @property
    def _curve(self) -> _Curve:
        touched = self.bins_per_unit * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return _curve(self.epsilon / touched, self.delta / touched)


@final
@dataclass(frozen=True, slots=True)
class _Curve:
    """The chance by the number of units: it rises by the one bound, then its complement falls by the other.

    p_n = delta (e^(n epsilon) - 1) / (e^epsilon - 1) up to n = `rising`; from there, m steps on,
    1 - p = e^(-m epsilon) (1 - p_rising) - delta (1 - e^(-m epsilon)) / (e^epsilon - 1), while that is not negative.
    """

    epsilon: Fraction
    delta: Fraction
    rising: int
    last: int  # beyond it the chance is 1

    def chance(self, count: int) -> arb:
        """Enclose the chance at the working precision."""
        from flint import arb

        if count > self.last:
            return arb(1)
        if count <= 1:
            return ball(count * self.delta)
        if count <= self.rising:
            return _risen(count, self.epsilon, self.delta)
        faded = ball((self.rising - count) * self.epsilon)
        silence = 1 - _risen(self.rising, self.epsilon, self.delta)
        return 1 - faded.exp() * silence - ball(self.delta) * faded.expm1() / ball(self.epsilon).expm1()

    def chance_down(self, count: int) -> Fraction:
        """Return a number not above the chance, and no farther below it than 2^-200 of it."""
        with precision(_BITS + self.delta.denominator.bit_length()):
            return bounds(self.chance(count))[0]

    def coin(self, count: int) -> Coin:
        """Return a coin with exactly this chance of heads."""
        return Coin(lambda: self.chance(count))

    def least_count(self, confidence: Number) -> int:
        wanted = read_confidence(confidence)
        low, high = 0, self.last + 1  # The chance is 0 below, 1 above.
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance_down(middle) >= wanted else (middle, high)
        return high


@lru_cache(256)
def _curve(epsilon: Fraction, delta: Fraction) -> _Curve:
    # The rise ends at the first p above (1 - delta) / (e^epsilon + 1), where the two bounds cross. If one of the
    # logarithms below is a whole multiple of epsilon, as for delta = 1/2, both forms agree at that count.
    def crossing() -> arb:
        power, chance = ball(epsilon).exp(), ball(delta)
        return ((power + 2 * chance - 1) / ((power + 1) * chance)).log() / ball(epsilon)

    rising = 1 + _floor(crossing)

    def ending() -> arb:
        silence = 1 - _risen(rising, epsilon, delta)
        return (ball(epsilon).expm1() / ball(delta) * silence).log1p() / ball(epsilon)

    return _Curve(epsilon, delta, rising, rising + _floor(ending))


def _risen(count: int, epsilon: Fraction, delta: Fraction) -> arb:
    return ball(delta) * ball(count * epsilon).expm1() / ball(epsilon).expm1()


def _floor(real: Callable[[], arb]) -> int:
    """Return the floor of a real number; of one that no ball tells from a whole number, that number."""
    for bits in (_BITS, 16 * _BITS):
        with precision(bits):
            found = real()
            floor = found.floor().unique_fmpz()
        if floor is not None:
            return int(floor)
    return round(bounds(found)[0])


def _count(count: int) -> int:
    if integer(count, name="count") < 0:
        raise InvalidParameter("count must not be negative")
    return int(count)
