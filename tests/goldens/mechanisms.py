"""Every mechanism, under both relations where it has both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import discreet as dp

from .flow import Flow, Said, released
from .made_up import AGES, CITIES, RELATIONS, WAITS

__all__ = ["flows"]

_M = dp.mechanisms
_GRID = _M.Grid.between(0, 240, step="0.1")
_COARSE = _M.Grid.between(0, 120, step=1)
_NOISES = {
    "laplace": _M.LaplaceNoise(epsilon=Fraction(1, 2)),
    "gaussian": _M.GaussianNoise.for_epsilon("0.5", "1e-6"),
    "rho": _M.GaussianNoise.for_rho("0.05"),
}
_SCORES = [(17 * place) % 23 for place in range(30)]
_VECTORS = [[(7 * place) % 11 - 5, (5 * place) % 13 - 6, place % 3] for place in range(300)]


def flows() -> Iterator[Flow]:
    """Every mechanism."""
    for word, relation in RELATIONS.items():
        for name, mechanism, data in (*_with_noise(relation), *_additive(relation), *_choosing(relation)):
            yield Flow(f"{name}, {word}", lambda mechanism=mechanism, data=data: _released(mechanism(), data))
    yield from _local()
    yield from _grids()


def _released(mechanism: Any, data: Any) -> Said:
    """Release twice."""
    parts = [released(mechanism.release(data)) for _ in range(2)]
    return Said([part.numbers for part in parts] + [mechanism.event], [part.texts for part in parts])


_Case = tuple[str, Callable[[], Any], Any]


def _with_noise(relation: dp.Relation) -> Iterator[_Case]:
    fixed = 801 if relation is dp.Relation.REPLACE_ONE else None
    for word, noise in _NOISES.items():
        both = {"relation": relation, "noise": noise}
        sized = {**both, "public_rows": fixed}
        yield f"Count {word}", lambda both=both: _M.Count(**both), AGES
        yield f"Sum {word}", lambda both=both: _M.Sum(grid=_GRID, **both), WAITS
        yield f"Mean {word}", lambda sized=sized: _M.Mean(grid=_GRID, **sized), WAITS
        yield f"Variance {word}", lambda sized=sized: _M.Variance(grid=_COARSE, **sized), AGES
        yield f"Proportion {word}", lambda sized=sized: _M.Proportion(**sized), [age > 40 for age in AGES]
        yield f"Histogram {word}", lambda both=both: _M.Histogram(bins=("Bern", "Chur", "Zug"), **both), CITIES
        yield f"VectorMean {word}", lambda sized=sized: _vector_mean(sized), _VECTORS


def _vector_mean(how: dict[str, Any]) -> Any:
    size = None if how["public_rows"] is None else len(_VECTORS)
    return _M.VectorMean(bound=Fraction(8), step=Fraction(1, 100), dimension=3, **{**how, "public_rows": size})


def _additive(relation: dp.Relation) -> Iterator[_Case]:
    at = {"relation": relation}
    third, seven = Fraction(1, 3), Fraction(7)
    yield "Laplace", lambda: _M.Laplace(sensitivity=3, scale=seven, **at), 1000
    yield "Laplace for ε", lambda: _M.Laplace.for_epsilon("0.1", sensitivity=3, **at), 1000
    yield "VectorLaplace", lambda: _M.VectorLaplace(sensitivity=2, scale=seven, dimension=4, **at), (1, 20, 300, 4000)
    yield "Gaussian", lambda: _M.Gaussian(squared_sensitivity=seven, variance=seven * 100, **at), -5
    yield (
        "VectorGaussian",
        lambda: _M.VectorGaussian(squared_sensitivity=Fraction(4), variance=seven * 90, dimension=3, **at),
        (1, 2, 3),
    )
    yield "DiscreteGaussian", lambda: _M.DiscreteGaussian(sensitivity=2, variance=seven + third, **at), 12
    matrix = ((Fraction(50), Fraction(10)), (Fraction(10), Fraction(40)))
    yield (
        "CorrelatedGaussian",
        lambda: _M.CorrelatedGaussian(covariance=matrix, squared_sensitivity=Fraction(2), **at),
        (100, 200),
    )


def _choosing(relation: dp.Relation) -> Iterator[_Case]:
    one = {"epsilon": Fraction(1, 2), "relation": relation}
    scored = {**one, "sensitivity": Fraction(1), "candidates": 30}
    for word, monotone in (("", False), (" monotone", True)):
        how = {**scored, "monotone": monotone}
        yield f"Exponential{word}", lambda how=how: _M.Exponential(**how), _SCORES
        yield f"PermuteAndFlip{word}", lambda how=how: _M.PermuteAndFlip(**how), _SCORES
        yield f"ReportNoisyMax{word}", lambda how=how: _M.ReportNoisyMax(**{**how, "sensitivity": 1}), _SCORES
        yield f"TopK{word}", lambda how=how: _M.TopK(count=4, **how), _SCORES
        yield (
            f"AboveThreshold{word}",
            lambda monotone=monotone: _M.AboveThreshold(
                sensitivity=1, threshold=18, positives=3, monotone=monotone, **one
            ),
            _SCORES,
        )
    for quantile in ("0", "1/10", "1/2", "99/100"):
        q = Fraction(quantile)
        yield f"Quantile {quantile}", lambda q=q: _M.Quantile(quantile=q, grid=_GRID, **one), WAITS
        yield (
            f"QuantileAmong {quantile}",
            lambda q=q: _M.QuantileAmong(candidates=(0, 300, 900, 1700, 2400), quantile=q, grid=_GRID, **one),
            WAITS,
        )


def _local() -> Iterator[Flow]:
    for epsilon, categories in (("1", 2), ("1/3", 5), ("4", 3)):
        mechanism = _M.RandomizedResponse.for_epsilon(epsilon, categories=categories)
        answers = [place % categories for place in range(200)]
        yield Flow(f"RandomizedResponse {epsilon}", lambda m=mechanism, a=answers: m.release(a))
        yield Flow(f"estimate {epsilon}", lambda m=mechanism, a=answers: _M.estimate(m.respond_all(a), m))
    warner = _M.RandomizedResponse.warner()
    yield Flow("Respondent", lambda: _remembered(_M.Respondent(warner)))


def _remembered(respondent: Any) -> list[int]:
    return [respondent.answer(question, 1) for question in ("a", "b", "a", "c", "b", "a")]


def _grids() -> Iterator[Flow]:
    values = [None, "7.25", -3, 1e9, float("nan"), Fraction(1, 3), "x", 119.95]
    for step in ("1", "0.1", "1/4"):
        grid = _M.Grid.between(0, 120, step=step)
        yield Flow(f"grid of step {step}", lambda grid=grid: [grid, grid.indices(values)])
    yield Flow("grid without a step", lambda: [_M.Grid.between(0, 120), _M.Grid.between("-1/3", 7)])
