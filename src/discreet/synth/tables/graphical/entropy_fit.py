"""Fit a graphical model to noisy marginals: the distribution of largest entropy among those nearest to them. [MSM19]"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.tables.graphical.belief_propagation import (
    HALF_NEVER,
    NEVER,
    Clique,
    FactorNetwork,
    Floats,
    columns_of,
    mask_of,
    maximal,
)
from discreet.synth.tables.graphical.effects import (
    Cells,
    Effects,
    Knowledge,
    NoisyMarginal,
    Places,
    SparseMap,
    checked,
    effects_within,
    estimated_total,
    places,
)
from discreet.synth.tables.graphical.graphical_model import Graphical

__all__ = ["Forest", "Impossible", "Link", "Point", "ProximalStep", "fit", "minimise"]

# --- problem ---
# One proximal step of the fit: a smooth and strictly convex function of the effects by which potentials change.
#
#     f(change) = N log Z(base + change) - <change, value> + (ease / 2) <change, variance change>
#
# has the gradient  counts - value + ease variance change. Where that is zero, change = precision (value - counts) /
# ease:
# an implicit step of mirror descent on the loss, of length 1 / ease, from the base. [MSM19]


@dataclass(frozen=True, slots=True)
class Point:
    """What was found at one change: the function's value, its gradient, and the model's counts."""

    value: float
    gradient: Floats
    cells: Floats  # Of every factor.
    loss: float
    fault: float  # Twice the loss that the gradient, as a residual, would make.


@dataclass(frozen=True, slots=True)
class ProximalStep:
    """A network of factors, and what is known of the effects of their cliques."""

    network: FactorNetwork
    cells: Cells
    effects: Effects
    known: Knowledge
    total: float

    def at(self, base: Floats, change: Floats, ease: float) -> Point:
        """Evaluate the function of one step; it is infinite where every product would be zero."""
        log_sum, cells = self.expected(base + self.effects.carried.times(change))
        counts = self.effects.of_counts(cells)
        pull = ease * self.known.times_variance(change)
        value = self.total * log_sum - float(change @ self.known.value) + float(change @ pull) / 2
        gradient = np.where(self.known.precision > 0, counts - self.known.value + pull, 0.0)
        fault = float(gradient @ self.known.times_precision(gradient))
        if not math.isfinite(value):  # No counts that could be compared with what was measured.
            return Point(math.inf, gradient, cells, math.inf, fault)
        return Point(value, gradient, cells, self.known.loss(counts), fault)

    def expected(self, potentials: Floats) -> tuple[float, Floats]:
        """Return log Z, and the model's counts in the cells of all factors."""
        tops = np.maximum.reduceat(potentials, self.cells.starts[:-1])
        if tops.min() < HALF_NEVER:  # Scaled by its largest, a table of nothing but impossible cells looks uniform.
            return -math.inf, np.zeros_like(potentials)
        log_sum, tables = self.network.run(self.cells.tables(np.exp(potentials - self.cells.spread(tops))))
        cells = np.concatenate([table.ravel() for table in tables])
        cells *= self.total
        return log_sum + math.fsum(tops.tolist()), cells


Impossible: TypeAlias = tuple[Clique, NDArray[np.bool_]]
_T = TypeVar("_T", bound=np.generic)
_NOTHING_POSSIBLE = "no row is possible: the impossible combinations exclude all of them"
_WAY_BACK = (1.0, 0.5, 0.25, 0.125, 0.0)  # Shares of what was learned to keep, until rows can be drawn.
_EASE = 0.1  # Of a step, for noise of deviation one: by about so many deviations its pull bends what is measured.


def fit(
    sizes: Sequence[int],
    measured: Sequence[NoisyMarginal],
    *,
    total: float | None = None,
    start: Graphical | None = None,
    steps: int = 3,
    iterations: int = 300,
    tolerance: float = 1e-3,
    impossible: Iterable[Impossible] = (),
) -> Graphical:
    """Fit the model whose cliques are those that were measured.

    Every number of what was measured may be negative, and their sum too: the number of rows is then taken to be one.
    Columns of one cell take no part: they come back as tables of their own.
    One proximal step comes within a percent or so of the least loss, and every further one closer; there are at most
    `steps`, at most `iterations` belief propagations in all, and no more once a step improves the loss by less than
    `tolerance` for each measured cell. `start` is a model fitted to fewer measurements, from which the first step is
    found sooner; what it finds is the same. Rows can always be drawn from what is returned: where measurements
    contradict the impossible combinations so far that all products of potentials vanish, it stops on the way to them.
    """
    shape = tuple(int(size) for size in sizes)
    given = [checked(shape, one) for one in measured]
    rows = estimated_total(given) if total is None else max(1.0, float(total))
    never = [(tuple(clique), np.asarray(cells, dtype=bool)) for clique, cells in impossible]
    varied = _Varied(shape)
    rules = [varied.table(clique, cells) for clique, cells in never]
    if any(cells.all() for _, cells in rules):
        raise InvalidParameter(_NOTHING_POSSIBLE)
    if not varied.columns:
        return varied.model([], rows)
    told = [varied.measured(one) for one in given if varied.clique(one.clique)]
    problem = _problem(varied.inner, told, [clique for clique, _ in rules if clique], rows)
    first = last = _possible(problem, [rule for rule in rules if rule[0]])
    if told:
        limits = _Limits(steps, iterations, tolerance * int(np.count_nonzero(problem.known.precision)))
        known = [] if start is None else zip(start.cliques, start.potentials, strict=True)
        guess = _guessed(problem, first, [varied.table(*one) for one in known])
        last = _descended(problem, first, guess, limits)
    return _drawable(varied, problem, first, last)


@dataclass(frozen=True, slots=True)
class _Varied:
    """The columns of more than one cell. The others tell nothing, and would only widen the cliques of a tree."""

    sizes: tuple[int, ...]  # Of all columns.

    @property
    def columns(self) -> list[int]:
        return [column for column, size in enumerate(self.sizes) if size > 1]

    @property
    def inner(self) -> tuple[int, ...]:
        """The sizes of these columns."""
        return tuple(size for size in self.sizes if size > 1)

    def clique(self, clique: Clique) -> Clique:
        """Return these columns of a clique, by their numbers among themselves."""
        columns = self.columns
        return tuple(columns.index(column) for column in clique if self.sizes[column] > 1)

    def table(self, clique: Clique, table: NDArray[_T]) -> tuple[Clique, NDArray[_T]]:
        """Return the same table without the axes of the other columns."""
        return self.clique(clique), table.reshape([self.sizes[column] for column in clique if self.sizes[column] > 1])

    def measured(self, one: NoisyMarginal) -> NoisyMarginal:
        """Return the same measurement without the other columns."""
        return NoisyMarginal(*self.table(one.clique, one.values), one.deviation)

    def model(self, tables: Iterable[tuple[Clique, Floats]], rows: float) -> Graphical:
        """Return a model of all columns, from potentials over these."""
        columns = self.columns
        held = {tuple(columns[column] for column in clique): table.copy() for clique, table in tables}
        held |= {(column,): np.zeros(1) for column, size in enumerate(self.sizes) if size == 1}
        return Graphical(self.sizes, tuple(held), rows, tuple(held.values()))


def _possible(problem: ProximalStep, rules: list[Impossible]) -> Floats:
    """Return potentials to begin with: independent columns within the rules, or what is possible, evenly."""
    first = _laid_out(problem, _independent(problem))
    _forbid(problem, first, rules)
    if not math.isfinite(problem.expected(first)[0]):
        first = _evenly(first)
        if not math.isfinite(problem.expected(first)[0]):
            raise InvalidParameter(_NOTHING_POSSIBLE)
    return first


def _evenly(potentials: Floats) -> Floats:
    return np.where(potentials < HALF_NEVER, NEVER, 0.0)


def _drawable(varied: _Varied, problem: ProximalStep, first: Floats, last: Floats) -> Graphical:
    """Return the model of the last potentials, or the nearest on the way back to the first that rows can be drawn from.

    Messages are products of floats. Where measurements say that only impossible rows exist, potentials grow until all
    possible ones vanish beside them; public rules leave some row, and potentials of nothing but these never vanish.
    """
    for share in _WAY_BACK:
        tables = problem.cells.tables(first + share * (last - first))
        model = varied.model(zip(problem.network.scopes, tables, strict=True), problem.total)
        if model.can_be_sampled():
            return model
    tables = problem.cells.tables(_evenly(first))
    return varied.model(zip(problem.network.scopes, tables, strict=True), problem.total)


def _problem(sizes: tuple[int, ...], given: Sequence[NoisyMarginal], others: list[Clique], rows: float) -> ProximalStep:
    cliques = [one.clique for one in given] + others
    masks = [mask_of(clique) for clique in cliques] + [1 << column for column in range(len(sizes))]
    scopes = sorted(columns_of(mask) for mask in maximal(masks))
    effects = Effects.of(sizes, scopes)
    known = Knowledge.of(sizes, effects, given, rows)
    return ProximalStep(FactorNetwork.of(sizes, scopes), Cells.of(sizes, scopes), effects, known, rows)


def _guessed(problem: ProximalStep, base: Floats, known: Sequence[tuple[Clique, Floats]]) -> Floats:
    """Return the change from the base to the potentials of an earlier model, as effects."""
    if not known:
        return np.zeros(problem.effects.length)
    apart = _laid_out(problem, [one for one in known if one[0]]) - base
    apart[np.abs(apart) > -HALF_NEVER] = 0.0  # Impossible then or now.
    guess = problem.effects.centred(problem.effects.shared.transposed(apart))
    return np.where(problem.known.precision > 0, guess, 0.0)


def _laid_out(problem: ProximalStep, tables: Iterable[tuple[Clique, Floats]]) -> Floats:
    """Add tables of potentials to the first factors that have their columns; what no factor has is left out."""
    potentials = np.zeros(int(problem.cells.starts[-1]))
    for clique, table in tables:
        home = _home(problem, potentials, clique)
        if home is not None:
            np.add(home[0], table.reshape(home[1]), out=home[0])
    return potentials


def _independent(problem: ProximalStep) -> list[tuple[Clique, Floats]]:
    tables: list[tuple[Clique, Floats]] = []
    for column, size in enumerate(problem.network.sizes):
        span = problem.effects.spans[(column,)]
        floor = np.sqrt(problem.known.variance[span]) / 4 + 1e-3 * problem.total / size
        tables.append(((column,), np.log(np.maximum(problem.known.value[span] + problem.total / size, floor))))
    return tables


def _home(problem: ProximalStep, base: Floats, clique: Clique) -> tuple[Floats, tuple[int, ...]] | None:
    """Find the table of the first factor with all columns of a clique, and the clique's shape as a part of it."""
    for scope, table in zip(problem.cells.cliques, problem.cells.tables(base), strict=True):
        if set(clique) <= set(scope):
            return table, tuple(problem.network.sizes[column] if column in clique else 1 for column in scope)
    return None


def _forbid(problem: ProximalStep, base: Floats, never: list[Impossible]) -> None:
    """Set the potentials of impossible cells."""
    for clique, cells in never:
        order = sorted(range(len(clique)), key=clique.__getitem__)
        mask = cells.reshape([problem.network.sizes[column] for column in clique]).transpose(order)
        home = _home(problem, base, clique)
        if home is not None:
            np.copyto(home[0], NEVER, where=mask.reshape(home[1]))


@dataclass(frozen=True, slots=True)
class _Limits:
    steps: int
    iterations: int
    small: float  # An improvement of the loss that is not worth another step.


def _descended(problem: ProximalStep, base: Floats, guess: Floats, limits: _Limits) -> Floats:
    """Take proximal steps until the loss no longer falls."""
    forest = Forest.of(problem.network.sizes, problem.cells, problem.effects)
    ease, left, before = _EASE / _noise(problem), limits.iterations, math.inf
    curvature, measured = _EntropyCurvature.of(problem, ease), problem.known.precision > 0
    for _ in range(limits.steps):
        change, found, used = minimise(
            partial(problem.at, base, ease=ease),
            lambda here: partial(_measured_only, forest, measured, curvature.at(here)),
            guess,
            most=left,
            enough=limits.small,
        )
        left -= used
        if found.loss < before:  # It may not be if the step was cut short.
            base = base + problem.effects.carried.times(change)
        if before - found.loss <= limits.small or left <= 0:
            break
        before, guess = found.loss, np.zeros_like(guess)
    return base


def _measured_only(forest: Forest, measured: NDArray[np.bool_], curvature: Floats, slope: Floats) -> Floats:
    """Scale a gradient; effects that nothing was measured of, as those of impossible cells, stay as they are."""
    return np.where(measured, forest.scaled(slope, curvature), 0.0)


def _noise(problem: ProximalStep) -> float:
    """Return the usual deviation of a measured cell."""
    variance = problem.known.variance
    return math.sqrt(float(np.median(variance[variance > 0])))


@dataclass(frozen=True, slots=True)
class _EntropyCurvature:
    """What the second derivative is about, in the cells of all factors."""

    goal: Floats  # The counts that the effects' values describe.
    ridge: Floats

    @staticmethod
    def of(problem: ProximalStep, ease: float) -> _EntropyCurvature:
        """Prepare for one proximal step."""
        sizes = np.diff(problem.cells.starts)
        goal = problem.effects.shared.times(problem.known.value) + problem.cells.spread(problem.total / sizes)
        spread = [
            max(
                _variance(problem, effect) * math.prod(problem.network.sizes[column] for column in effect) / cells
                for effect in effects_within(clique)
            )
            for clique, cells in zip(problem.cells.cliques, sizes.tolist(), strict=True)
        ]
        return _EntropyCurvature(
            goal, problem.cells.spread(np.maximum(ease * np.array(spread), 1e-9 * problem.total / sizes))
        )

    def at(self, here: Point) -> Floats:
        """Return the mean second derivative on the way from the counts here to the goal: their logarithmic mean.

        A potential that rises by log(goal / counts) takes the one to the other, so a gradient of goal - counts divided
        by it is that step. Below, and near, the counts themselves serve.
        """
        ratio = np.clip(self.goal / np.maximum(here.cells, 1e-12), 1.0, 1e6)
        away = ratio > 1.001
        np.divide(ratio - 1, np.log(ratio, where=away, out=np.ones_like(ratio)), out=ratio, where=away)
        return here.cells * ratio + self.ridge


def _variance(problem: ProximalStep, effect: Clique) -> float:
    return float(problem.known.variance[problem.effects.spans[effect]].max())


# --- forest: A tree over the factors of a model: whose columns each factor shares with one before it. ---
#
# Unlike a junction tree it is one of the factors themselves, so nothing larger than a factor is ever made; where
# factors
# form loops it leaves some of what they share unsaid. It gives a scale for the steps of the fit, which may be rough.


@dataclass(frozen=True, slots=True)
class Link:
    """A factor, the factor it hangs from, and the columns both have."""

    child: int
    parent: int
    shared: Clique


@dataclass(frozen=True, slots=True)
class Forest:
    """Links in an order in which a factor's own link comes before those of what hangs from it."""

    effects: Effects
    links: tuple[Link, ...]
    separators: SparseMap  # From effects to counts of the cells of what is shared.
    homes: Places  # For the cells of all factors: the cell of what is shared, or one after the last.

    @staticmethod
    def of(sizes: Sequence[int], cells: Cells, effects: Effects) -> Forest:
        """Hang every factor from the one it shares most columns with; those that share none stay alone."""
        links = _links(cells.cliques)
        between = Cells.of(sizes, [link.shared for link in links])
        homes = np.full(int(cells.starts[-1]), between.starts[-1], dtype=np.int32)
        for link, start in zip(links, between.starts.tolist(), strict=False):
            span = slice(*cells.starts[link.child : link.child + 2].tolist())
            homes[span] = places(sizes, cells.cliques[link.child], link.shared, start)
        return Forest(effects, tuple(links), effects.shared_by(sizes, between.cliques), homes)

    def scaled(self, vector: Floats, curvature: Floats) -> Floats:
        """Apply an approximate inverse of the second derivative to a gradient, both as effects.

        Theorem     For a decomposable model the inverse of the covariance of its marginals is that of its cliques minus
                    that of its separators, each diagonal. With curvature c in a clique's cells and the sum of c in a
                    separator's cell the difference is positive, by the inequality of Cauchy and Schwarz. [Lau96]
        """
        sums = np.bincount(self.homes, weights=curvature, minlength=self.separators.height + 1)[:-1]
        cliques = self.effects.shared.transposed(self.effects.shared.times(vector) / curvature)
        return self.effects.centred(cliques - self.separators.transposed(self.separators.times(vector) / sums))


def _links(cliques: Sequence[Clique]) -> list[Link]:
    masks = [mask_of(clique) for clique in cliques]
    best = {place: (mask & masks[0], 0) for place, mask in enumerate(masks) if place > 0}
    links = []
    while best:
        child = max(best, key=lambda place: best[place][0].bit_count())
        shared, parent = best.pop(child)
        if shared:
            links.append(Link(child, parent, columns_of(shared)))
        for other, (held, _) in best.items():
            if (masks[other] & masks[child]).bit_count() > held.bit_count():
                best[other] = (masks[other] & masks[child], child)
    return links


# --- descent ---
# Minimise the smooth convex function of one step: L-BFGS, scaled by what each cell's curvature is near. [NW06]


_MEMORY = 8
_HALVINGS = 30
_LONGER = 4.0  # Times the last step is the most to try first: where one was too long the next mostly is too.
_SLOPE = 1e-4  # Armijo: the share of the promised decrease that a step must keep.


def minimise(
    at: Callable[[Floats], Point],
    scale: Callable[[Point], Callable[[Floats], Floats]],
    change: Floats,
    *,
    most: int,
    enough: float,
) -> tuple[Floats, Point, int]:
    """Step until the fault is small enough, or `most` points were looked at; then return the one of least loss."""
    here, used = at(change), 1
    if not math.isfinite(here.value):  # A guess so far out that every product is zero; the base itself is possible.
        change, used = np.zeros_like(change), 2
        here = at(change)
    best = (change, here)
    pairs: list[tuple[Floats, Floats, float]] = []
    length = 1.0
    while used < most and here.fault > enough:
        inverse = scale(here)
        direction = _direction(here.gradient, inverse, pairs)
        slope = float(here.gradient @ direction)
        if slope >= 0:  # Only rounding can turn it; begin again with the plain scaled gradient.
            pairs, direction = [], -inverse(here.gradient)
            slope = float(here.gradient @ direction)
        first = min(1.0, _LONGER * length)
        length, found, looked = _search(at, change, direction, here, slope, first, most - used)
        used += looked
        if found is None:
            break
        step = length * direction
        _remember(pairs, step, found.gradient - here.gradient)
        change, here = change + step, found
        if here.loss < best[1].loss:
            best = (change, here)
    return (change, here, used) if here.fault <= enough else (*best, used)


def _direction(
    gradient: Floats, inverse: Callable[[Floats], Floats], pairs: list[tuple[Floats, Floats, float]]
) -> Floats:
    """Apply the inverse of the approximate second derivative to minus the gradient."""
    vector, shares = -gradient, []
    for step, turn, product in reversed(pairs):
        share = float(step @ vector) / product
        shares.append(share)
        vector = vector - share * turn
    vector = inverse(vector)
    if pairs:
        _, turn, product = pairs[-1]
        vector *= _length(product, float(turn @ inverse(turn)))
    for (step, turn, product), share in zip(pairs, reversed(shares), strict=True):
        vector += (share - float(turn @ vector) / product) * step
    return vector


def _length(product: float, curved: float) -> float:
    """Return how long the scaled step is to be; as it is where rounding has left nothing to compare it with."""
    ratio = product / curved if curved > 0 else 1.0
    return ratio if 0 < ratio < math.inf else 1.0


def _remember(pairs: list[tuple[Floats, Floats, float]], step: Floats, turn: Floats) -> None:
    product = float(step @ turn)
    if product > 0:
        pairs.append((step, turn, product))
        del pairs[:-_MEMORY]


def _search(
    at: Callable[[Floats], Point],
    change: Floats,
    direction: Floats,
    here: Point,
    slope: float,
    length: float,
    most: int,
) -> tuple[float, Point | None, int]:
    """Shorten the step until the function has decreased as it should; nothing is found if it never does."""
    for looked in range(1, min(_HALVINGS, most) + 1):
        found = at(change + length * direction)
        decrease = here.value - found.value
        if decrease >= -_SLOPE * length * slope:
            return length, found, looked
        length *= _shorter(decrease, length * slope)
    return 0.0, None, min(_HALVINGS, most)


def _shorter(decrease: float, promised: float) -> float:
    """Return by what to shorten: to the lowest point of the parabola through what is known."""
    if not np.isfinite(decrease):
        return 0.1
    return float(np.clip(promised / (2 * (promised + decrease)), 0.1, 0.5))
