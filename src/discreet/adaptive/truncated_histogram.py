"""Truncated histograms: noisy counts of bins that nobody declared, shown if they exceed a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

from discreet.adaptive.bounded_memberships import Identity, Memberships, bounded_totals, labels, selections, shown
from discreet.adaptive.stability import least_excess, reliable, share_of_chance
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer
from discreet.formatting import record
from discreet.frames.column import Data
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise, Sensitivity
from discreet.mechanisms.parameters import read_share, settle, small_delta
from discreet.mechanisms.release import EachCell, Interval, Release
from discreet.noise.laws import Law
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["SelectedAccuracy", "TruncatedHistogram"]

_LARGEST = 1 << 52  # What one unit may bring to a bin.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedHistogram:
    """Count every bin that somebody is in, with noise, and show those above a threshold, in the order of their keys.

    A unit is counted in at most `bins_per_unit` bins, taken at random if it is in more, and brings at most
    `contribution` to each. Nothing is said about the bins that are not shown.

    Guarantee   what the noise spends on the sensitivity, and delta more. With c bins of contribution w the l1
                sensitivity is c w and the squared l2 one c w^2; twice that under replace-one.
    Theorem     One unit opens at most c bins, with at most w in each. The threshold is the least whole number that
                such bins exceed, one or more of them, with probability delta at most: t = w + k for the smallest k
                with P[noise > k] <= 1 - (1 - delta)^(1 / c). All other bins are a noisy histogram. [KKMN09, Vad17]
    Utility     bins of `reliable_count(confidence)` are shown with that probability, whatever the number of bins
                that could be; for Laplace noise that is about w + (c w / epsilon) ln(c / (2 delta)), and more.

    Args:
        noise: The noise of each count; `laplace` and `gaussian` make it from epsilon and delta.
        delta: The chance that a bin is shown which is there because of one unit.
        relation: The neighbouring relation.
        bins_per_unit: In how many bins a unit is counted at most (contribution bounding).
        contribution: How much it brings to each at most.

    Raises:
        InvalidParameter: If the contribution is above 2^52.

    Examples:
        >>> mechanism = dp.adaptive.TruncatedHistogram.laplace(1, 1e-6, relation=dp.Relation.ADD_REMOVE)
        >>> "flu" in mechanism.release(["flu"] * 400 + ["measles"] * 3).labels
        True
    """

    noise: Noise
    delta: Fraction  # for showing a bin that is there because of one unit; the noise may have its own
    relation: Relation
    bins_per_unit: int = 1
    contribution: int = 1

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            delta=small_delta(self.delta, public_rows=None),
            bins_per_unit=positive_integer(self.bins_per_unit, name="bins_per_unit"),
            contribution=positive_integer(self.contribution, name="contribution"),
        )
        settle(self, relation=read_relation(self.relation))
        if self.contribution > _LARGEST:
            raise InvalidParameter("contribution must be at most 2^52")
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @classmethod
    def laplace(
        cls, epsilon: Number, delta: Number, *, relation: Relation | str, bins_per_unit: int = 1, contribution: int = 1
    ) -> TruncatedHistogram:
        """Spend (epsilon, delta) with discrete Laplace noise: best if a unit is in few bins."""
        relation = read_relation(relation)
        return cls(
            noise=LaplaceNoise(epsilon=positive(epsilon, name="epsilon")),
            delta=exact(delta, name="delta"),
            relation=relation,
            bins_per_unit=bins_per_unit,
            contribution=contribution,
        )

    @classmethod
    def gaussian(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        relation: Relation | str,
        bins_per_unit: int = 1,
        contribution: int = 1,
        noise_share: Number = Fraction(1, 2),
    ) -> TruncatedHistogram:
        """Spend (epsilon, delta) with Gaussian noise, which takes `noise_share` of delta: best for many bins."""
        relation = read_relation(relation)
        whole, share = small_delta(delta, public_rows=None), read_share(noise_share, name="noise_share")
        return cls(
            noise=GaussianNoise.for_epsilon(epsilon, whole * share),
            delta=whole * (1 - share),
            relation=relation,
            bins_per_unit=bins_per_unit,
            contribution=contribution,
        )

    @property
    def sensitivity(self) -> Sensitivity:
        """What one unit changes, apart from the bins that it alone is in."""
        bins = self.bins_per_unit * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return Sensitivity(l1=bins * self.contribution, squared_l2=bins * self.contribution**2)

    @property
    def law(self) -> Law:
        """The law of the noise of each count."""
        return self.noise.law(self.sensitivity)

    @property
    def threshold(self) -> int:
        """A noisy count above this is shown."""
        return self.contribution + least_excess(self.law, share_of_chance(self.delta, self.bins_per_unit))

    @property
    def event(self) -> Composed:
        return Composed([self.noise.event(self.sensitivity), ApproxDP(0, self.delta)])

    def release_probability(self, count: int) -> arb:
        """Enclose the chance of a bin to be shown, at the working precision; never if nobody is in it."""
        from flint import arb

        return self.law.survival(self.threshold - count) if count > 0 else arb(0)

    def reliable_count(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return a count that is shown with at least this probability. It is public."""
        return reliable(self.law, self.threshold, exact(confidence, name="confidence"))

    def release(self, data: Data | Memberships, *, session: Payer | None = None) -> Release[tuple[int, ...]]:
        """Show the noisy counts of large bins."""
        with paid(session, self, purpose="a histogram of bins that are not declared"):
            found = self.measure(data)
            return Release(
                value=tuple(count for _, count in found),
                event=self.event,
                relation=self.relation,
                accuracy=EachCell(cells=(SelectedAccuracy(noise=self.law, threshold=self.threshold),)),
                limits=(Fraction(1), None),
                labels=labels([key for key, _ in found]),
                delta=self._quoted,
            )

    def measure(self, data: Data | Memberships) -> tuple[tuple[Any, int], ...]:
        """Return the keys of large bins, as they are, with their noisy counts. The charge is the caller's."""
        totals = bounded_totals(data, bins_per_unit=self.bins_per_unit, contribution=self.contribution)
        least = self.threshold
        return tuple((shown(key), count) for key, count in self._noisy(totals) if count > least)

    def distribution(self, data: Data | Memberships) -> Outcomes:
        """List what may be shown: tuples of keys with their noisy counts."""
        chosen = selections(data, bins_per_unit=self.bins_per_unit, contribution=self.contribution)
        return outcomes.mixture((chance, self._shown(totals)) for chance, totals in chosen)

    def _noisy(self, totals: Mapping[Identity, int]) -> Iterator[tuple[Identity, int]]:
        if not totals:
            return
        drawn = self.noise.draw(replace(self.sensitivity, dimension=len(totals)))
        for (key, count), extra in zip(totals.items(), drawn, strict=True):
            yield key, count + extra

    def _shown(self, totals: Mapping[Identity, int]) -> Outcomes:
        cells = [outcomes.map(outcomes.from_law(self.law, count), self._cell(key)) for key, count in totals.items()]
        return outcomes.map(outcomes.product(*cells), lambda row: tuple(cell for cell in row if cell is not None))

    def _cell(self, key: Identity) -> Any:
        name, least = shown(key), self.threshold
        return lambda count: (name, count) if count > least else None

    @property
    def _quoted(self) -> Fraction:
        own = self.noise.delta if isinstance(self.noise, GaussianNoise) else None
        return self.delta + (own or 0)


# --- selected: Intervals for counts that are shown only because they came out large. ---


_BITS = (64, 256)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedAccuracy:
    """The count behind a noisy one that is shown because it exceeds a threshold.

    Theorem     Given that it is shown, a count n comes out as v or more with chance P[X >= v - n] / P[X > t - n],
                which rises with n; it comes out as v or less no more often than without a threshold. The interval
                leaves out the n for which one of the two is (1 - confidence) / 2 at most, and so encloses the
                count with the asked probability among those that are shown. Near the threshold it reaches down
                to 1: a small count with much noise looks the same there.
    """

    noise: Law
    threshold: int

    def interval(self, value: int, confidence: Fraction) -> Interval:
        miss = (1 - confidence) / 2
        return Fraction(_lowest(self.noise, self.threshold, value, miss)), Fraction(
            value + least_excess(self.noise, miss)
        )


@lru_cache(1024)
def _lowest(law: Law, threshold: int, value: int, miss: Fraction) -> int:
    """Return the least count that is not too low to come out as `value` or more, once shown."""
    low, high = 0, value  # 0 is never shown, and `value` comes out as itself or more half of the time.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _too_low(law, threshold, value, middle, miss) else (low, middle)
    return high


def _too_low(law: Law, threshold: int, value: int, count: int, miss: Fraction) -> bool:
    """Tell whether P[count + X >= value] <= miss P[count + X > threshold]; what is in doubt is not too low."""
    for bits in _BITS:
        with precision(bits):
            if law.survival(value - 1 - count) <= ball(miss) * law.survival(threshold - count):
                return True
    return False
