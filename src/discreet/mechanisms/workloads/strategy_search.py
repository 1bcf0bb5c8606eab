"""The best strategy for linear queries: what to measure with equal noise, so that all answers are sure.

Let G be the sum of w wᵀ over all queries and X = AᵀA for a strategy A, whose noise has variance one. A query has then
the variance w X⁻¹ wᵀ, their sum is tr(G X⁻¹), and a change of the cells by v costs vᵀ X v of squared sensitivity.

Theorem     For weights p of changes that sum up to one, and M the sum of p v vᵀ = L Lᵀ, every X whose changes cost at
            most one has tr(M X) ≤ 1, and of these the least tr(G X⁻¹) is the square of t = tr (Lᵀ G L)^½, for
            X = L⁻ᵀ (Lᵀ G L)^½ L⁻¹ / t, by Cauchy and Schwarz. So t² is a bound below all strategies, for any p. With
            equal weights of single cells it is the bound by singular values. [LM13]
Theorem     With s the largest vᵀ X v of that X, the strategy X / s has s t²: it is within s of the best one. Weights
            that grow where changes cost much make s fall to one. [DMRST22]
Corollary   For weights q of queries that sum up to one the same holds of G = sum of q w wᵀ and the largest variance,
            which no mean exceeds: a largest variance of s c, c the largest for X, is within s c / t² of the best.
Corollary   Of a product of matrices the best strategy is the product of the best ones: bounds and variances both
            multiply, with products of weights. [MMHM18]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.mechanisms.workloads.linear_queries import Factor, Floats

__all__ = ["Optimum", "best_for_l1", "best_for_l2", "trees"]

_NEAR = 1.005  # Times the bound is near enough,
_NEAR_LARGE = 1.015  # or so many, where a step takes seconds.
_LARGE = 256
_ROUNDS = 400
_ROUNDS_LARGE = 60
_NOTHING = 1e-12  # Of the largest eigenvalue: what rounding leaves of zero.
_LEAST = 1e-13  # Of the weight of a change, so that all of them stay in.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """A strategy by its X, whose changes cost at most one, and a bound below what any strategy reaches."""

    gram: Floats
    bound: float


@final
@dataclass(slots=True)
class _Changes:
    """Weights of what one unit can change: a cell alone, and if it may be replaced, two cells."""

    alone: Floats
    pairs: Floats | None  # Symmetric, nothing on the diagonal; each pair stands there twice, with half its weight.

    @classmethod
    def even(cls, size: int, replaced: bool) -> _Changes:
        if not replaced:
            return cls(np.full(size, 1 / size), None)
        each = 1 / (size + size * (size - 1) / 2)
        return cls(np.full(size, each), np.full((size, size), each / 2) - np.eye(size) * each / 2)

    def factor(self) -> Floats:
        """Return L: the roots of weights, where they are of single cells."""
        if self.pairs is None:
            return np.sqrt(self.alone)
        moment = np.diag(self.alone + 2 * self.pairs.sum(axis=1)) - 2 * self.pairs
        return np.asarray(np.linalg.cholesky(moment), np.float64)

    def costs(self, gram: Floats) -> tuple[Floats, Floats | None]:
        """Return what all changes cost."""
        own = np.diagonal(gram).copy()
        return own, None if self.pairs is None else own[:, None] + own[None, :] - 2 * gram

    def moved(self, own: Floats, pairs: Floats | None) -> _Changes:
        """Return weights that grow with what changes cost: by its square, which is one step where G is diagonal."""
        if self.pairs is None or pairs is None:
            alone = self.alone * own**2 + _LEAST
            return _Changes(alone / alone.sum(), None)
        alone = self.alone * own**3 + _LEAST  # Few of the pairs matter in the end: others lose their weight faster so.
        both = self.pairs * np.maximum(pairs, 0) ** 3 + _LEAST / own.size
        np.fill_diagonal(both, 0)
        total = alone.sum() + both.sum()
        return _Changes(alone / total, both / total)


def best_for_l2(queries: Factor, *, replaced: bool, largest: bool) -> Optimum:
    """Find the strategy for Gaussian noise with nearly the least sum of variances, or the least largest variance."""
    large = queries.size > _LARGE
    near, rounds = (_NEAR_LARGE, _ROUNDS_LARGE) if large else (_NEAR, _ROUNDS)
    changes = _Changes.even(queries.size, replaced)
    each = np.full(queries.answers, 1 / queries.answers if largest else 1.0)
    gram = queries.gram(each)
    best, least, bound = np.eye(queries.size), math.inf, 0.0
    for _ in range(rounds):
        factor = changes.factor()
        found, inverse, value = _least(gram, factor, needs_inverse=largest)
        own, pairs = changes.costs(found)
        cost = max(float(own.max()), float(pairs.max()) if pairs is not None else 0.0)
        reached = cost * value
        if largest and inverse is not None:
            variances = queries.squares(inverse)
            reached = cost * float(variances.max())
            each = each * (variances / variances.max())
            each = each / each.sum()
            gram = queries.gram(each)
        bound = max(bound, value)
        if reached < least:
            best, least = found / cost, reached
        if least <= near * bound:
            break
        changes = changes.moved(own, pairs)
    return Optimum(best, bound)


def _least(gram: Floats, factor: Floats, *, needs_inverse: bool) -> tuple[Floats, Floats | None, float]:
    """Return the X for weights of changes, its inverse (where G is not zero), and t²."""
    single = factor.ndim == 1
    turned = gram * np.outer(factor, factor) if single else factor.T @ gram @ factor
    values, vectors = np.linalg.eigh(turned)
    values = np.where(values > _NOTHING * values[-1], values, 0.0)
    roots = np.sqrt(values)
    total = float(roots.sum())
    root = (vectors * roots) @ vectors.T
    if single:
        found = root / np.outer(factor, factor)
    else:
        half = np.linalg.solve(factor.T, root)
        found = np.linalg.solve(factor.T, half.T)
    if not needs_inverse:
        return found / total, None, total**2
    back = vectors * factor[:, None] if single else factor @ vectors
    inverted = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    return found / total, (back * inverted) @ back.T * total, total**2


# --- pure: Strategies for Laplace noise, of which the one with the least predicted error is taken. ---


_BRANCHES = (2, 3, 4, 6, 8, 16)
_SEARCHED = 80  # Steps of a search.


def trees(size: int) -> list[Floats]:
    """Return hierarchies: all cells, and their sums by twos, fours and so on, for several numbers of branches."""
    found = []
    for branches in _BRANCHES:
        if branches < size:
            levels, width = [np.eye(size)], branches
            while width < size * branches:
                groups = np.arange(size) // min(width, size)
                levels.append((groups == np.arange(groups[-1] + 1)[:, None]).astype(np.float64))
                width *= branches
            found.append(np.concatenate(levels))
    return found


def best_for_l1(gram: Floats, rows: Floats | None = None) -> Floats:
    """Search for all cells and a few sums of them, with weights, whose sum of variances is small. [MMHM18]

    Columns have the absolute sum one. With rows T below the unit matrix, and d = 1 + the sums of the columns of T,
    the sum of variances is tr(D G D (I + TᵀT)⁻¹), D the diagonal matrix of d. The search begins at `rows` that are not
    negative, or at numbers that follow no pattern.
    """
    from scipy.optimize import minimize

    size = gram.shape[0]
    begun = _spread(max(1, size // 16), size) if rows is None else rows / rows.sum(axis=0).max()
    count, start = begun.shape[0], begun.reshape(-1)
    scale = float(np.trace(gram))

    def error(flat: Floats) -> tuple[float, Floats]:
        sums = flat.reshape(count, size)
        grown = 1 + sums.sum(axis=0)
        inner = np.linalg.inv(np.eye(count) + sums @ sums.T)
        half = inner @ sums  # T (I + TᵀT)⁻¹
        inverse = np.eye(size) - sums.T @ half
        scaled = gram * np.outer(grown, grown)
        value = float(np.sum(scaled * inverse))
        of_sums = 2 * ((gram * inverse) @ grown)
        slope = of_sums[None, :] - 2 * (half @ scaled) @ inverse
        return value / scale, slope.reshape(-1) / scale

    found = minimize(
        error,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * start.size,
        options={"maxiter": _SEARCHED},
    )
    ended = np.asarray(found.x).reshape(count, size)
    return np.asarray(np.concatenate([np.eye(size), ended]) / (1 + ended.sum(axis=0)))


def _spread(count: int, size: int) -> Floats:
    """Return numbers that are spread evenly and follow no pattern: the same in every run."""
    places = np.outer(np.arange(1, count + 1), np.arange(1, size + 1)) * ((math.sqrt(5) - 1) / 2)
    return np.asarray((places - np.floor(places)) / count)
