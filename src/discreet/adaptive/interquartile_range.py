"""The interquartile range on a logarithmic scale, if no few units can move it out of its place there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.propose_test_release import ProposeTestRelease, split_epsilon
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, integer, positive_integer
from discreet.frames.column import Data
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import check_length, check_size
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.release import Interval, Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.noise.limits import check_noise_scale
from discreet.privacy import outcomes
from discreet.privacy.events import DiscreteLaplace, PureDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

__all__ = ["LogScale", "QuartileDistance", "propose_interquartile_range"]


_BITS = 128
_COARSEST = Fraction(1 << 20)  # Ratios beyond it say nothing about a scale.
_FINEST = Fraction(1, 1 << 20)
_MOST_PLACES = 1 << 12  # In one bin.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogScale:
    """Whole numbers of steps on a logarithmic scale: places of `ratio`^(1 / fineness), and bins of `fineness` of them.

    A bin is the range from ratio^(k - shift / fineness) to the next k; zero is a bin of its own.
    """

    ratio: Fraction
    fineness: int
    shift: int = 0

    def __post_init__(self) -> None:
        if not 1 + _FINEST <= exact(self.ratio, name="ratio") <= _COARSEST:
            raise InvalidParameter("ratio must be above 1, by 2^-20 at least, and at most 2^20")
        if positive_integer(self.fineness, name="fineness") > _MOST_PLACES:
            raise InvalidParameter("fineness must be at most 4096")
        if not 0 <= integer(self.shift, name="shift") < self.fineness:
            raise InvalidParameter("shift must be at least 0 and below fineness")
        settle(self, ratio=exact(self.ratio, name="ratio"), fineness=int(self.fineness), shift=int(self.shift))

    def place(self, steps: int) -> int:
        """Return the largest k with ratio^(k / fineness) <= steps, for at least one step."""
        return _place(self.ratio, self.fineness, steps)

    def bin(self, steps: int) -> int | None:
        """Return the number of the bin, None for zero."""
        return None if steps == 0 else (self.place(steps) + self.shift) // self.fineness

    def lower(self, place: int) -> Fraction:
        """Return where a place begins, in steps, rounded down to 128 bits."""
        return self._power(Fraction(place, self.fineness))[0]

    def upper(self, place: int) -> Fraction:
        """Return where a place ends, rounded up."""
        return self._power(Fraction(place + 1, self.fineness))[1]

    def middle(self, place: int) -> Fraction:
        """Return the middle of a place, on the logarithmic scale."""
        return self._power(Fraction(2 * place + 1, 2 * self.fineness))[0]

    def _power(self, exponent: Fraction) -> tuple[Fraction, Fraction]:
        with precision(_BITS):
            return bounds((ball(self.ratio).log() * ball(exponent)).exp())


@lru_cache(1 << 16)
def _place(ratio: Fraction, fineness: int, steps: int) -> int:
    for bits in (_BITS, 16 * _BITS):
        with precision(bits):
            where = fineness * ball(steps).log() / ball(ratio).log()
            low, high = (math.floor(end) for end in bounds(where))
        if low == high:
            return low
    # No power of a ratio that is not whole is steps^fineness. Where one of a whole ratio may be, they are compared.
    return high if ratio.denominator == 1 and ratio**high <= steps**fineness else low


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuartileDistance:
    """How many of a public number of values must be replaced before the interquartile range leaves its bin.

    Theorem     k replaced values raise x_c - x_a at most to the largest x_(c+t) - x_(a-s) with t + s = k, and lower
                it at most to the least x_(c-t) - x_(a+s), or zero; both are reached. [DL09]
    """

    grid: Grid
    public_rows: int
    scale: LogScale

    @property
    def quartiles(self) -> tuple[int, int]:
        """The ranks of the lower and the upper quartile."""
        return math.ceil(Fraction(self.public_rows, 4)), math.ceil(Fraction(3 * self.public_rows, 4))

    def value(self, data: Data) -> int:
        """Return the interquartile range, in grid steps. This is private."""
        ranked = self._ranked(data)
        return int(ranked[self._at(self.quartiles[1])] - ranked[self._at(self.quartiles[0])])

    def distance(self, data: Data) -> int:
        """Return how many values must be replaced before the range is in another bin."""
        ranked, home = self._ranked(data), self.scale.bin(self.value(data))
        low, high = 0, self.public_rows  # Nothing replaced: at home. Everything: both ends of the scale are in reach.
        while high - low > 1:
            middle = (low + high) // 2
            stays = all(self.scale.bin(reached) == home for reached in self._reach(ranked, middle))
            low, high = (middle, high) if stays else (low, middle)
        return high

    def _reach(self, ranked: NDArray[np.int64], replaced: int) -> tuple[int, int]:
        """Return the least and the largest range that so many replaced values can make."""
        lower, upper = self.quartiles
        up, down = np.arange(replaced + 1), np.arange(replaced + 1)[::-1]
        most = ranked[self._at(upper + up)] - ranked[self._at(lower - down)]
        least = ranked[self._at(upper - up)] - ranked[self._at(lower + down)]
        return max(int(least.min()), 0), int(most.max())

    def _at(self, rank: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where a rank is; below the first there is `low`, above the last `high`."""
        return np.clip(np.asarray(rank, np.int64), 0, self.public_rows + 1)

    def _ranked(self, data: Data) -> NDArray[np.int64]:
        check_length(data, self.public_rows)
        return Ranked.of(data, self.grid).between(0, self.public_rows + 1)


def propose_interquartile_range(
    *,
    grid: Grid,
    epsilon: Number,
    delta: Number,
    public_rows: int,
    ratio: Number | None = None,
    fineness: int = 1,
    shift: int = 0,
    test_share: Number = Fraction(1, 2),
) -> ProposeTestRelease:
    """Release the interquartile range up to a factor `ratio`, if it is far from leaving its bin on that scale.

    The ratio is 1 + 1 / ln(size) if left out. With `fineness=1` the bin itself is told, without noise, and the test
    has all of epsilon. With more, noise is added to the place within the bin, as first published; that is better
    only for a large epsilon. A range near the edge of its bin is refused; another `shift` moves the edges, and costs
    the same again. [DL09]

    Args:
        grid: The public bounds and step of the values; the range is at most as wide as it.
        epsilon: What test and answer spend together.
        delta: The chance that the test is passed where the range is about to leave its bin.
        public_rows: The public number of rows, at least 2, under replace-one.
        ratio: The width of a bin, as a factor above 1.
        fineness: Places in a bin; with 1 the answer is the middle of the bin.
        shift: By how many places the edges of bins are moved, below `fineness`.
        test_share: The part of epsilon that the test spends, if `fineness` is above 1.

    Returns:
        The mechanism; `release` answers or declines.

    Raises:
        InvalidParameter: If ratio, fineness or shift are out of their range.

    Examples:
        >>> test = dp.adaptive.propose_interquartile_range(
        ...     grid=dp.mechanisms.Grid.between(0, 1000, step=1), epsilon=1, delta=1e-6, public_rows=4000, ratio=4
        ... )
        >>> release = test.release([value % 1000 for value in range(4000)])
        >>> 256 < release.value < 1024
        True
    """
    check_size(Relation.REPLACE_ONE, public_rows, least=2)
    public_rows = int(public_rows)
    testing, noisy = split_epsilon(epsilon, test_share)
    proposed = _usual_ratio(public_rows) if ratio is None else exact(ratio, name="ratio")
    query = QuartileDistance(
        grid=grid, public_rows=public_rows, scale=LogScale(ratio=proposed, fineness=fineness, shift=shift)
    )
    return ProposeTestRelease(
        distance=query.distance,
        mechanism=_WithinBin(query=query, epsilon=noisy if fineness > 1 else Fraction(0)),
        epsilon=testing if fineness > 1 else testing + noisy,
        delta=exact(delta, name="delta"),
    )


def _usual_ratio(size: int) -> Fraction:
    """Return 1 + 1 / ln n to three digits; the choice is public, so its rounding does not matter."""
    return 1 + Fraction(1000, max(1000, math.floor(1000 * math.log(size))))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _WithinBin:
    """The place of the range within a bin: private between neighbours in one bin, and only there."""

    query: QuartileDistance
    epsilon: Fraction  # 0 where a bin is one place, which needs no noise

    def __post_init__(self) -> None:
        if self.law is not None:
            check_noise_scale(self.law.scale)

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    @property
    def law(self) -> DiscreteLaplaceLaw | None:
        """The law of the noise, in places; two places in one bin are fewer than `fineness` apart."""
        spread = self.query.scale.fineness - 1
        return DiscreteLaplaceLaw(spread / self.epsilon) if spread else None

    @property
    def event(self) -> DiscreteLaplace | PureDP:
        if self.law is None:
            return PureDP(0)
        return DiscreteLaplace(scale=self.law.scale, sensitivity=self.query.scale.fineness - 1)

    def release(self, data: Data) -> Release[Fraction]:
        extra = 0 if self.law is None else noise.discrete_laplace(self.law.scale)
        place = self._cut(self._place(data), extra)
        grid, scale = self.query.grid, self.query.scale
        return Release(
            value=Fraction(0) if place is None else scale.middle(place) * grid.step,
            event=self.event,
            relation=self.relation,
            accuracy=_LogAccuracy(law=self.law, scale=scale, place=place, step=grid.step),
            limits=(Fraction(0), grid.high - grid.low),
        )

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the place on the scale, None for zero."""
        exact_place = self._place(data)
        extra = outcomes.point(0) if self.law is None else outcomes.from_law(self.law)
        return outcomes.map(extra, lambda drawn: self._cut(exact_place, drawn))

    def _place(self, data: Data) -> int | None:
        steps = self.query.value(data)
        return None if steps == 0 else self.query.scale.place(steps)

    def _cut(self, place: int | None, extra: int) -> int | None:
        """Add noise, and keep within what a range on this grid can be."""
        if place is None:
            return None
        return min(max(place + extra, 0), self.query.scale.place(self.query.grid.width))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _LogAccuracy:
    """The range is within some places of the one that was released."""

    law: DiscreteLaplaceLaw | None
    scale: LogScale
    place: int | None  # as released
    step: Fraction

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: object, confidence: Fraction) -> Interval:
        if self.place is None:
            return Fraction(0), Fraction(0)
        reach = 0 if self.law is None else self.law.half_width(confidence)
        return self.scale.lower(self.place - reach) * self.step, self.scale.upper(self.place + reach) * self.step
