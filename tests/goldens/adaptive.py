"""Noise that follows the data: smooth and local bounds, tests before release, unlisted keys, graphs and blocks."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import discreet as dp
from discreet.adaptive.approximate_recipes import classical_gaussian, classical_laplace
from discreet.adaptive.bounded_memberships import Memberships
from discreet.adaptive.choosing_mechanism import PointFunctionLearner
from discreet.adaptive.local_sensitivity_bounds import LocalQuery
from discreet.adaptive.subsample_aggregate import blocks_needed

from .flow import Flow
from .made_up import AGES, CITIES, RELATIONS

__all__ = ["flows"]

_A = dp.adaptive
_GRID = dp.mechanisms.Grid.between(0, 120, step="0.1")
_SIZE = len(AGES)
_ONE, _HALF, _DELTA = Fraction(1), Fraction(1, 2), Fraction(1, 10**6)
_REPLACE = dp.Relation.REPLACE_ONE
_EDGES = [(a, b) for a in range(40) for b in range(a + 1, 40) if (a * b) % 7 < 3]


def flows() -> Iterator[Flow]:
    """Every part of the adaptive floor."""
    yield from _recipes()
    yield from _smooth()
    for word, relation in RELATIONS.items():
        yield from _tested(word, relation)
        yield from _stable(word, relation)
        yield from _keys(word, relation)
        yield from _sensitivities(word, relation)
    yield from _graphs()
    yield from _blocks()


def _made() -> dict[str, Any]:
    return {
        "polynomial": lambda: _A.polynomial(1, beta="0.1"),
        "power": lambda: _A.power(1, beta="0.1"),
        "student": lambda: _A.student(1, beta="0.1"),
        "laplace": lambda: _A.laplace(1, _DELTA, beta="0.01"),
        "gaussian": lambda: _A.gaussian(1, _DELTA, beta="0.01"),
        "classical laplace": lambda: classical_laplace("0.9", _DELTA),
        "classical gaussian": lambda: classical_gaussian("0.9", _DELTA),
        "laplace log normal": lambda: _A.laplace_log_normal("0.5", beta="0.1"),
    }


def _recipes() -> Iterator[Flow]:
    for name, make in _made().items():
        yield Flow(f"recipe {name}", lambda make=make: _recipe(make()), rounded=True)
        yield Flow(f"median by {name}", lambda make=make: _by(make()), rounded=True)
    yield Flow("best recipe", lambda: _recipe(_A.best_recipe(lambda beta: _A.student(1, beta=beta))), rounded=True)
    yield Flow("blocks needed", lambda: [blocks_needed(epsilon=e, delta="1e-6") for e in ("0.1", 1, 5)])
    yield Flow(
        "partition probability",
        lambda: [_A.partition_probability(n, epsilon="0.5", delta="1e-5") for n in (0, 1, 5, 20, 50)],
    )


def _recipe(recipe: Any) -> list[Any]:
    return [recipe.alpha, recipe.beta, recipe.event, recipe.dimension, recipe.norm]


def _by(recipe: Any) -> Any:
    query = _A.median_query(grid=_GRID, relation=_REPLACE, public_rows=_SIZE)
    return _A.SmoothSensitivityMechanism(query=query, recipe=recipe).release(AGES)


def _smooth() -> Iterator[Flow]:
    recipe = _A.polynomial(1, beta="0.1")
    queries = {
        "median": lambda: _A.median_query(grid=_GRID, relation=_REPLACE, public_rows=_SIZE),
        "median of unknown size": lambda: _A.median_query(grid=_GRID, relation=dp.Relation.ADD_REMOVE),
        "quantile by rank": lambda: _A.quantile_query(grid=_GRID, relation=_REPLACE, rank=700, public_rows=_SIZE),
        "quantile": lambda: _A.quantile_query(grid=_GRID, relation=dp.Relation.ADD_REMOVE, q="0.9"),
        "trimmed mean": lambda: _A.trimmed_mean_query(grid=_GRID, public_rows=_SIZE, trimmed=80),
        "winsorised mean": lambda: _A.winsorised_mean_query(grid=_GRID, public_rows=_SIZE, moved=80),
    }
    for name, make in queries.items():
        yield Flow(
            f"smooth {name}",
            lambda make=make: _A.SmoothSensitivityMechanism(query=make(), recipe=recipe).release(AGES),
            rounded=True,
        )
        yield Flow(f"privately bounded smooth {name}", lambda make=make: _bounded_smooth(make()), rounded=True)
    yield Flow("bounded local", lambda: _bounded_local(), rounded=True)


def _bounded_smooth(query: Any) -> Any:
    how = {"beta": Fraction(1, 10), "epsilon": _ONE, "delta": _DELTA}
    return _A.BoundedSmoothSensitivity(query=query, **how).release(AGES)


def _bounded_local() -> Any:
    query = LocalQuery(value=_number, local_sensitivity=lambda _: 3, change=1, grid=_GRID, relation=_REPLACE)
    return _A.BoundedLocalSensitivity(query=query, epsilon=_ONE, delta=_DELTA).release(AGES)


def _number(data: Any) -> int:
    return sum(age > 40 for age in data)


def _tested(word: str, relation: dp.Relation) -> Iterator[Flow]:
    both: dict[str, Any] = {"grid": _GRID, "epsilon": 1, "delta": "1e-6"}
    size = {"public_rows": _SIZE} if relation is _REPLACE else {}
    yield Flow(
        f"propose median, {word}",
        lambda: _A.propose_median(bound=10, relation=relation, **both, **size).release(AGES),
    )
    yield Flow(
        f"propose too small a bound, {word}",
        lambda: _A.propose_median(bound="0.1", relation=relation, **both, **size).release(AGES),
    )
    if relation is _REPLACE:
        yield Flow("propose quantile", lambda: _A.propose_quantile("0.9", bound=10, **both, **size).release(AGES))
        yield Flow(
            "propose trimmed mean",
            lambda: _A.propose_trimmed_mean(trimmed=80, bound="0.1", **both, **size).release(AGES),
        )
        yield Flow(
            "propose interquartile range",
            lambda: _A.propose_interquartile_range(**both, **size).release(AGES),
            rounded=True,
        )
    yield Flow(
        f"clipped mean, {word}",
        lambda: _A.ClippedMean(grid=_GRID, relation=relation, epsilon=_ONE, delta=_DELTA, **size).release(AGES),
        rounded=True,
    )


def _stable(word: str, relation: dp.Relation) -> Iterator[Flow]:
    at: dict[str, Any] = {"epsilon": _ONE, "delta": _DELTA, "relation": relation}
    scores = [3, 90, 20, 4]
    yield Flow(f"stable mode, {word}", lambda: _A.StableMode(domain=("Bern", "Chur"), **at).release(CITIES))
    yield Flow(f"stable mode unlisted, {word}", lambda: _A.StableMode(domain=None, **at).release(CITIES))
    yield Flow(f"stable selection, {word}", lambda: _selected(at, scores))
    yield Flow(f"point function, {word}", lambda: _learned(at))
    yield Flow(f"choosing, {word}", lambda: _A.Choosing(growth=1, **at).release({"a": 90, "b": 3, "c": 40}))


def _selected(at: dict[str, Any], scores: list[int]) -> Any:
    return _A.StableSelection(sensitivity=1, candidates=4, **at).release(scores)


def _learned(at: dict[str, Any]) -> Any:
    examples = [(place % 50, place % 50 == 7) for place in range(600)]
    return str(PointFunctionLearner(**at).release(examples))


def _keys(word: str, relation: dp.Relation) -> Iterator[Flow]:
    data = [*CITIES, "alone", "two", "two"]
    at: dict[str, Any] = {"relation": relation}
    yield Flow(f"truncated laplace, {word}", lambda: _A.TruncatedHistogram.laplace(1, "1e-6", **at).release(data))
    yield Flow(
        f"truncated gaussian, {word}",
        lambda: _A.TruncatedHistogram(
            noise=dp.mechanisms.GaussianNoise.for_epsilon(1, "1e-6"), delta=_DELTA, **at
        ).release(data),
    )
    yield Flow(
        f"optimal partition selection, {word}",
        lambda: _A.OptimalPartitionSelection(epsilon=_HALF, delta=_DELTA, **at).release(data),
    )
    yield Flow(
        f"memberships, {word}",
        lambda: _A.TruncatedHistogram.laplace(1, "1e-6", bins_per_unit=2, **at).release(
            Memberships([place % 300 for place in range(801)], CITIES)
        ),
    )


def _sensitivities(word: str, relation: dp.Relation) -> Iterator[Flow]:
    at: dict[str, Any] = {"bounds": (0, 120), "step": "0.1", "relation": relation}
    for name, how in {"q": {"q": "1/2"}, "rank": {"rank": 300}}.items():
        yield Flow(f"local sensitivity {name}, {word}", lambda how=how: _A.local_sensitivity(AGES, **how, **at))
        yield Flow(
            f"smooth sensitivity {name}, {word}",
            lambda how=how: _A.smooth_sensitivity(AGES, beta="0.1", **how, **at),
            rounded=True,
        )


def _graphs() -> Iterator[Flow]:
    for offer, budget in {"ε": {"epsilon": 1}, "ε and δ": {"epsilon": 1, "delta": "1e-6"}}.items():
        how: dict[str, Any] = {"nodes": 300, **budget}
        yield Flow(f"triangles {offer}", lambda how=how: _A.triangles(_EDGES, **how), rounded=True)
        yield Flow(f"stars {offer}", lambda how=how: _A.stars(_EDGES, leaves=2, **how), rounded=True)
        yield Flow(f"degrees {offer}", lambda how=how: _A.degree_histogram(_EDGES, largest=5, **how))
        yield Flow(
            f"degrees at least {offer}",
            lambda how=how: _A.degree_histogram(_EDGES, largest=5, at_least=True, **how),
        )


def _blocks() -> Iterator[Flow]:
    recipe = _A.polynomial(1, beta="0.1")
    made = {
        "median": lambda: _A.block_median(blocks=51, grid=_GRID, recipe=recipe),
        "trimmed mean": lambda: _A.block_trimmed_mean(blocks=51, grid=_GRID, recipe=recipe, trimmed=10),
        "winsorised mean": lambda: _A.block_winsorised_mean(blocks=51, grid=_GRID, recipe=recipe, moved=10),
        "mode": lambda: _A.BlockMode(blocks=51, domain=None, epsilon=_ONE, delta=_DELTA),
    }
    for name, make in made.items():
        yield Flow(f"blocks {name}", lambda make=make: _aggregated(make()), rounded=True)
    yield Flow("blocks stable", lambda: _agreed(), rounded=True)


def _aggregated(aggregator: Any) -> Any:
    how = {"relation": dp.Relation.ADD_REMOVE, "trusted": True}
    return _A.SubsampleAndAggregate(function=statistics.median, aggregator=aggregator, **how).release(AGES * 4)


def _agreed() -> Any:
    how: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "relation": dp.Relation.ADD_REMOVE, "trusted": True}
    made = _A.release_if_subsampling_stable(lambda data: statistics.median(data) > 40, **how)
    return made.release(AGES * 40)
