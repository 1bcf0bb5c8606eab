"""Several quantiles of a bounded column at once, and one quantile with an interval that holds for all data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, pairwise, product
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.balls import ball, bounds, digits, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer, probability
from discreet.formatting import plain, record
from discreet.frames.column import Data
from discreet.mechanisms.exponential import Exponential, worst_case_shortfall
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.mechanisms.order_statistics import Ranked, SortedRun
from discreet.mechanisms.parameters import read_confidence, read_flag, read_share, settle
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.release import FoundInterval, NoInterval, Release
from discreet.noise.chains import PointChain, chain_weight
from discreet.privacy import events, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["QuantileInterval", "Quantiles"]

# --- interval: A quantile, and how far around it the exact one surely lies. ---

_WIDER = Fraction(1, 2)  # What a wider interval gains in its exponent. With less the goal must be higher; measured.
_NARROWER = Fraction(1542, 1000)  # Not below 1 / (e^(1/2) - 1): the weights of all narrower ones, next to one.
_PARTS = 64  # Of a part of a rank: how finely the room for a population is counted.
_FEWEST = 400  # Rows; with fewer the room is that of so many, so that one row hardly moves it.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileInterval:
    """Choose a grid point as `Quantile` does, and then how wide an interval around it must be.

    The depth of an interval [a, b] is the least of q n - rows below a and rows at or below b - q n. Of a public list of
    widths, 0 and the roots of powers of two, that one is chosen where the depth passes a goal.

    Guarantee   epsilon, of which `share` is for the interval: two events of bounded range, or with `flips` pure ones.
    Theorem     A row moves the depth of an interval as far as that of a point, see `Quantile`. The score of width k is
                the least of depth_k - goal and goal - depth_(k-1), which moves no further, plus k / (2 factor), which
                does not move. [MT07, MS20] Let k pass the goal: then a narrower interval of a depth below 1 scores
                lower by goal - 1 and 1 / (2 factor) for each step, so that one of them is chosen with a chance of at
                most e^(-factor (goal - 1)) / (e^(1/2) - 1), half of that with `flips`, for every data set and point.
                The goal is where this is 1 - confidence. An interval of depth 1 or more holds the quantile by each of
                the usual definitions: the value at the rank q n, above it, or between the two. With `population` the
                ranks are moved outward by Bernstein's bound for binomial counts, which takes half of what may fail.
                [BLM13]
    Utility     measured: on average less than 2 times as wide as the shortest interval around the point that somebody
                could state who knows the data, from epsilon n = 1,000 on.

    Args:
        quantile: The share of rows below the wanted point, from 0 to 1.
        epsilon: What a release spends in all.
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        flips: Whether point and width are chosen by permute-and-flip, see `Quantile`.
        confidence: How surely the interval holds the quantile.
        share: The part of epsilon that the interval takes.
        population: Whether the interval is for the quantile of what the rows were drawn from, independently.

    Raises:
        InvalidParameter: If a field is out of range.

    Examples:
        >>> mechanism = dp.mechanisms.QuantileInterval(
        ...     quantile=0.5,
        ...     epsilon=1,
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.REPLACE_ONE,
        ... )
        >>> release = mechanism.release([40] * 1000)
        >>> release.value, release.interval()
        (Fraction(40, 1), (Fraction(40, 1), Fraction(40, 1)))
    """

    quantile: Fraction
    epsilon: Fraction
    grid: Grid
    relation: Relation
    flips: bool = False
    confidence: Fraction = Fraction(95, 100)
    share: Fraction = Fraction(3, 5)
    population: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            confidence=read_confidence(self.confidence),
            share=read_share(self.share, name="share"),
            population=read_flag(self.population, name="population"),
        )
        point = self.point
        settle(self, quantile=point.quantile, relation=point.relation, flips=point.flips)

    @property
    def point(self) -> Quantile:
        """How the point is chosen."""
        return Quantile(
            quantile=self.quantile,
            epsilon=self.epsilon * (1 - self.share),
            grid=self.grid,
            relation=self.relation,
            flips=self.flips,
        )

    @property
    def event(self) -> events.Composed:
        second = events.PureDP if self.flips else events.BoundedRange
        return events.Composed([self.point.event, second(self.epsilon * self.share)])

    def release(self, data: Data) -> Release[Fraction]:
        """Choose a grid point and a width."""
        sample = Ranked.of(data, self.grid)
        point = int(self.point.release(sample).value / self.grid.step)  # type: ignore[arg-type]
        low, high = self.around(sample, point)
        return Release(
            value=point * self.grid.step,
            event=self.event,
            relation=self.relation,
            accuracy=FoundInterval(low=low * self.grid.step, high=high * self.grid.step, confidence=self.confidence),
            limits=(self.grid.low, self.grid.high),
        )

    def around(self, sample: Ranked, point: int) -> tuple[int, int]:
        """Choose an interval around a grid point that was released, in steps."""
        ends = self.ends(point)
        scores = self.scores(sample, ends)
        return ends[self._chooser(len(ends)).release(scores).value]

    def distribution(self, data: Data) -> Outcomes:
        """List the law of point, lower and upper end, in steps."""
        sample = Ranked.of(data, self.grid)

        def beside(point: int) -> Outcomes:
            ends = self.ends(point)
            law = self._chooser(len(ends)).distribution(self.scores(sample, ends))
            return outcomes.map(law, lambda place: (point, *ends[place]))

        points = self.point.distribution(data)
        return outcomes.mixture((mass, beside(point)) for point, mass in points.masses.items())

    def ends(self, point: int) -> list[tuple[int, int]]:
        """List the intervals around a point, cut at the bounds, up to the first that holds all of the grid."""
        first, last = self.grid.first, self.grid.last
        found: list[tuple[int, int]] = []
        for width in _widths(self.grid.width):
            found.append((max(point - width, first), min(point + width, last)))
            if found[-1] == (first, last):
                break
        return found

    def scores(self, sample: Ranked, ends: list[tuple[int, int]]) -> list[Fraction]:
        """Return how well each interval fits the goal, in parts of a rank, and for wider ones more. This is private."""
        factor = self._chooser(len(ends)).factor
        goal, depths = self._goal(factor), self._depths(sample, ends)
        scores = []
        for place in range(len(ends)):
            sides = [depths[place] - goal] if place < len(depths) else []
            sides += [goal - depths[place - 1]] if place else []
            scores.append(min(sides, default=0) + place * _WIDER / factor)
        return scores

    def _depths(self, sample: Ranked, ends: list[tuple[int, int]]) -> list[int]:
        """Return the depths of all intervals but the last, which holds all; a bound of the grid is deep enough."""
        ordered, size = sample.ordered_values(), sample.size
        lows, highs = np.array(ends[:-1], dtype=np.int64).reshape(-1, 2).T
        below, at_most = np.searchsorted(ordered, lows, "left"), np.searchsorted(ordered, highs, "right")
        wanted, room = self.quantile.numerator * size * self._parts // self.quantile.denominator, self._room(size)
        depths = []
        for (low, high), under, upto in zip(ends[:-1], below.tolist(), at_most.tolist(), strict=True):
            sides = [wanted - room - under * self._parts] if low > self.grid.first else []
            sides += [upto * self._parts - wanted - room] if high < self.grid.last else []
            depths.append(min(sides))
        return depths

    @property
    def _parts(self) -> int:
        """How many parts of a rank are counted."""
        return self.quantile.denominator * (_PARTS if self.population else 1)

    def _goal(self, factor: Fraction) -> int:
        fails = (1 - self.confidence) / (2 if self.population else 1)
        # With permute-and-flip a candidate is chosen with at most half the chance of its coin: the best has a sure one.
        narrower = _NARROWER / 2 if self.flips else _NARROWER
        reach = worst_case_shortfall(factor=factor, candidates=narrower, confidence=1 - fails)
        return self._parts + math.ceil(reach)

    def _chooser(self, widths: int) -> Exponential | PermuteAndFlip:
        kind = PermuteAndFlip if self.flips else Exponential
        return kind(
            epsilon=self.epsilon * self.share,
            sensitivity=Fraction(self.point.sensitivity * (self._parts // self.quantile.denominator) + self._moved),
            candidates=widths,
            relation=self.relation,
        )

    @property
    def _rooted(self) -> int:
        """The square of what the room grows by with the root of the number of rows: Bernstein's 2 q (1 - q) ln(…)."""
        spread = 2 * self.quantile * (1 - self.quantile) * _logarithm(4 / (1 - self.confidence))
        return math.ceil(spread * self._parts**2)

    def _room(self, size: int) -> int:
        """Return by how many parts of a rank the ranks of a sample are off those of a population, with 1 - half."""
        if not self.population:
            return 0
        rows = max(size, _FEWEST) if self.relation is Relation.ADD_REMOVE else size
        rest = Fraction(2, 3) * _logarithm(4 / (1 - self.confidence)) * self._parts
        return math.isqrt(self._rooted * rows) + 1 + math.ceil(rest)

    @property
    def _moved(self) -> int:
        """How far one row moves the room: under add-remove at most the slope of a root, rounded up."""
        if not self.population or self.relation is not Relation.ADD_REMOVE:
            return 0
        return math.isqrt(self._rooted // (4 * _FEWEST)) + 2


@lru_cache(64)
def _widths(most: int) -> tuple[int, ...]:
    """Return 0 and the roots of powers of two, rounded down, up to a first one that is not below `most`."""
    found = [0, 1]
    power = 1
    while found[-1] < most:
        power += 1
        root = math.isqrt(1 << power)
        if root > found[-1]:
            found.append(root)
    return tuple(found)


@lru_cache(64)
def _logarithm(number: Fraction) -> Fraction:
    """Return a natural logarithm, rounded up."""
    with precision(64):
        return bounds(ball(number).log())[1].limit_denominator(10**6) + Fraction(1, 10**6)


# --- several: Quantiles at several shares: all at once, or each level of a binary search on rows of its own. ---

_MOST = 1000  # Quantiles of one release.
_LARGEST = 1 << 51  # Points of a finer grid, up or down.
_AT_ONCE = 32  # More of them are chosen by levels: the time grows with the square, and levels come near.
_RANGE = (Fraction(1, 10**12), Fraction(10**4))  # Of epsilons at which all are chosen at once.
_WHOLE = 4  # Steps of the number of rows that is chosen with the points, over the rate; finer ones change nothing.
_CONDITIONED = 0.92  # What is left of the mean error where the number of rows is known; measured.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Choose all of the wanted quantiles at once, by how many rows lie in the gaps between them.

    Points y_1 <= … <= y_m are drawn together with a number N, both by the exponential mechanism, with the score
    -(|n_1 - d_1 N| + … + |n_(m+1) - d_(m+1) N|): n_i rows lie in gap i, which is wanted to have the share d_i. N is
    forgotten; under replace-one it is the number of rows. Rows that share a value are put in random order on a finer
    grid, so that a value may be several of the quantiles. The answers never cross. With one epsilon for each of
    `levels`, the middle quantile is chosen first instead, and then those on each side among the rows of that side.

    Guarantee   epsilon, of bounded range; with levels the sum of `epsilons`, of bounded range or with `flips` pure.
    Theorem     A row lies in one gap. That it comes or goes moves the score by at most 1, for N is an outcome and does
                not move with it; that it changes, by at most 2. [GJK21, MT07] By levels: given the points above, which
                are released, each part of a level is chosen by the rows between two of them: a row that comes or goes
                changes one part, and a row that changes at most two, by one row each, or one by two; so there each
                part is chosen with half of the level's epsilon. Bounded ranges of a product add up. [KSS22, DR19] The
                finer place of a row is its own, drawn independently: what is accounted holds for each choice of them,
                and delta at an epsilon is convex, so for their mixture. [DMNS06]
    Utility     errors of ranks are those of a random walk with steps of scale 2 / epsilon (4 under replace-one) that
                ends where it began: nine quantiles have about 2 times the error of one at the whole budget, pure or
                not, and 2.7 times under replace-one.

    Args:
        quantiles: The shares, from 0 to 1, in order and without repeats.
        epsilons: What is spent: one number for all at once, or one for each level, see `Quantiles.levels`.
        grid: The bounds that values are clamped to, and the step that they are rounded to.
        relation: The neighbouring relation.
        flips: Whether the points of levels are chosen by permute-and-flip, see `Quantile`.
        fineness: Into how many places a grid point is cut to order the rows that share it.

    Raises:
        InvalidParameter: If the quantiles are not in order, or there is neither one epsilon nor one for each level.

    Examples:
        >>> mechanism = dp.mechanisms.Quantiles.for_epsilon(
        ...     1,
        ...     quantiles=(0.25, 0.5, 0.75),
        ...     grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     relation=dp.Relation.ADD_REMOVE,
        ... )
        >>> mechanism.release([40] * 1000).value
        (Fraction(40, 1), Fraction(40, 1), Fraction(40, 1))
    """

    quantiles: tuple[Fraction, ...]
    epsilons: tuple[Fraction, ...]
    grid: Grid
    relation: Relation
    flips: bool = False
    fineness: int = 1 << 16

    __repr__ = record

    def __post_init__(self) -> None:
        settle(
            self,
            quantiles=_in_order(self.quantiles),
            epsilons=tuple(positive(one, name="epsilons") for one in self.epsilons),
            flips=read_flag(self.flips, name="flips"),
            fineness=positive_integer(self.fineness, name="fineness"),
        )
        settle(self, relation=read_relation(self.relation))
        if not self._at_once and len(self.epsilons) != len(self.levels(len(self.quantiles))):
            raise InvalidParameter("epsilons must name one for all, or one for each level, see Quantiles.levels")
        if self._at_once and (self.flips or not _goes_at_once(len(self.quantiles), self.epsilons[0])):
            raise InvalidParameter(
                f"at most {_AT_ONCE} quantiles are chosen at once, by an epsilon from 1e-12 to 1e4 and without flips: "
                "name an epsilon for each level, see Quantiles.levels"
            )

    @staticmethod
    def levels(count: int) -> tuple[int, ...]:
        """Return how many of `count` quantiles are chosen on each level."""
        left, found = count, list[int]()
        while left > 0:
            found.append(min(left, 1 << len(found)))
            left -= found[-1]
        return tuple(found)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        *,
        quantiles: tuple[Number, ...],
        grid: Grid,
        relation: Relation,
        flips: bool = True,
        at_once: bool = True,
    ) -> Quantiles:
        """Spend a pure epsilon so that the mean error is least: at once, or in proportion to the root of a level's."""
        whole = positive(epsilon, name="epsilon")
        levels = cls._split(whole, 0.5, 1, quantiles, grid, relation, flips)
        return cls._best(whole, levels) if at_once else levels

    @classmethod
    def for_rho(
        cls, rho: Number, *, quantiles: tuple[Number, ...], grid: Grid, relation: Relation, at_once: bool = True
    ) -> Quantiles:
        """Spend a rho so that the mean error is least. A choice of bounded range epsilon costs epsilon^2 / 8. [DR19]"""
        whole = _root_down(8 * positive(rho, name="rho"))
        levels = cls._split(whole, 1 / 3, 2, quantiles, grid, relation, False)
        return cls._best(whole, levels) if at_once else levels

    @classmethod
    def _best(cls, whole: Fraction, levels: Quantiles) -> Quantiles:
        """Return the better of levels and of all at once, with all of epsilon.

        Where a grid is too fine to be cut into all places, rows that share a value stay together: of all points at
        once, some that lie between no rows then score as well, and there are far more of these.
        """
        at_all = len(levels.quantiles) > 1 and levels._cut == levels.fineness
        if not at_all or not _goes_at_once(len(levels.quantiles), whole):
            return levels
        at_once = replace(levels, epsilons=(whole,), flips=False)
        return min(levels, at_once, key=lambda one: one.predicted_error)

    @classmethod
    def _split(
        cls,
        whole: Fraction,
        power: float,
        norm: int,
        quantiles: tuple[Number, ...],
        grid: Grid,
        relation: Relation,
        flips: bool,
    ) -> Quantiles:
        """Give level l the part w^power of `whole`, where sum (parts^norm) = 1; errors add up as w / part."""
        wanted = _in_order(quantiles)
        parts = [float(many) ** power for many in cls.levels(len(wanted))]
        size = math.fsum(part**norm for part in parts) ** (1 / norm)
        shares = [Fraction(max(1, math.floor(part / size * 10**6)), 10**6) for part in parts]
        shares[0] += 1 - sum(shares) if norm == 1 else 0
        epsilons = tuple(whole * share for share in shares)
        return cls(quantiles=wanted, epsilons=epsilons, grid=grid, relation=relation, flips=flips)

    @property
    def event(self) -> events.Event:
        kind = events.PureDP if self.flips else events.BoundedRange
        spent = [kind(epsilon) for epsilon in self.epsilons]
        return spent[0] if len(spent) == 1 else events.Composed(spent)

    @property
    def predicted_error(self) -> float:
        """How many ranks the quantiles are off on average, about, where rows are spread evenly."""
        count, replaced = len(self.quantiles), self.relation is Relation.REPLACE_ONE
        if self._at_once:
            parts = [float(q) for q in self.quantiles]
            walks = [(j + 1) * (1 - q) ** 2 + (count - j) * q**2 for j, q in enumerate(parts)]
            known = _CONDITIONED if replaced else 1
            return known * 2 / math.sqrt(math.pi) / float(self._rate) * math.fsum(map(math.sqrt, walks)) / count
        shared = zip(self.levels(count), self.epsilons, strict=True)
        # A point is off by about 2 / epsilon in its part, and the part by as much as the points that end it.
        return (4 if replaced else 2) * math.fsum(many / float(epsilon) for many, epsilon in shared) / count

    @property
    def _at_once(self) -> bool:
        return len(self.epsilons) == 1 < len(self.quantiles)

    @property
    def _rate(self) -> Fraction:
        """What scores of all points at once are multiplied by: epsilon / (2 sensitivity)."""
        return self.epsilons[0] / (2 if self.relation is Relation.ADD_REMOVE else 4)

    @property
    def _step(self) -> int | None:
        """The public step of the numbers N to choose from; None where N is the number of rows, which is public."""
        return max(1, int(_WHOLE / self._rate)) if self.relation is Relation.ADD_REMOVE else None

    @property
    def _shares(self) -> tuple[Fraction, ...]:
        return tuple(b - a for a, b in pairwise([Fraction(0), *self.quantiles, Fraction(1)]))

    def release(self, data: Data) -> Release[tuple[Fraction, ...]]:
        """Choose a grid point for each quantile; none is below the one before it."""
        return Release(
            value=tuple(place * self.grid.step for place in self.choose(Ranked.of(data, self.grid).values)),
            event=self.event,
            relation=self.relation,
            accuracy=NoInterval(
                reason="quantiles that are chosen together have no intervals: how far the values are off depends on "
                "the data; ask for one with confidence=…"
            ),
            limits=(self.grid.low, self.grid.high),
            labels=tuple(plain(quantile) for quantile in self.quantiles),
        )

    def choose(self, indices: NDArray[np.int64]) -> tuple[int, ...]:
        """Choose grid points, in steps, for values that are on the grid."""
        ordered = np.sort(indices * self._cut + noise.uniform(self._cut, indices.size))
        found = self._chain(ordered).draw() if self._at_once else self._chosen(ordered, self._all)
        return tuple(point // self._cut for point in found)

    def distribution(self, data: Data) -> Outcomes:
        """List the law of all grid points, in steps."""
        indices = self.grid.indices(data)
        places = list(product(range(self._cut), repeat=indices.size))
        each = Fraction(1, len(places))
        finer = [np.sort(indices * self._cut + np.array(at, np.int64)) for at in places]
        laws = [self._law_at_once(one) if self._at_once else self._law(one, self._all) for one in finer]
        mixed = outcomes.mixture((each, law) for law in laws)
        return outcomes.map(mixed, lambda points: tuple(point // self._cut for point in points))

    @property
    def _cut(self) -> int:
        """Into how many places a point is cut, so that the finer grid has whole numbers of 52 bits."""
        most = _LARGEST // (max(abs(self.grid.first), abs(self.grid.last)) + 1)
        return max(1, min(self.fineness, most))

    @property
    def _all(self) -> _Stretch:
        low, high = self.grid.first * self._cut, (self.grid.last + 1) * self._cut - 1
        return _Stretch(0, len(self.quantiles), Fraction(0), Fraction(1), low, high, 0)

    def _chain(self, ordered: NDArray[np.int64]) -> PointChain:
        part = self._all
        return PointChain(ordered, part.low, part.high, self._shares, self._rate, self._step)

    def _law_at_once(self, ordered: NDArray[np.int64]) -> Outcomes:
        part, count = self._all, len(self.quantiles)
        weights = {}
        for points in combinations_with_replacement(range(part.low, part.high + 1), count):
            orders = math.factorial(count) // math.prod(math.factorial(points.count(one)) for one in set(points))
            ranks = tuple(np.searchsorted(ordered, points, "left").tolist())
            weights[points] = orders * _weight(ranks, self._shares, ordered.size, self._rate, self._step, digits())
        total = sum(weights.values(), ball(0))
        return Outcomes({points: weight / total for points, weight in weights.items()})

    def _chosen(self, ordered: NDArray[np.int64], part: _Stretch) -> tuple[int, ...]:
        if part.begin == part.end:
            return ()
        point = part.low
        if part.low < part.high:
            sample = Ranked(ordered, part.low, part.high, _sorted=[SortedRun(1, ordered)])
            point = self._middle(part)._choose(sample)
        at = int(np.searchsorted(ordered, point, "left"))
        left, right = part.split(self.quantiles, point)
        return (*self._chosen(ordered[:at], left), point, *self._chosen(ordered[at:], right))

    def _law(self, ordered: NDArray[np.int64], part: _Stretch) -> Outcomes:
        if part.begin == part.end:
            return outcomes.point(())
        chosen = outcomes.point(part.low)
        if part.low < part.high:
            chosen = self._middle(part).distribution(ordered)

        def beside(point: int) -> Outcomes:
            at = int(np.searchsorted(ordered, point, "left"))
            left, right = part.split(self.quantiles, point)
            both = outcomes.product(self._law(ordered[:at], left), self._law(ordered[at:], right))
            return outcomes.map(both, lambda sides: (*sides[0], point, *sides[1]))

        return outcomes.mixture((mass, beside(point)) for point, mass in chosen.masses.items())

    def _middle(self, part: _Stretch) -> Quantile:
        """Return what chooses the middle quantile of a part: its share of the rows that are in the part."""
        epsilon = self.epsilons[part.level]
        return Quantile(
            quantile=part.relative(self.quantiles[part.middle]),
            epsilon=epsilon if self.relation is Relation.ADD_REMOVE else epsilon / 2,
            grid=Grid(low=part.low, high=part.high, step=1, default=part.low),  # type: ignore[arg-type]
            relation=Relation.ADD_REMOVE,
            flips=self.flips,
        )


@final
@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some neighbouring quantiles, and the points and shares of all rows between which they lie."""

    begin: int
    end: int
    share_below: Fraction
    share_above: Fraction
    low: int
    high: int
    level: int

    @property
    def middle(self) -> int:
        return (self.begin + self.end) // 2

    def relative(self, quantile: Fraction) -> Fraction:
        return (quantile - self.share_below) / (self.share_above - self.share_below)

    def split(self, quantiles: tuple[Fraction, ...], point: int) -> tuple[_Stretch, _Stretch]:
        middle, share = self.middle, quantiles[self.middle]
        return (
            _Stretch(self.begin, middle, self.share_below, share, self.low, point, self.level + 1),
            _Stretch(middle + 1, self.end, share, self.share_above, point, self.high, self.level + 1),
        )


@lru_cache(1 << 16)
def _weight(
    ranks: tuple[int, ...], shares: tuple[Fraction, ...], size: int, rate: Fraction, step: int | None, _digits: int
) -> arb:
    """Enclose the weight of points that so many rows lie below, over all N, with so many digits."""

    def of(total: int) -> arb:
        return ball(-rate * chain_weight(ranks, shares, size, total)).exp()

    if step is None:
        return of(size)
    rows = [b - a for a, b in pairwise([0, *ranks, size])]
    last = max(math.ceil(many / share) for many, share in zip(rows, shares, strict=True) if share)
    inside = sum((of(step * place) for place in range(1, last // step + 2)), ball(0))
    # From zero down, and from where every gap is wanted to have more rows than it has, the weights fall evenly.
    return inside + (of(0) + of(step * (last // step + 2))) / (1 - ball(-rate * step).exp())


def _goes_at_once(count: int, epsilon: Fraction) -> bool:
    return count <= _AT_ONCE and _RANGE[0] <= epsilon <= _RANGE[1]


def _in_order(quantiles: Any) -> tuple[Fraction, ...]:
    wanted = tuple(probability(one, name="quantiles") for one in quantiles)
    if not 0 < len(wanted) <= _MOST or any(a >= b for a, b in pairwise(wanted)):
        raise InvalidParameter(f"quantiles must be 1 to {_MOST:,} numbers from 0 to 1, in order and without repeats")
    return wanted


def _root_down(square: Fraction) -> Fraction:
    """Return a root, rounded down."""
    return Fraction(math.isqrt(int(square * 10**18)), 10**9)
