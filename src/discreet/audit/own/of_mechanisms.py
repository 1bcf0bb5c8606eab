"""One small instance of every mechanism of `dp.mechanisms`, under both relations."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from discreet.audit.own.subject import ListedSubject, small
from discreet.mechanisms import (
    AboveThreshold,
    CorrelatedGaussian,
    Count,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    GaussianNoise,
    Grid,
    Histogram,
    Laplace,
    LaplaceNoise,
    Mean,
    PermuteAndFlip,
    Proportion,
    Quantile,
    QuantileAmong,
    RandomizedResponse,
    ReportNoisyMax,
    Sum,
    TopK,
    Variance,
    VectorGaussian,
    VectorLaplace,
    VectorMean,
)
from discreet.privacy.relation import Relation
from discreet.verify import worlds

__all__ = ["of_mechanisms"]

_GRID = Grid(low=Fraction(-1), high=Fraction(2), step=Fraction(1), default=Fraction(0))
_UNIT = Grid(low=Fraction(-1), high=Fraction(1), step=Fraction(1), default=Fraction(0))
_LETTERS = ("a", "b", "c")
_NUMBERS = (-1, 0, 2)
_LOUD = GaussianNoise.for_rho(2)


def of_mechanisms() -> Iterator[ListedSubject]:
    """List them: noise on answers, choices, statistics of a column, surveys."""
    for relation in Relation:
        for mechanism in _additive(relation):
            yield _listed(mechanism, _LETTERS, 2, _counted(mechanism))
        for mechanism in _choosing(relation):
            yield _listed(mechanism, _LETTERS, 3, _letter_counts)
        for mechanism, values, most in _of_columns(relation):
            large = isinstance(mechanism, Variance) and relation is Relation.ADD_REMOVE  # Three numbers in one outcome.
            yield _listed(mechanism, values, most, None, large=large)
    response = RandomizedResponse.for_epsilon(1, categories=3)
    name = _name(response)
    yield ListedSubject(part="mechanisms", name=name, mechanism=response, worlds=worlds((0, 1, 2), (2,), ordered=True))


def _listed(mechanism: Any, values: Any, most: int, query: Any, *, large: bool = False) -> ListedSubject:
    world = small(values, mechanism.relation, most)
    name = _name(mechanism)
    return ListedSubject(part="mechanisms", name=name, mechanism=mechanism, worlds=world, query=query, large=large)


def _name(mechanism: Any) -> str:
    noise = getattr(mechanism, "noise", None)
    kind = {LaplaceNoise: ", Laplace", GaussianNoise: ", Gaussian"}.get(type(noise), "")
    kind += ", monotone" if getattr(mechanism, "monotone", False) else ""
    kind += f", {mechanism.quantile}" if isinstance(mechanism, Quantile) else ""
    return type(mechanism).__name__ + kind


def _additive(relation: Relation) -> Iterator[Any]:
    """Noise on counts of letters: one letter that changes moves two of them."""
    changed = 1 if relation is Relation.ADD_REMOVE else 2
    squared = Fraction(changed)
    yield Laplace(sensitivity=1, scale=Fraction(3, 2), relation=relation)
    yield VectorLaplace(sensitivity=changed, scale=Fraction(1, 3), dimension=2, relation=relation)
    yield Gaussian(squared_sensitivity=Fraction(1), variance=Fraction(9, 4), relation=relation)
    yield VectorGaussian(squared_sensitivity=squared, variance=Fraction(1), dimension=2, relation=relation)
    yield DiscreteGaussian(sensitivity=1, variance=Fraction(4), relation=relation)
    # The inverse of the covariance is (1, -1; -1, 2): (1, 0), (0, 1) and (1, -1) have squared norms 1, 2 and 5.
    yield CorrelatedGaussian(
        covariance=((Fraction(2), Fraction(1)), (Fraction(1), Fraction(1))),
        squared_sensitivity=Fraction(2 if relation is Relation.ADD_REMOVE else 5),
        relation=relation,
        fineness=1,
    )
    yield AboveThreshold(epsilon=Fraction(4), sensitivity=1, threshold=1, relation=relation)


def _choosing(relation: Relation) -> Iterator[Any]:
    shared: dict[str, Any] = {"candidates": 3, "relation": relation}
    both = (False, True) if relation is Relation.ADD_REMOVE else (False,)
    for monotone in both:
        yield Exponential(sensitivity=Fraction(1), epsilon=Fraction(1), monotone=monotone, **shared)
        yield PermuteAndFlip(sensitivity=Fraction(1), epsilon=Fraction(1), monotone=monotone, **shared)
        yield ReportNoisyMax(sensitivity=1, epsilon=Fraction(3), monotone=monotone, **shared)
        yield TopK(sensitivity=Fraction(1), epsilon=Fraction(1), count=2, monotone=monotone, **shared)


def _of_columns(relation: Relation) -> Iterator[tuple[Any, Any, int]]:
    size = 2 if relation is Relation.REPLACE_ONE else None
    shared: dict[str, Any] = {"relation": relation}
    rows = ((1, 0), (0, -1), (0, 0))
    for noise in (_laplace("1/2"), _LOUD):
        yield Count(noise=noise, **shared), (1, None), 3
    yield Sum(grid=_GRID, noise=_laplace(1), **shared), _NUMBERS, 3
    yield Mean(grid=_GRID, noise=_laplace(8), size=size, **shared), _NUMBERS, 2
    yield Mean(grid=_GRID, noise=_LOUD, size=size, **shared), _NUMBERS, 2
    yield Proportion(noise=_laplace(6), size=size, **shared), (True, False), 2
    yield Variance(grid=_UNIT, noise=_laplace(36 if size is None else 2), size=size, **shared), (-1, 0, 1), 2
    for noise in (_laplace(4), _LOUD):
        yield Histogram(bins=_LETTERS[:2], noise=noise, **shared), _LETTERS, 2
    loud = _laplace(24 if size is None else 6)
    yield VectorMean(bound=Fraction(1), step=Fraction(1), dimension=2, noise=loud, size=size, **shared), rows, 2
    for q in ("0", "1/2", "9/10"):
        yield Quantile(quantile=Fraction(q), epsilon=Fraction(1), grid=_GRID, **shared), (-1, 0, 1, 2), 3
    among = (_GRID.first, 0, _GRID.last)
    yield (
        QuantileAmong(candidates=among, quantile=Fraction(1, 2), epsilon=Fraction(1), grid=_GRID, **shared),
        (-1, 0, 1, 2),
        3,
    )


def _laplace(epsilon: int | str) -> LaplaceNoise:
    return LaplaceNoise(epsilon=Fraction(epsilon))


def _counted(mechanism: Any) -> Any:
    if isinstance(mechanism, AboveThreshold):
        return _letter_counts
    return _two if isinstance(mechanism, (VectorLaplace, VectorGaussian, CorrelatedGaussian)) else _one


def _letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in _LETTERS]


def _two(data: Any) -> list[int]:
    return _letter_counts(data)[:2]


def _one(data: Any) -> int:
    return int(data.count("a"))
