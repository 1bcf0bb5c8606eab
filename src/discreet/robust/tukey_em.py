"""Regression by many small fits and a deep point among them (TukeyEM), inside propose-test-release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.no_answer import NoAnswer
from discreet.adaptive.propose_test_release import ProposeTestRelease, split_epsilon
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import integer, positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.parameters import read_share, settle, small_delta
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.lazy_bits import compare, extend, revealed
from discreet.privacy.events import ApproxDP, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation
from discreet.robust.least_squares import labels
from discreet.robust.regression_design import Design, Records
from discreet.robust.reweighting import refuse_weights, shares_of

if TYPE_CHECKING:
    from flint import arb

__all__ = ["DeepPoint", "TukeyRegression", "block_fits"]

_STEPS = 1 << 20  # To a coefficient of one, within the frame.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TukeyRegression:
    """Divide the records into blocks at random, fit each by least squares, and release a point deep among the fits.

    Each record draws its block by itself, from fresh secret bits, so one record is in one block and changes one fit,
    whether it is added, removed or replaced. Where units have several records, each unit draws one block for all of
    them, so one unit changes one fit, however many records it has. A block with too few records to fit counts with
    coefficients at the bound, every other such block at the other one, and against passing the test: a quarter of such
    blocks is too many.

    Guarantee   (epsilon, delta): `test_share` of epsilon for the test, the rest for the deep point, delta for each,
                of which only the larger counts. A refusal costs the same.
    Theorem     See `DeepPoint` and `ProposeTestRelease`. [AJRV23, DL09]
    Utility     noise follows how far fits of different blocks are apart, not the bounds. Needs some thousand records a
                coefficient and several hundred blocks; with fewer it declines.

    Args:
        design: The public bounds of features and response.
        relation: The neighbouring relation.
        epsilon: What a release spends.
        delta: The delta that goes with it.
        blocks: The public number of blocks, at least 4.
        coefficient_bound: The bound on each coefficient where the bounds are -1 and 1.
        test_share: The part of epsilon that the test spends.

    Raises:
        InvalidParameter: If there are fewer than 4 blocks, or a number is out of range.

    Examples:
        >>> records = [(i % 10, 2 * (i % 10)) for i in range(20)]
        >>> fit = dp.robust.TukeyRegression(
        ...     design=dp.robust.Design.between([(0, 10)], (0, 30)), relation=dp.Relation.ADD_REMOVE,
        ...     epsilon=1, delta=1e-12,
        ... )
        >>> fit.release(records).value  # far too few records for a thousand blocks
        NoAnswer()
    """

    design: Design
    relation: Relation
    epsilon: Fraction
    delta: Fraction
    blocks: int = 1000
    coefficient_bound: Fraction = Fraction(1024)  # of each coefficient, within the frame
    test_share: Fraction = Fraction(1, 2)

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, public_rows=None),
            blocks=positive_integer(self.blocks, name="blocks"),
            coefficient_bound=positive(self.coefficient_bound, name="coefficient_bound"),
            test_share=read_share(self.test_share, name="test_share"),
        )
        if self.blocks < 4:
            raise InvalidParameter("blocks must be at least 4: a deep point has a quarter of them on each side")
        _ = self.event

    @property
    def mechanism(self) -> ProposeTestRelease:
        """What is released of the fits: a deep point, if the test is passed."""
        testing, choosing = split_epsilon(self.epsilon, self.test_share)
        reach = int(self.coefficient_bound * _STEPS)
        point = DeepPoint(
            low=-reach,
            high=reach,
            dimension=self.design.dimension,
            count=self.blocks,
            depth=self.blocks // 4,
            epsilon=choosing,
            delta=self.delta,
            relation=self.relation,
        )

        def distance(fits: Integers) -> int:
            # One record makes one block fail at most, so this moves by one too, and it is still a lower bound.
            failed = int((np.abs(fits[:, 0]) > reach).sum())
            return min(point.distance(fits), max(self.blocks // 4 - failed, 0))

        return ProposeTestRelease(distance=distance, mechanism=point, epsilon=testing, delta=self.delta)

    @property
    def event(self) -> Event:
        return self.mechanism.event

    def release(
        self, records: Records, *, session: Payer | None = None
    ) -> Release[tuple[Fraction, ...]] | Release[NoAnswer]:
        """Fit, or decline to; the intercept comes first, in the units of the data."""
        refuse_weights(records)
        with paid(session, self, purpose="regression by many fits"):
            shares, rows = shares_of(records, self.relation), self.design.rows(records)
            blocks = np.asarray(noise.uniform(self.blocks, size=shares.count(len(rows))))
            reach = int(self.coefficient_bound * _STEPS)
            released = self.mechanism.release(block_fits(rows, shares.each(blocks), self.blocks, reach))
            return released if isinstance(released.value, NoAnswer) else self._in_units(released)

    def _in_units(self, released: Release[Any]) -> Release[tuple[Fraction, ...]]:
        inside = [value / _STEPS for value in released.value]
        return replace(released, value=self.design.original(inside), labels=labels(self.design))


def block_fits(rows: Integers, blocks: Integers, count: int, reach: int) -> Integers:
    """Fit each block of rows (1, x, y) by itself, exactly; a fit in steps, clamped to the reach. They are private.

    Those of a block that cannot be fitted are one beyond the reach, which is how they are told.
    """
    size = rows.shape[1] - 1
    order = np.argsort(blocks, kind="stable")
    ends = np.searchsorted(blocks[order], np.arange(count + 1))
    moments = np.zeros((count, size, size + 1), dtype=np.int64)
    for i in range(size):
        for j in range(i, size + 1):
            # Differences of running sums are exact, even if the sums themselves wrap around.
            running = np.concatenate([[0], np.cumsum(rows[order, i] * rows[order, j])])
            moments[:, i, j] = running[ends[1:]] - running[ends[:-1]]
            if j < size:
                moments[:, j, i] = moments[:, i, j]
    fits = [_fit(block.tolist(), reach, failed=(reach + 1) * (-1) ** number) for number, block in enumerate(moments)]
    return np.array(fits, dtype=np.int64).reshape(count, size)


def _fit(moments: list[list[int]], reach: int, *, failed: int) -> list[int]:
    """Solve the normal equations exactly and round; where they have no single solution, the fit has failed."""
    from flint import fmpz_mat

    size = len(moments)
    try:
        solved = fmpz_mat([row[:size] for row in moments]).solve(fmpz_mat([row[size:] for row in moments]))
    except ZeroDivisionError:
        return [failed] * size
    found = (Fraction(int(solved[i, 0].p), int(solved[i, 0].q)) for i in range(size))
    return [min(max(round(value * _STEPS), -reach), reach) for value in found]


# --- depth: A point deep among others, chosen by an exponential mechanism among those that are deep enough. ---


Integers: TypeAlias = NDArray[np.int64]
Box: TypeAlias = list[tuple[int, int]]  # ends of each coordinate, both inside

_FIXED = 20  # Bits behind the point of logarithms of volumes.
_DOUBT = 1e-6  # Of a step: far more than the error of a float logarithm.
_FAR = 1 << 52
_WIDEST = 1 << 50
_REASON = NoInterval(reason="how deep points spread depends on the data: no interval follows from public facts")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeepPoint:
    """Choose a grid point by its depth among `count` points: the least number of them on a side of it, in any
    coordinate. Points less deep than `depth` are never chosen.

    Guarantee   (epsilon, delta) between neighbours that are both safe, where one unit changes one of the points. It is
                to be released inside a test of `distance`, the number of points that must change before the data may
                be unsafe.
    Theorem     Write V_i for the number of grid points of depth i or more, W for the sum of exp(epsilon depth / 2)
                over those of depth t or more. Changing a point changes depths by one at most. So probabilities of
                points that stay deep enough change by e^(epsilon / 2) and by the ratio of the sums, at most
                e^(epsilon / 2) (1 + N_(t-1) e^(epsilon (t-1) / 2) / W), and points that do not stay have mass
                N_t e^(epsilon t / 2) / W, N_i = V_i - V_(i+1). Data are safe if e^(epsilon / 2) V_(t-1)
                e^(epsilon t / 2) <= delta W. After k changes V_i is at least V_(i+k) and at most V_(i-k) of before, and
                W is at least any one V_i e^(epsilon i / 2). [AJRV23, MT07]
    Utility     the deepest points are near the coordinatewise median; noise follows how far the points spread.
    """

    low: int  # of every coordinate, in steps
    high: int
    dimension: int
    count: int
    depth: int
    epsilon: Fraction
    delta: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            low=integer(self.low, name="low"),
            high=integer(self.high, name="high"),
            dimension=positive_integer(self.dimension, name="dimension"),
            count=positive_integer(self.count, name="count"),
            depth=positive_integer(self.depth, name="depth"),
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, public_rows=None),
        )
        if not self.low < self.high or max(-self.low, self.high) > _WIDEST:
            raise InvalidParameter("low must be below high, both within 2^50 steps of zero")
        if self.depth > (self.count + 1) // 2:
            raise InvalidParameter("depth must be at most half of count: deeper points need not exist")

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    def release(self, points: Any) -> Release[tuple[int, ...]]:
        """Choose a point, in steps. By itself this is private between safe data only."""
        ordered = self._ordered(points)
        deepest = self._deepest(ordered)
        sizes = [self._size(ordered, level) for level in range(self.depth, deepest + 2)]
        level = self.depth + _picked(lambda: self._weights(sizes))
        inner = self._box(ordered, level + 1) if level < deepest else None
        return Release(
            value=_within_shell(self._box(ordered, level), inner),
            event=self.event,
            relation=self.relation,
            accuracy=_REASON,
        )

    def distribution(self, points: Any) -> Outcomes:
        """List the law over all points of a small grid."""
        ordered = self._ordered(points)
        levels = {}
        for place in product(range(self.low, self.high + 1), repeat=self.dimension):
            level = self.depth_of(ordered, place)
            if level >= self.depth:
                levels[place] = level
        weights = {place: (ball(self.epsilon) * level / 2).exp() for place, level in levels.items()}
        total = sum(weights.values(), ball(0))
        return Outcomes({place: weight / total for place, weight in weights.items()})

    def depth_of(self, points: Any, place: Sequence[int]) -> int:
        """Return the least number of points on a side of a place, its own side included. This is private."""
        table = self._ordered(points)
        return int(min((table <= np.array(place)).sum(axis=0).min(), (table >= np.array(place)).sum(axis=0).min()))

    def distance(self, points: Any) -> int:
        """Return how many points may change, less than that being surely safe. One point moves it by one at most.

        It compares whole numbers that only grow with the width of a box, so no rounding makes it jump.
        """
        logs = self._logarithms(self._ordered(points))
        low, high = 0, self.count + 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._safe_within(logs, middle - 1) else (low, middle - 1)
        return low

    def _safe_within(self, logs: list[int], changes: int) -> bool:
        """Tell whether data are surely safe after so many changes, in fixed-point logarithms of V_0, V_1, …"""
        wide = logs[max(self.depth - 1 - changes, 0)] + self.dimension  # Each logarithm was rounded down.
        rate = self.epsilon * (1 << _FIXED) / 2
        start = self.depth + changes
        best = max((logs[i] + math.floor(rate * (i - start)) for i in range(start, len(logs))), default=-_FAR)
        return wide + math.ceil(rate) + self._log_inverse_delta() <= best

    def _log_inverse_delta(self) -> int:
        with precision(128):
            return math.ceil(bounds(-ball(self.delta).log() * (1 << _FIXED))[1])

    def _logarithms(self, ordered: Integers) -> list[int]:
        """Return floors of the logarithms of V_0 and on, each the sum of floors for its coordinates."""
        levels = range(self._deepest(ordered) + 1)
        boxes = [self._box(ordered, level) for level in levels]
        widths = np.array([[last - first + 1 for first, last in box] for box in boxes], dtype=np.int64)
        return [int(total) for total in _floor_logarithms(widths).sum(axis=1)]

    def _ordered(self, points: Any) -> Integers:
        table = np.asarray(points, dtype=np.int64).reshape(self.count, self.dimension)
        return np.sort(np.clip(table, self.low, self.high), axis=0)

    def _deepest(self, ordered: Integers) -> int:
        """Return the largest depth that some place has."""
        level = (self.count + 1) // 2
        while level < self.count and (ordered[level] <= ordered[self.count - level - 1]).all():
            level += 1
        return level

    def _box(self, ordered: Integers, level: int) -> Box:
        """Return where the depth is at least `level`; the boxes shrink from one level to the next."""
        if level <= 0:
            return [(self.low, self.high)] * self.dimension
        return [(int(a), int(b)) for a, b in zip(ordered[level - 1], ordered[self.count - level], strict=True)]

    def _size(self, ordered: Integers, level: int) -> int:
        if level > self._deepest(ordered):
            return 0
        return math.prod(last - first + 1 for first, last in self._box(ordered, level))

    def _weights(self, sizes: list[int]) -> list[arb]:
        """Enclose the weight of each shell, over that of one point of the deepest."""
        rate = self.epsilon / 2
        top = len(sizes) - 2
        return [ball(sizes[i] - sizes[i + 1]) * ball(rate * (i - top)).exp() for i in range(len(sizes) - 1)]


def _floor_logarithms(widths: Integers) -> Integers:
    """Return floor(2^20 ln w), exactly: by floats, and by balls where they are too close to a whole number."""
    scaled = np.log(widths) * (1 << _FIXED)
    floors: Integers = np.floor(scaled).astype(np.int64)
    doubtful = (np.abs(scaled - np.rint(scaled)) < _DOUBT) & (widths > 1)
    for place in zip(*np.nonzero(doubtful), strict=True):
        floors[place] = _floor_logarithm(int(widths[place]))
    return floors


def _floor_logarithm(width: int) -> int:
    bits = 128
    while True:
        with precision(bits):
            floor = (ball(width).log() * (1 << _FIXED)).floor().unique_fmpz()
        if floor is not None:
            return int(floor)
        bits *= 2


def _picked(weights: Callable[[], Sequence[arb]]) -> int:
    """Return an index with probability in proportion to its weight, which is enclosed ever more closely."""
    prefix, bits = revealed()
    while True:
        with precision(bits + 128):
            found = _index(weights(), prefix, bits)
        if found is not None:
            return found
        prefix, bits = extend(prefix, bits)


def _index(weights: Sequence[arb], prefix: int, bits: int) -> int | None:
    total = sum(weights, ball(0))
    reached = ball(0)
    for index, weight in enumerate(weights[:-1]):
        reached += weight
        below = compare(reached / total, prefix, bits)
        if below is None:
            return None
        if below:
            return index
    return len(weights) - 1


def _within_shell(outer: Box, inner: Box | None) -> tuple[int, ...]:
    """Return a uniform point of a box that is not in another inside it: the first coordinate to leave that is drawn.

    The points whose first such coordinate is j: inside before j, outside at j, anywhere after it.
    """
    if inner is None:
        return tuple(_uniform(first, last) for first, last in outer)
    wide = [last - first + 1 for first, last in outer]
    narrow = [last - first + 1 for first, last in inner]
    sizes = [math.prod(narrow[:j]) * (wide[j] - narrow[j]) * math.prod(wide[j + 1 :]) for j in range(len(wide))]
    leaving = _picked(lambda: [ball(size) for size in sizes])
    before = [_uniform(first, last) for first, last in inner[:leaving]]
    after = [_uniform(first, last) for first, last in outer[leaving + 1 :]]
    return *before, _outside(outer[leaving], inner[leaving]), *after


def _outside(wide: tuple[int, int], narrow: tuple[int, int]) -> int:
    place = _uniform(wide[0], wide[1] - (narrow[1] - narrow[0] + 1))
    return place if place < narrow[0] else place + narrow[1] - narrow[0] + 1


def _uniform(first: int, last: int) -> int:
    return first + noise.uniform(last - first + 1)
