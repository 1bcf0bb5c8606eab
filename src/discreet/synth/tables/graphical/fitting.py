"""Fit a graphical model to noisy marginals: the distribution of largest entropy among those nearest to them. [MSM19]"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.descent import minimise
from discreet.synth.tables.graphical.effects import Effects
from discreet.synth.tables.graphical.forest import Forest
from discreet.synth.tables.graphical.junction import Clique, columns_of, mask_of, maximal
from discreet.synth.tables.graphical.knowledge import Knowledge
from discreet.synth.tables.graphical.measured import Measured, checked, estimated_total
from discreet.synth.tables.graphical.model import Graphical
from discreet.synth.tables.graphical.network import NEVER, Network
from discreet.synth.tables.graphical.problem import Point, Problem

__all__ = ["Impossible", "fit"]

Impossible: TypeAlias = tuple[Clique, NDArray[np.bool_]]
_EASE = (1.0, 0.3, 0.1)  # Of the steps, in deviations of the noise: the first ones short, the others long.


def fit(
    sizes: Sequence[int],
    measured: Sequence[Measured],
    *,
    total: float | None = None,
    start: Graphical | None = None,
    iterations: int = 200,
    tolerance: float = 1e-3,
    impossible: Iterable[Impossible] = (),
) -> Graphical:
    """Fit the model whose cliques are those that were measured.

    Every number of what was measured may be negative, and their sum too: the number of rows is then taken to be one.
    `iterations` is the most belief propagations to run; the fit ends earlier when a whole proximal step improves the
    loss by less than `tolerance` for each measured cell. `start` is an earlier model to go on from.
    """
    shape = tuple(int(size) for size in sizes)
    given = [checked(shape, one) for one in measured]
    rows = estimated_total(given) if total is None else max(1.0, float(total))
    never = [(tuple(clique), np.asarray(cells, dtype=bool)) for clique, cells in impossible]
    problem = _problem(shape, given, [clique for clique, _ in never], rows)
    forest = Forest.of(shape, problem.network.scopes, problem.effects)
    base = _forbidden(shape, problem.network.scopes, _first(problem, start), never)
    if not math.isfinite(problem.tables([table.copy() for table in base])[0]):
        raise InvalidParameter("no row is possible: the impossible combinations exclude all of them")
    if given:
        base = _descended(problem, forest, base, iterations, tolerance)
    return Graphical(shape, problem.network.scopes, rows, tuple(base))


def _problem(sizes: tuple[int, ...], given: Sequence[Measured], others: list[Clique], rows: float) -> Problem:
    cliques = [one.clique for one in given] + others
    masks = [mask_of(clique) for clique in cliques] + [1 << column for column in range(len(sizes))]
    scopes = sorted(columns_of(mask) for mask in maximal(masks))
    effects = Effects.of(sizes, scopes)
    return Problem(Network.of(sizes, scopes), effects, Knowledge.of(effects, given, rows), rows)


def _first(problem: Problem, start: Graphical | None) -> list[Floats]:
    """Return the potentials to begin with: of an earlier model, or of independent columns."""
    network = problem.network
    base = [np.zeros([network.sizes[column] for column in scope]) for scope in network.scopes]
    begun = _independent(problem) if start is None else list(zip(start.cliques, start.potentials, strict=True))
    for clique, table in begun:
        _add(network, base, clique, table)
    return base


def _independent(problem: Problem) -> list[tuple[Clique, Floats]]:
    tables: list[tuple[Clique, Floats]] = []
    for column, size in enumerate(problem.network.sizes):
        span = problem.effects.spans[(column,)]
        floor = np.sqrt(problem.known.variance[span]) / 4 + 1e-3 * problem.total / size
        tables.append(((column,), np.log(np.maximum(problem.known.value[span] + problem.total / size, floor))))
    return tables


def _add(network: Network, base: list[Floats], clique: Clique, table: Floats) -> None:
    """Add a table to the first factor that has all its columns; a clique that none has is left out."""
    for place, scope in enumerate(network.scopes):
        if set(clique) <= set(scope):
            base[place] += table.reshape([network.sizes[column] if column in clique else 1 for column in scope])
            return


def _forbidden(
    sizes: tuple[int, ...], scopes: Sequence[Clique], base: list[Floats], never: list[tuple[Clique, NDArray[np.bool_]]]
) -> list[Floats]:
    """Set the potentials of impossible cells."""
    for clique, cells in never:
        order = sorted(range(len(clique)), key=clique.__getitem__)
        mask = cells.reshape([sizes[column] for column in clique]).transpose(order)
        home = next(place for place, scope in enumerate(scopes) if set(clique) <= set(scope))
        wide = mask.reshape([sizes[column] if column in clique else 1 for column in scopes[home]])
        np.copyto(base[home], NEVER, where=wide)
    return base


@dataclass(slots=True)
class _Spent:
    """How many belief propagations may still run."""

    left: int


def _descended(problem: Problem, forest: Forest, base: list[Floats], iterations: int, tolerance: float) -> list[Floats]:
    """Take proximal steps until the loss no longer falls."""
    spent, noise, before = _Spent(iterations), _noise(problem), math.inf
    small = tolerance * int(np.count_nonzero(problem.known.precision))
    for step in range(iterations):
        ease = _EASE[min(step, len(_EASE) - 1)] / noise
        moved, loss = _step(problem, forest, base, ease, spent, small)
        if loss < before:  # It is not if the step was cut short.
            base = moved
        if before - loss <= small or spent.left <= 0:
            break
        before = loss
    return base


def _step(
    problem: Problem, forest: Forest, base: list[Floats], ease: float, spent: _Spent, small: float
) -> tuple[list[Floats], float]:
    """Take one proximal step; return the potentials, and the loss there."""
    base = forest.settle(base)
    nothing = np.zeros(problem.effects.length)
    goals = [
        layout.counts(problem.known.value) + problem.total / math.prod(layout.shape) for layout in problem.effects.full
    ]
    change, found, used = minimise(
        lambda change: problem.at(base, change, ease),
        lambda here: partial(forest.scaled, curvatures=_curvatures(problem, here, goals, ease)),
        nothing,
        problem.at(base, nothing, ease),
        most=spent.left,
        enough=lambda here: float(here.gradient @ problem.known.times_precision(here.gradient)) <= small,
    )
    spent.left -= used + 1
    return problem.moved(base, change), problem.known.loss(found.counts)


def _noise(problem: Problem) -> float:
    """Return the usual deviation of a measured cell."""
    variance = problem.known.variance
    return math.sqrt(float(np.median(variance[variance > 0])))


def _curvatures(problem: Problem, here: Point, goals: Sequence[Floats], ease: float) -> list[Floats]:
    curvatures = []
    for layout, counts, goal in zip(problem.effects.full, here.tables, goals, strict=True):
        spread = max(float(problem.known.variance[place.span].max()) / place.shared for place in layout.places)
        curvatures.append(_curvature(counts, goal) + max(ease * spread, 1e-9 * problem.total / counts.size))
    return curvatures


def _curvature(counts: Floats, goal: Floats) -> Floats:
    """Return the mean second derivative on the way from some counts to others: the logarithmic mean of both.

    A potential that rises by log(goal / counts) takes the one to the other, so a gradient of goal - counts divided by
    it is that step. Below, and near, the counts themselves serve.
    """
    ratio = np.clip(goal / np.maximum(counts, 1e-12), 1.0, 1e6)
    away = ratio > 1.001
    np.divide(ratio - 1, np.log(ratio, where=away, out=np.ones_like(ratio)), out=ratio, where=away)
    return counts * ratio
