"""Boosting of small trees of one feature, then of two, from noisy sums of residuals: a model that is a sum of parts.

What rows are turned into, the cells of their features, their scores and their residuals, are whole numbers that depend
on that row and on what was told before, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.learn.sklearn.kmeans import CellCounts
from discreet.learn.sklearn.leaf_sums import (
    CELLS,
    LeafSums,
    cells_of,
    grouped,
    nonnegative,
    random_leaves,
    smoothed,
)
from discreet.mechanisms.parameters import settle
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.regression_design import HALF

__all__ = [
    "HEAVIEST",
    "SCORE",
    "AdditiveModel",
    "AdditivePart",
    "BoostingPlan",
    "LabelTarget",
    "NumberTarget",
    "ResidualTarget",
    "boosted",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# --- targets: What is left to explain of each row, in whole steps. ---


SCORE: Final = HALF  # Steps of a score to one unit: of log-odds, or of half the bounds of a number.
UNIT: Final = 1 << 12  # Steps of a residual to a probability of one, or to the longest residual of a number.
_KNOT: Final = 12  # Bits of a score that its probability does not depend on: it is a table with 256 knots a unit.
_FAR: Final = 8 << 8  # Knots from zero to where the table ends.
_ODDS: Final = np.array([round(UNIT / (1 + math.exp(-knot / 256))) for knot in range(-_FAR, _FAR + 1)], dtype=np.int64)
_POWERS: Final = np.array([round((1 << 20) * math.exp(-knot / 256)) for knot in range(2 * _FAR + 1)], dtype=np.int64)


HEAVIEST: Final = 1 << 10  # Steps of the largest weight that is declared.


class ResidualTarget(Protocol):
    """What is to be explained: private rows, and the public facts about their residuals."""

    @property
    def outputs(self) -> int:
        """How many numbers a score is."""

    @property
    def radius(self) -> int:
        """How long a residual is at most, in steps; longer ones are shortened."""

    @property
    def step(self) -> float:
        """What one step of a residual is, in units of scores."""

    @property
    def curvature(self) -> float:
        """By how much a residual falls where the score rises by one."""

    @property
    def spread(self) -> float:
        """How large the part of one feature is expected to be, in units of scores."""

    def residuals(self, scores: Integers) -> Integers:
        """Return what is left of each row, in steps. This is private."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LabelTarget:
    """Labels among so many classes. Two of them have one score, the log-odds; more have one each.

    Residuals of two classes are shortened to a half, where a row is predicted wrongly. That halves the noise, and moves
    chances in a way that `chances` undoes: where p is the share of the second class, the score settles at the log-odds
    of p / (2 - 2p), for p below a half.
    """

    codes: Integers = field(repr=False)
    classes: int

    @property
    def outputs(self) -> int:
        return 1 if self.classes == 2 else self.classes

    @property
    def radius(self) -> int:
        return UNIT // 2 if self.classes == 2 else 4 * UNIT // 5

    @property
    def step(self) -> float:
        return 1 / UNIT

    @property
    def curvature(self) -> float:
        return (self.classes - 1) / self.classes**2

    @property
    def spread(self) -> float:
        return 0.2

    def residuals(self, scores: Integers) -> Integers:
        if self.classes == 2:
            knots = np.clip(scores[:, 0] >> _KNOT, -_FAR, _FAR) + _FAR
            return np.asarray(self.codes * UNIT - _ODDS[knots], dtype=np.int64)[:, None]
        behind = scores.max(axis=1, keepdims=True) - scores
        powers = _POWERS[np.minimum(behind >> _KNOT, 2 * _FAR)]
        totals = powers.sum(axis=1, keepdims=True)
        wanted = (self.codes[:, None] == np.arange(self.classes)) * UNIT
        return np.asarray(wanted - (powers * UNIT + totals // 2) // totals, dtype=np.int64)

    @staticmethod
    def chances(scores: Floats) -> Floats:
        """Return the chance of each class from public scores, one row each."""
        if scores.shape[1] == 1:
            rare = 1 / (1 + np.exp(np.minimum(np.abs(scores[:, 0]), 50.0)))
            share = 2 * rare / (1 + 2 * rare)
            second = np.where(scores[:, 0] > 0, 1 - share, share)
            return np.column_stack([1 - second, second])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Floats = powers / powers.sum(axis=1, keepdims=True)
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class NumberTarget:
    """Numbers in steps from -HALF to HALF; residuals longer than `reach` are shortened."""

    numbers: Integers = field(repr=False)
    reach: int = HALF

    @property
    def outputs(self) -> int:
        return 1

    @property
    def radius(self) -> int:
        return UNIT

    @property
    def step(self) -> float:
        return self.reach / (UNIT * SCORE)

    @property
    def curvature(self) -> float:
        return 1.0

    @property
    def spread(self) -> float:
        return 0.2 * self.reach / SCORE

    def residuals(self, scores: Integers) -> Integers:
        left = np.clip(self.numbers - scores[:, 0], -self.reach, self.reach)
        return np.asarray((left * UNIT + self.reach // 2) // self.reach, dtype=np.int64)[:, None]


# --- model: What comes out, all of it public. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdditivePart:
    """A table of scores for the groups of one feature, or for those of two. Everything in it is public."""

    features: tuple[int, ...]
    groups: tuple[Integers, ...]  # of each cell, feature by feature
    sizes: Floats  # about how many rows each entry of the table has
    values: Integers  # one row an entry, one column an output, in steps of scores

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(groups[-1]) + 1 for groups in self.groups)

    def places(self, cells: Integers) -> Integers:
        """Return the entry of each row; each row by itself."""
        found = np.zeros(len(cells), dtype=np.int64)
        for feature, groups, many in zip(self.features, self.groups, self.shape, strict=True):
            found = found * many + groups[cells[:, feature]]
        return found

    @property
    def middle(self) -> Floats:
        """The mean score of its rows."""
        total = max(float(self.sizes.sum()), 1.0)
        found: Floats = (self.sizes[:, None] * self.values).sum(axis=0) / total
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdditiveModel:
    """A start and parts, whose scores add up."""

    start: Integers
    parts: tuple[AdditivePart, ...]

    def scores(self, steps: Integers) -> Integers:
        """Return the score of each row, for features in steps from -HALF to HALF; each row by itself."""
        cells = cells_of(steps)
        found = np.tile(self.start, (len(steps), 1))
        for part in self.parts:
            found += part.values[part.places(cells)]
        return found


# --- plan: What is measured, and what it costs together. ---

_COUNTS: Final = Fraction(3, 20)  # Of all squares of mu.
_REACH: Final = Fraction(1, 25)  # For the longest residual of numbers; measured twice, or once with both parts.
_LENGTHS: Final = 16  # Cells in which numbers and lengths of residuals are counted.
_EARLY: Final = Fraction(1, 5)  # Of rounds of single features, before the longest residual is measured again.
_PAIRS: Final = Fraction(9, 20)  # Of rounds, for pairs, where there are any.
_CHOICE: Final = Fraction(3, 25)  # Of pairs, for choosing them.
_PAIR_COUNTS: Final = Fraction(3, 50)
_BINS: Final = 32
_COARSE: Final = 4  # Groups of each feature where pairs are chosen.
_FINE: Final = 12  # The same where they are fitted.
_SURE: Final = 2.0  # Deviations of noise by which a pair must explain something.
_WITHIN: Final = 0.9  # Of residuals, are not shortened.


class Course(NamedTuple):
    """How a model is boosted."""

    rounds: int
    rate: float
    leaves: int
    has_pairs: bool
    is_rough: bool  # little is told next to noise


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoostingPlan:
    """All that a fit measures: counts of cells, sums of residuals in leaves that nothing exact has drawn.

    Guarantee   Gaussian privacy with mu^2 = `mu_squared`, for everything together.
    Theorem     Each release is Gaussian with its part of mu^2 whatever was told before; what is measured next, how
                often, and how the rest is divided may depend on that, and after each choice the rest is the same. So
                by induction from the last release to the first the squares add up to `mu_squared`. [DRS22]
    Utility     with rounds of a small rate noise is about that of one release of all features. [NCKB21]
    """

    features: int
    outputs: int
    relation: Relation
    mu_squared: Fraction
    rows: int | None  # about how many, where that is public
    has_numbers: bool
    pairs: int = 8  # at most
    rounds: int | None = None
    leaves: int | None = None

    def __post_init__(self) -> None:
        for name in ("features", "outputs"):
            settle(self, **{name: positive_integer(getattr(self, name), name=name)})
        settle(self, mu_squared=positive(self.mu_squared, name="mu_squared"))
        most = self.rounds or 40
        smallest = self.rest * _EARLY * (1 - _PAIRS) * _CHOICE / (self.features**2 * max(self.pairs, 1) * most)
        # Nothing may be refused once rows are read: the finest and the coarsest noise are tried while none is.
        for share in (smallest, self.mu_squared):
            LeafSums(outputs=1, radius=UNIT, relation=self.relation, mu_squared=share)
            CellCounts(cells=1, relation=self.relation, mu_squared=share)

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=self.mu_squared)

    @property
    def counts(self) -> CellCounts:
        """Of each feature, and of all rows where their number is not public."""
        share = self.mu_squared * _COUNTS / (self.features + (self.rows is None))
        return CellCounts(cells=CELLS, relation=self.relation, mu_squared=share)

    def reach(self, times: int) -> CellCounts:
        """Of numbers and of lengths of residuals."""
        share = self.mu_squared * _REACH * times
        return CellCounts(cells=_LENGTHS, relation=self.relation, mu_squared=share)

    @property
    def rest(self) -> Fraction:
        """What is left for trees."""
        return self.mu_squared * (1 - _COUNTS - (2 * _REACH if self.has_numbers else 0))

    def course(self, total: float) -> Course:
        """Choose by how many rows there are next to the noise of all features: the fewer, the plainer the trees."""
        told = (1 if self.has_numbers else 2) * total * math.sqrt(float(self.mu_squared) / self.features)
        leaves, pace, rounds = next(how for least, how in _COURSES if told >= least)
        rounds = self.rounds or rounds
        has_pairs = told >= _COURSES[0][0] and self.features > 1 and self.pairs > 0
        return Course(rounds, min(1.0, pace / rounds), self.leaves or leaves, has_pairs, told < _COURSES[1][0])


# What is told of the rows next to noise; and leaves of a tree, rounds times their rate, and rounds.
_COURSES: Final = (
    (1500.0, (8, 8.0, 40)),
    (600.0, (4, 8.0, 40)),
    (100.0, (4, 4.0, 20)),
    (-math.inf, (4, 2.0, 20)),
)


# --- fit ---


def boosted(
    plan: BoostingPlan, steps: Integers, target: ResidualTarget, weights: Integers | None = None
) -> AdditiveModel:
    """Fit a sum of parts to rows in steps from -HALF to HALF. It must have been paid for.

    Weights are from 0 to HEAVIEST, and the heaviest row costs what a row without weights does.
    """
    return _Booster(plan, cells_of(steps), target, weights).fit()


class _Booster:
    """One fit: private rows with their scores, and what is left of the plan's budget."""

    def __init__(
        self, plan: BoostingPlan, cells: Integers, target: ResidualTarget, weights: Integers | None = None
    ) -> None:
        self._plan, self._cells, self._target = plan, cells, target
        self._weights = None if weights is None else np.clip(weights, 0, HEAVIEST)
        self._left = plan.mu_squared
        self._start = np.zeros(target.outputs, dtype=np.int64)
        self._parts: list[AdditivePart] = []
        self._rescore()

    def fit(self) -> AdditiveModel:
        total, sizes = self._counted()
        course = self._plan.course(total)
        self._settle_reach(course, total)
        singles = self._plan.rest * (1 - _PAIRS) if course.has_pairs else self._plan.rest
        self._parts = [self._part((place,), (grouped(one, _BINS),), one) for place, one in enumerate(sizes)]
        self._boost_singles(course, singles, total)
        if course.has_pairs:
            self._add_pairs(self._plan.rest * _PAIRS, total)
        return AdditiveModel(self._start, tuple(self._parts))

    def _pay(self, event: events.GDP) -> None:
        """Keep account of what was planned and paid; more than that is never measured."""
        self._left -= event.mu_squared
        if self._left < 0:
            raise InvalidParameter("this fit would measure more than was paid for")

    def _count(self, counts: CellCounts, places: Integers) -> Floats:
        if self._weights is None:
            self._pay(counts.event)
            return counts.measure(places)
        sums = LeafSums(outputs=1, radius=HEAVIEST, relation=counts.relation, mu_squared=counts.mu_squared)
        self._pay(sums.event)
        told = sums.measure(places, self._weights[:, None], counts.cells)[:, 0]
        return np.asarray(told / HEAVIEST, dtype=np.float64)

    def _sum(self, sums: LeafSums, places: Integers, leaves: int) -> Floats:
        """Return noisy sums of residuals, in units of scores."""
        self._pay(sums.event)
        left = self._target.residuals(self._scores)
        if self._weights is not None:
            left = (left * self._weights[:, None] + HEAVIEST // 2) // HEAVIEST
        told = sums.measure(places, left, leaves)
        return np.asarray(told * self._target.step, dtype=np.float64)

    def _sums(self, mu_squared: Fraction) -> LeafSums:
        target = self._target
        return LeafSums(
            outputs=target.outputs, radius=target.radius, relation=self._plan.relation, mu_squared=mu_squared
        )

    def _counted(self) -> tuple[float, list[Floats]]:
        """Return about how many rows there are, and how many in each cell of each feature."""
        counts, total = self._plan.counts, self._plan.rows
        if total is None:
            everybody = replace(counts, cells=1)
            total = round(max(float(self._count(everybody, np.zeros(len(self._cells), dtype=np.int64))[0]), 1.0))
        found = [self._count(counts, column) for column in self._cells.T]
        return float(total), [smoothed(one, float(counts.variance), total) for one in found]

    @staticmethod
    def _part_sizes(groups: Integers, sizes: Floats) -> Floats:
        return np.bincount(groups, weights=sizes).astype(np.float64)

    def _part(self, features: tuple[int, ...], groups: tuple[Integers, ...], sizes: Floats) -> AdditivePart:
        """Make a part of zeros; `sizes` are of cells for one feature, of entries for two."""
        sizes = self._part_sizes(groups[0], sizes) if len(groups) == 1 else sizes
        return AdditivePart(features, groups, sizes, np.zeros((len(sizes), self._target.outputs), dtype=np.int64))

    def _rescore(self) -> None:
        self._scores = np.tile(self._start, (len(self._cells), 1))
        for part in self._parts:
            self._scores += part.values[part.places(self._cells)]

    # --- numbers: how long residuals are ---

    def _settle_reach(self, course: Course, total: float) -> None:
        """Start at about the median of numbers, with a reach that holds nearly all of them."""
        if not isinstance(self._target, NumberTarget):
            return
        counts = self._plan.reach(2 if course.is_rough else 1)
        places = cells_of(self._target.numbers) * _LENGTHS // CELLS
        sizes = smoothed(self._count(counts, places), float(counts.variance), total)
        ends = (np.arange(_LENGTHS + 1) / _LENGTHS * 2 - 1) * SCORE
        start = np.interp(0.5, np.concatenate([[0.0], np.cumsum(sizes) / sizes.sum()]), ends)
        self._start[:] = round(float(start))
        apart = np.abs((ends[1:] + ends[:-1]) / 2 - start) + SCORE / _LENGTHS / 2
        order = np.argsort(apart, kind="stable")
        self._shorten(apart[order], sizes[order])
        self._rescore()

    def _shorten_again(self, total: float) -> None:
        """Measure how long residuals still are, in cells that halve with every second one."""
        if not isinstance(self._target, NumberTarget):
            return
        counts, reach = self._plan.reach(1), self._target.reach
        ends = np.rint(2 * reach * 2.0 ** (np.arange(1 - _LENGTHS, 1) / 2)).astype(np.int64)
        lengths = np.abs(self._target.numbers - self._scores[:, 0])
        places = np.minimum(np.searchsorted(ends, lengths), _LENGTHS - 1)
        sizes = smoothed(self._count(counts, places), float(counts.variance), total)
        self._shorten(ends.astype(np.float64), sizes)

    def _shorten(self, lengths: Floats, sizes: Floats) -> None:
        reach = max(round(float(np.interp(_WITHIN, np.cumsum(sizes) / sizes.sum(), lengths))), SCORE // CELLS)
        self._target = NumberTarget(self._target.numbers, min(reach, 2 * HALF))  # type: ignore[attr-defined]

    # --- trees ---

    def _boost_singles(self, course: Course, mu_squared: Fraction, total: float) -> None:
        every = list(range(len(self._parts)))
        if course.is_rough or not isinstance(self._target, NumberTarget):
            return self._boost(every, mu_squared, course.rounds, course.rate, course.leaves)
        early = max(1, course.rounds // 4)
        self._boost(every, mu_squared * _EARLY, early, course.rate, course.leaves)
        self._shorten_again(total)
        later = max(1, course.rounds - early)
        return self._boost(every, mu_squared * (1 - _EARLY), later, course.rate, course.leaves)

    def _boost(self, which: Sequence[int], mu_squared: Fraction, rounds: int, rate: float, leaves: int) -> None:
        """Take a small step along every part in each round, with new cuts; the mean of the later rounds stays."""
        sums = self._sums(mu_squared / (rounds * len(which)))
        hidden = float(sums.variance) / rounds * self._target.step**2
        places = {number: self._parts[number].places(self._cells) for number in which}
        values = {number: self._parts[number].values.copy() for number in which}
        means = {number: np.zeros(values[number].shape) for number in which}
        for turn in range(rounds):
            for number in (which[place] for place in noise.permutation(len(which))):
                part = self._parts[number]
                leaf = _leaves(part.shape, leaves)
                told = self._sum(sums, leaf[places[number]], int(leaf.max()) + 1)
                moved = _moves(told, leaf, part.sizes, values[number], hidden, rate, self._target)[leaf]
                values[number] += moved
                self._scores += moved[places[number]]
            if turn >= rounds // 2:
                means = {number: means[number] + values[number] / (rounds - rounds // 2) for number in which}
        for number in which:
            settled = np.rint(means[number]).astype(np.int64)
            self._parts[number] = replace(self._parts[number], values=settled)
        self._rescore()

    # --- pairs ---

    def _add_pairs(self, mu_squared: Fraction, total: float) -> None:
        chosen = self._chosen(mu_squared * _CHOICE, total)
        if not chosen:
            return
        counts = CellCounts(cells=1, relation=self._plan.relation, mu_squared=mu_squared * _PAIR_COUNTS / len(chosen))
        first = len(self._parts)
        for pair in chosen:
            part = self._empty_pair(pair, _FINE)
            places, many = part.places(self._cells), int(np.prod(part.shape))
            sizes = nonnegative(self._count(replace(counts, cells=many), places), total)
            self._parts.append(replace(part, sizes=sizes))
        left = mu_squared * (1 - _CHOICE - _PAIR_COUNTS)
        self._boost(range(first, len(self._parts)), left, self._plan.rounds or 20, 0.3, 4)

    def _empty_pair(self, pair: tuple[int, int], groups: int) -> AdditivePart:
        """Return a table of both features; entries are taken to have rows as if the features had nothing to do."""
        singles = [self._parts[place] for place in pair]
        merged = [grouped(single.sizes, groups) for single in singles]
        one, other = (self._part_sizes(groups, single.sizes) for groups, single in zip(merged, singles, strict=True))
        sizes = (one[:, None] * other / max(float(one.sum()), 1.0)).ravel()
        cells = tuple(groups[single.groups[0]] for groups, single in zip(merged, singles, strict=True))
        return self._part(pair, cells, sizes)

    def _chosen(self, mu_squared: Fraction, total: float) -> list[tuple[int, int]]:
        """Choose pairs by how much noisy sums of residuals explain beyond what noise would."""
        pairs = list(combinations(range(self._plan.features), 2))
        sums = self._sums(mu_squared / len(pairs))
        hidden = float(sums.variance) * self._target.step**2
        told = []
        for pair in pairs:
            part = self._empty_pair(pair, _COARSE)
            sizes = np.maximum(part.sizes, total / 200)[:, None]
            found = self._sum(sums, part.places(self._cells), len(part.sizes))
            spread = math.sqrt(2 * self._target.outputs * float((1 / sizes**2).sum())) * hidden
            told.append(float(((found**2 - hidden) / sizes).sum()) / spread)
        best = sorted(range(len(pairs)), key=lambda place: -told[place])[: self._plan.pairs]
        return [pairs[place] for place in best if told[place] > _SURE]


def _leaves(shape: tuple[int, ...], leaves: int) -> Integers:
    """Cut each axis of a table at random; return the leaf of each entry."""
    found = np.zeros(1, dtype=np.int64)
    for groups in shape:
        cut = random_leaves(groups, leaves)
        found = (found[:, None] * (int(cut[-1]) + 1) + cut).ravel()
    return found


def _moves(
    told: Floats, leaf: Integers, sizes: Floats, values: Integers, hidden: float, rate: float, target: ResidualTarget
) -> Integers:
    """Return by how much each leaf moves, in steps of scores: a step of Newton's that is drawn to zero by noise.

    `hidden` is the variance of the noise that all rounds together leave on a leaf. A part of normal size next to it is
    worth a ridge of that over the rows of the leaf.
    """
    rows = np.bincount(leaf, weights=sizes, minlength=len(told))
    now = [np.bincount(leaf, weights=sizes * column, minlength=len(told)) for column in values.T / SCORE]
    weights = np.maximum(rows * target.curvature, 1e-9)[:, None]
    ridge = hidden / (weights * target.spread**2)
    steps = rate * (told - ridge * np.stack(now, axis=1) / np.maximum(rows, 1.0)[:, None]) / (weights + ridge)
    most = 5 * target.spread
    found: Integers = np.rint(np.clip(steps, -most, most) * SCORE).astype(np.int64)
    return found
