"""The functions for people in a hurry, with every kind of budget and every method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import discreet as dp

from .flow import Flow, Said
from .made_up import AGES, CITIES, RELATIONS, WAITS, matrix

__all__ = ["flows"]

_BUDGETS: dict[str, dict[str, Any]] = {
    "ε": {"epsilon": "0.5"},
    "ε and δ": {"epsilon": "0.5", "delta": "1e-6"},
    "ρ": {"rho": "0.02"},
}
_TRUE = [age > 40 for age in AGES]
_PLACES = ("Bern", "Basel", "Chur", "Genf")
_ROWS = [[(7 * place) % 11 - 5, (5 * place) % 13 - 6] for place in range(400)]


def flows() -> Iterator[Flow]:
    """Every function."""
    for word, relation in RELATIONS.items():
        sized = {} if relation is dp.Relation.ADD_REMOVE else {"public_rows": 801}
        for offer, budget in _BUDGETS.items():
            yield from _additive(f"{word}, {offer}", {"relation": relation, **budget}, sized)
        yield from _ranked(word, relation, sized)
        yield from _chosen(word, relation)
        yield from _compared(word, relation)


def _additive(word: str, how: dict[str, Any], sized: dict[str, int]) -> Iterator[Flow]:
    yield Flow(f"count {word}", lambda: dp.count(AGES, **how))
    yield Flow(f"sum {word}", lambda: dp.sum(WAITS, bounds=(0, 240), step="0.1", **how))
    yield Flow(f"sum without a step {word}", lambda: dp.sum(AGES, bounds=(0, 120), **how))
    yield Flow(f"mean {word}", lambda: dp.mean(AGES, bounds=(0, 120), **how, **sized))
    yield Flow(f"mean with missing {word}", lambda: dp.mean([*AGES, None], bounds=(0, 120), missing=30, **how))
    yield Flow(f"variance {word}", lambda: dp.variance(AGES, bounds=(0, 120), **how, **sized))
    yield Flow(f"proportion {word}", lambda: dp.proportion(_TRUE, **how, **sized))
    yield Flow(f"histogram {word}", lambda: dp.histogram(CITIES, bins=_PLACES, **how))
    yield Flow(f"histogram by edges {word}", lambda: dp.histogram(AGES, edges=[0, 20, 40, 65, 120], **how))
    size = {"public_rows": 400} if sized else {}
    yield Flow(f"vector_mean {word}", lambda: dp.vector_mean(_ROWS, bound=9, dimension=2, step="0.01", **how, **size))


def _ranked(word: str, relation: dp.Relation, sized: dict[str, int]) -> Iterator[Flow]:
    at = {"relation": relation, "bounds": (0, 240), "step": "0.1"}
    size = sized or {"public_rows": 801}
    for method in ("auto", "exponential", "candidates", "smooth", "propose-test-release", "nonsense"):
        how = {**at, "epsilon": 1, "delta": "1e-6", "method": method, **size}
        yield Flow(f"median {method}, {word}", lambda how=how: dp.median(WAITS, **how), rounded=True)
        yield Flow(f"quantile {method}, {word}", lambda how=how: dp.quantile(WAITS, "0.9", **how), rounded=True)
    yield Flow(f"median pure, {word}", lambda: dp.median(WAITS, epsilon="0.3", **at))
    yield Flow(f"quantile pure, {word}", lambda: dp.quantile(WAITS, "1/4", epsilon="0.3", **at))


def _chosen(word: str, relation: dp.Relation) -> Iterator[Flow]:
    at = {"relation": relation, "epsilon": "0.7"}
    yield Flow(f"mode listed, {word}", lambda: dp.mode(CITIES, candidates=_PLACES, **at))
    yield Flow(f"mode unlisted, {word}", lambda: dp.mode(CITIES, delta="1e-6", **at))
    yield Flow(f"top_k, {word}", lambda: dp.top_k(CITIES, 2, candidates=_PLACES, **at))
    yield Flow(f"select, {word}", lambda: dp.select("abc", [3, 9, 4], sensitivity=1, **at))
    yield Flow(f"select monotone, {word}", lambda: dp.select("abc", [3, 9, 4], sensitivity="1/2", monotone=True, **at))
    yield Flow(f"randomized_response, {word}", lambda: dp.randomized_response(CITIES, categories=_PLACES, **at))
    for method in ("auto", "refined", "adassp", "tukey"):
        yield Flow(f"regression {method}, {word}", lambda method=method: _line(relation, method), rounded=True)


def _line(relation: dp.Relation, method: str) -> Any:
    rows = matrix(2000, 2)
    size = {} if relation is dp.Relation.ADD_REMOVE else {"public_rows": 2000}
    budget = {"epsilon": 2, "delta": "1e-6"}
    where = {"x_bounds": [(-1, 1)] * 2, "y_bounds": (-4, 4)}
    return dp.regression(rows, rows @ [1.0, -2.0] + 0.5, relation=relation, method=method, **where, **budget, **size)


def _compared(word: str, relation: dp.Relation) -> Iterator[Flow]:
    at: dict[str, Any] = {"relation": relation, "epsilon": 1, "delta": "1e-6", "public_rows": 801}
    for statistic in ("mean", "median", "quantile", "mode", "regression", "sum"):
        more: dict[str, Any] = {"bounds": (0, 120), "step": "0.1"}
        more |= {"q": "0.9"} if statistic == "quantile" else {}
        if statistic == "mode":
            more = {"candidates": _PLACES}
        if statistic == "regression":
            rows = matrix(801, 1)
            more = {"x_bounds": [(-1, 1)], "y_bounds": (-1, 1), "expected": (rows, rows[:, 0] / 2)}
        yield Flow(
            f"compare {statistic}, {word}",
            lambda statistic=statistic, more=more: Said("", str(dp.compare(statistic, **at, **more))),
            rounded=True,
        )
