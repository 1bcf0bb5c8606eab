"""Discreet: variances of workloads, as they follow from the strategy, beside a bound below all Gaussian strategies.

Everything follows from public facts: no rows are read.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.peers.protocol import emit, is_quick
from discreet.mechanisms import GaussianNoise, LaplaceNoise, MatrixMechanism
from discreet.mechanisms.workloads.linear_queries import Factor
from discreet.privacy.relation import Relation

FIVE = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6}
RHO = GaussianNoise.for_rho("1/2")  # Variance one for sensitivity one.
EPSILON = LaplaceNoise(epsilon=Fraction(1))


def workloads() -> dict[str, tuple[Any, dict[str, int]]]:
    """Return queries and the sizes of columns, by what they are called."""
    chance = np.random.default_rng(20)
    pairs = [dict.fromkeys(pair, "identity") for pair in combinations(FIVE, 2)]
    singles = [{name: "identity"} for name in FIVE]
    few = Factor("range", 256).rows(chance.integers(0, 256 * 257 // 2, 100))
    return {
        "all cells": ("identity", {"x": 256}),
        "running totals": ("prefix", {"x": 256}),
        "running totals, longer": ("prefix", {"x": 1024}),
        "all ranges": ("range", {"x": 256}),
        "100 ranges by chance": (few, {"x": 256}),
        "margins: all pairs of 5 columns": (pairs, FIVE),
        "margins: pairs, singles, total": ([*pairs, *singles, {}], FIVE),
        "normal weights": (chance.normal(size=(200, 128)), {"x": 128}),
        "0 and 1 by chance": ((chance.random((100, 128)) < 0.3).astype(float), {"x": 128}),
        "ranges of age by sex and region": ({"age": "range", "sex": "identity", "region": "identity"},
                                            {"age": 100, "sex": 2, "region": 16}),
        "running totals in two directions": ({"x": "prefix", "y": "prefix"}, {"x": 1000, "y": 1000}),
    }  # fmt: skip


def report(name: str, queries: Any, sizes: dict[str, int], aim: str) -> None:
    """Report one workload: ours, noise on all cells, noise on the queries, and the bound."""
    shared: dict[str, Any] = {"cells": {column: range(size) for column, size in sizes.items()}, "aim": aim}
    started = time.process_time()
    ours = MatrixMechanism.best(queries, relation=Relation.ADD_REMOVE, noise=RHO, **shared)
    seconds = time.process_time() - started
    pure = MatrixMechanism.best(queries, relation=Relation.ADD_REMOVE, noise=EPSILON, **shared)
    replaced = MatrixMechanism.best(queries, relation=Relation.REPLACE_ONE, noise=RHO, **shared)
    each = ours.queries
    bound, ratio = ours.bound, ours.ratio
    assert bound is not None
    assert ratio is not None
    emit(
        job="workload",
        workload=name,
        cells=int(np.prod(list(sizes.values()))),
        answers=int(np.prod([factor.answers for factor in each])),
        aim=aim,
        bound=bound,
        ratio=ratio,
        replaced=replaced.ratio,
        svd=_svd(each) / bound if aim == "sum" else None,
        identity=_of_cells(each, aim) / bound,
        asked=_of_queries(each, aim, squared=True) / bound,
        pure=_worst(pure.accuracy.standard_errors**2 / 2, aim),
        pure_identity=_of_cells(each, aim),
        pure_asked=_of_queries(each, aim, squared=False),
        seconds=seconds,
    )


def _worst(variances: Any, aim: str) -> float:
    return float(variances.max() if aim == "largest" else variances.sum())


def _svd(factors: tuple[Factor, ...]) -> float:
    """The bound by singular values, of a product."""
    return float(
        np.prod([np.sqrt(np.maximum(np.linalg.eigvalsh(one.gram()), 0)).sum() ** 2 / one.size for one in factors])
    )


def _of_cells(factors: tuple[Factor, ...], aim: str) -> float:
    """Noise of variance one on every cell."""
    return float(np.prod([_worst(one.squares(np.eye(one.size)), aim) for one in factors]))


def _of_queries(factors: tuple[Factor, ...], aim: str, *, squared: bool) -> float:
    """Noise on every query, of the variance that the largest column asks for."""
    columns = []
    for one in factors:
        weights = np.abs(one.rows(np.arange(one.answers))) if one.answers < 10**5 else None
        if weights is None:
            columns.append(float(np.diagonal(one.gram()).max()) ** (1 if squared else 2))  # Weights are 0 and 1.
        else:
            columns.append(float((weights**2).sum(axis=0).max() if squared else weights.sum(axis=0).max() ** 2))
    answers = np.prod([float(one.answers) for one in factors])
    return float(np.prod(columns) * (1 if aim == "largest" else answers))


def main() -> None:
    """Report all workloads, the large ones by the sum only."""
    for name, (queries, sizes) in workloads().items():
        size = max(sizes.values()) if isinstance(queries, (str, dict)) else int(np.prod(list(sizes.values())))
        if is_quick() and size > 256:
            continue
        report(name, queries, sizes, "sum")
        if size <= 256:
            report(name, queries, sizes, "largest")


if __name__ == "__main__":
    main()
