"""Look for counterexamples: smooth bounds over all pairs of neighbours, and the largest loss of a stretched law."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

from discreet.adaptive.smooth_noise_laws import TailedLaw
from discreet.adaptive.smooth_query import SmoothQuery
from discreet.balls import ball, ball_down, ball_up, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Enclosed", "Smoothness", "check_smoothness", "largest_loss"]

# --- smoothness ---
# Look for a counterexample to a smooth bound: all pairs of neighbours in a small world, by enumeration.


World: TypeAlias = tuple[Hashable, ...]

_BITS = 128
_SLACK = Fraction(1, 2**64)  # Two sides that are equal look apart by less once they are enclosed.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """What was found in a small world. It can refute a bound; it cannot prove one."""

    beta: Fraction
    pairs: int  # of neighbours
    growth: float  # the largest change of the logarithm of the bound, rounded up
    exceeded: tuple[World, World] | None  # neighbours whose values are farther apart than a bound of them
    uneven: tuple[World, World] | None  # neighbours whose bounds are apart by more than e^beta

    @property
    def holds(self) -> bool:
        """Whether no pair of neighbours in this world refutes the bound."""
        return self.exceeded is None and self.uneven is None

    def __str__(self) -> str:
        if self.holds:
            return f"no violation among {self.pairs} pairs: the bound grows by e^{self.growth:.6g} at most"
        what = "is below a change of the value" if self.exceeded else f"grows by e^{self.growth:.6g}"
        return f"refuted: the bound {what}, for {self.exceeded or self.uneven}"

    __repr__ = __str__


def check_smoothness(query: SmoothQuery, worlds: Iterable[Sequence[Any]], *, beta: Number) -> Smoothness:
    """Compare the values and bounds of all neighbours among some made-up data sets, taken as multisets.

    A bound that says it is known up to a factor only is compared with that much room. Never run this on real data:
    what it returns tells data sets apart.

    Args:
        query: The query, with the bound that is tried.
        worlds: Made-up data sets; never real ones.
        beta: How fast the smooth bound may grow from one neighbour to the next: by e^beta.

    Returns:
        Whether a pair of neighbours refutes the bound, and which.

    Raises:
        InvalidParameter: If no two data sets are neighbours.

    Examples:
        >>> query = dp.adaptive.median_query(
        ...     grid=dp.mechanisms.Grid.between(0, 3, step=1), relation=dp.Relation.REPLACE_ONE, public_rows=1
        ... )
        >>> dp.adaptive.check_smoothness(query, [[0], [1], [3]], beta=0.5).holds
        True
    """
    smooth = positive(beta, name="beta")
    data_sets = list(dict.fromkeys(tuple(sorted(world)) for world in worlds))
    pairs = _neighbours(data_sets, query.relation)
    if not pairs:
        raise InvalidParameter("this world has no two neighbours under the query's relation: name more data sets")
    computed = smooth - 2 * query.relative_error
    with precision(_BITS):
        values = [query.value(data) for data in data_sets]
        room = ball(1 + query.relative_error)
        sizes = [query.smooth_bound(data, computed).enclose(computed) * room for data in data_sets]
        found = _SmoothnessSearch(values, sizes, pairs)
        growth, uneven = found.growth(smooth)
        exceeded = found.exceeded(2 * query.value_error)
    return Smoothness(
        beta=smooth,
        pairs=len(pairs),
        growth=growth,
        exceeded=_named(data_sets, exceeded),
        uneven=_named(data_sets, uneven),
    )


class _SmoothnessSearch:
    __slots__ = ("_pairs", "_sizes", "_values")

    def __init__(self, values: list[Fraction], sizes: list[arb], pairs: list[tuple[int, int]]) -> None:
        self._values, self._sizes, self._pairs = values, sizes, pairs

    def growth(self, beta: Fraction) -> tuple[float, tuple[int, int] | None]:
        """Return the largest growth, and a pair where it is surely above beta."""
        logs = [size.log() if size > 0 else None for size in self._sizes]
        most, uneven = 0.0, None
        for one, other in self._pairs:
            first, second = logs[one], logs[other]
            if first is None or second is None:
                # Only a bound of zero all over is smooth.
                apart = 0.0 if first is second else float("inf")
                least = apart
            else:
                apart, least = ball_up(abs(first - second)), ball_down(abs(first - second))
            most = max(most, apart)
            if least > float(beta + _SLACK):
                uneven = uneven or (one, other)
        return most, uneven

    def exceeded(self, error: Fraction) -> tuple[int, int] | None:
        """Return a pair whose values are surely farther apart than a bound of them, up to errors of the values."""
        for one, other in self._pairs:
            change = ball(abs(self._values[one] - self._values[other]) - error)
            if change > self._sizes[one] * ball(1 + _SLACK) or change > self._sizes[other] * ball(1 + _SLACK):
                return one, other
        return None


def _named(data_sets: list[World], pair: tuple[int, int] | None) -> tuple[World, World] | None:
    return None if pair is None else (data_sets[pair[0]], data_sets[pair[1]])


def _neighbours(data_sets: list[World], relation: Relation) -> list[tuple[int, int]]:
    """Pair data sets that are the same once a record of one, or one of each, is gone."""
    where = {world: index for index, world in enumerate(data_sets)}
    without: defaultdict[World, set[int]] = defaultdict(set)
    for world, index in where.items():
        for place in range(len(world)):
            without[world[:place] + world[place + 1 :]].add(index)
    if relation is Relation.REPLACE_ONE:
        found = {pair for group in without.values() for pair in combinations(sorted(group), 2)}
    else:
        found = {(where[rest], index) for rest, group in without.items() if rest in where for index in group}
    return sorted(found)


# --- admissibility ---
# The largest privacy loss of a stretched and shifted law, enclosed over all shifts and dilations that can occur.
#
# The release on one data set is S Z / alpha around its value. Counted in that scale, a neighbour's is D + e^lam Z,
# with |lam| <= beta and |D| <= alpha min(1, e^lam): the two values differ by no more than either smooth bound. The law
# falls away from zero, so at a point z >= 0 the loss is largest for the shift that leads away from it:
#
#     lam + log h(z) - log h((z + alpha min(1, e^lam)) e^-lam),   z >= 0, |lam| <= beta.
#
# Boxes of (z, lam) are bounded by the mean value theorem in balls, and cut in two where that is not close enough.


_ADMISSIBILITY_BITS = 96
_TOLERANCE = Fraction(1, 1000)
_FARTHEST = 40  # Powers of two above alpha or 1; beyond them only the tail matters.
_MOST_BOXES = 100_000

_Sides: TypeAlias = tuple[float, float, float, float]  # z from, to; lam / beta from, to


class Enclosed(NamedTuple):
    """A number lies between these two floats, surely."""

    lower: float
    upper: float


def largest_loss(law: TailedLaw, *, alpha: Number, beta: Number, tolerance: Number = _TOLERANCE) -> Enclosed:
    """Enclose the pure epsilon that noise S Z / alpha delivers with beta-smooth S, to a relative tolerance."""
    shift, dilation = positive(alpha, name="alpha"), nonnegative(beta, name="beta")
    if not isinstance(law, TailedLaw):
        raise InvalidParameter("only a distribution with polynomial tails has a largest privacy loss")
    with precision(_ADMISSIBILITY_BITS):
        return _LossSearch(law, shift, dilation).run(float(positive(tolerance, name="tolerance")))


@final
@dataclass(order=True, slots=True)
class _SearchBox:
    """A box of (z, lam / beta), first in the queue if its bound is highest."""

    minus_upper: float
    sides: _Sides = field(compare=False)
    wide: bool = field(compare=False)  # rather than high

    def halves(self) -> list[_Sides]:
        low, high, least, most = self.sides
        if self.wide:
            middle = (low + high) / 2
            return [(low, middle, least, most), (middle, high, least, most)]
        middle = (least + most) / 2
        return [(low, high, least, middle), (low, high, middle, most)]


def _narrowed(low: float, high: float, slope: arb) -> tuple[float, float]:
    """Keep the one end that counts where a function surely rises or falls all the way."""
    if slope > 0:
        return high, high
    return (low, low) if slope < 0 else (low, high)


@final
class _LossSearch:
    """Branch and bound."""

    __slots__ = ("_alpha", "_beta", "_first_power", "_law", "_lower")

    def __init__(self, law: TailedLaw, alpha: Fraction, beta: Fraction) -> None:
        self._law, self._lower = law, 0.0
        self._alpha, self._beta = ball(alpha), ball(beta)
        self._first_power = max(alpha.__ceil__(), 1).bit_length()

    def run(self, tolerance: float) -> Enclosed:
        end = 2.0 ** (self._first_power + _FARTHEST)
        far = self._beyond(end)
        queue = [self._box(sides) for sides in self._partition(end)]
        heapq.heapify(queue)
        for _ in range(_MOST_BOXES):
            if -queue[0].minus_upper <= max(self._lower * (1 + tolerance), far):
                break
            for sides in heapq.heappop(queue).halves():
                heapq.heappush(queue, self._box(sides))
        return Enclosed(self._lower, max(-queue[0].minus_upper, far))

    def _partition(self, end: float) -> list[_Sides]:
        """Cut the half line at powers of two, and the dilations at zero, where the shift has its corner."""
        marks = [0.0]
        while marks[-1] < end:
            marks.append(max(2 * marks[-1], 2.0**-8))
        return [(low, high, *span) for low, high in pairwise(marks) for span in ((-1.0, 0.0), (0.0, 1.0))]

    def _box(self, sides: _Sides) -> _SearchBox:
        from flint import arb

        low, high, least, most = sides
        narrower = most <= 0  # whether the neighbour's noise is, all over the box
        along, across = self._slopes(arb(low).union(arb(high)), self._beta * arb(least).union(arb(most)), narrower)
        low, high = _narrowed(low, high, along)
        least, most = _narrowed(least, most, across)
        here = self._loss(arb((low + high) / 2), self._beta * arb((least + most) / 2), narrower)
        self._lower = max(self._lower, ball_down(here))
        rise = abs(along) * arb((high - low) / 2) + abs(across) * self._beta * arb((most - least) / 2)
        wide = high - low > (1 + low) * float(self._beta) * (most - least)
        return _SearchBox(-ball_up(here + rise), (low, high, least, most), wide)

    def _loss(self, z: arb, lam: arb, narrower: bool) -> arb:
        return lam + self._law.log_shape(z) - self._law.log_shape(self._moved(z, lam, narrower))

    def _moved(self, z: arb, lam: arb, narrower: bool) -> arb:
        """Enclose (z + alpha min(1, e^lam)) e^-lam."""
        shrink = (-lam).exp()
        return z * shrink + self._alpha if narrower else (z + self._alpha) * shrink

    def _slopes(self, z: arb, lam: arb, narrower: bool) -> tuple[arb, arb]:
        """Enclose the derivatives of the loss by z and by lam."""
        moved = self._moved(z, lam, narrower)
        slope, shrink = self._law.slope(moved), (-lam).exp()
        # By lam, z e^-lam moves and, where the neighbour's noise is wider, so does the shift.
        travel = z * shrink if narrower else moved
        return slope * shrink - self._law.slope(z), 1 - slope * travel

    def _beyond(self, end: float) -> float:
        """Bound the loss for z >= end: the density falls by at most a power of y / z = (1 + D / z) e^-lam."""
        from flint import arb

        index = ball(self._law.tail_index)
        grown = (self._alpha / arb(end)).log1p()
        return max(ball_up(index * (grown + self._beta) - self._beta), ball_up(self._beta + index * grown))
