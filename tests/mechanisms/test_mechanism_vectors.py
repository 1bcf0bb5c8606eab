"""Published and hand-checked numbers for mechanisms: every vector of the file is used by exactly one test."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from subjects import ADD_REMOVE, REPLACE_ONE, laplace

from discreet import privacy
from discreet.balls import precision
from discreet.mechanisms import (
    Count,
    Exponential,
    Grid,
    Histogram,
    Mean,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    VectorLaplace,
)
from discreet.mechanisms.local_protocol import SharesAccuracy
from discreet.privacy.events import Laplace

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "mechanisms.json").read_text())["vectors"]


def pmf(mechanism: Any, scores: list[int]) -> list[float]:
    return listed(mechanism, tuple(scores))


@lru_cache(256)
def listed(mechanism: Any, scores: tuple[int, ...]) -> list[float]:
    with precision(64):
        return [float(mass) for mass in mechanism.distribution(scores).masses.values()]


def chosen(kind: Any, **fields: Any) -> Callable[[dict[str, Any]], list[float]]:
    def measure(given: dict[str, Any]) -> list[float]:
        known = {"sensitivity": 1, "candidates": len(given["u"]), "relation": ADD_REMOVE}
        return pmf(kind(epsilon=given["eps"], **known | fields), given["u"])

    return measure


def continuous_noisy_max(given: dict[str, Any]) -> list[float]:
    """Finer and finer grids, extrapolated: the discrete law is the continuous one up to even powers of the step."""
    rough, fine, finest = (
        pmf(
            ReportNoisyMax(epsilon=given["eps"], sensitivity=steps, candidates=3, relation=ADD_REMOVE),
            [steps * score for score in given["u"]],
        )
        for steps in (4, 8, 16)
    )
    first, second = extrapolated(rough, fine, 4), extrapolated(fine, finest, 4)
    return extrapolated(first, second, 16)


def extrapolated(coarse: list[float], fine: list[float], gain: int) -> list[float]:
    return [(gain * better - worse) / (gain - 1) for worse, better in zip(coarse, fine, strict=True)]


def largest_log_ratio(given: dict[str, Any]) -> list[float]:
    """Over the given scores, for one score up and one down, and for scores that move one way."""
    both, one_way = [(1, -1), (-1, 1)], [(1, 0), (0, 1), (1, 1)]
    return [
        max(log_ratio(given, u, change) for u in given["utilities"] for change in moves) for moves in (both, one_way)
    ]


def log_ratio(given: dict[str, Any], scores: list[int], change: tuple[int, int]) -> float:
    steps = 4
    monotone = given["scale"] == 1.0
    kind: Any = Exponential if given["noise"] == "gumbel" else ReportNoisyMax
    mechanism = kind(epsilon=given["eps"], sensitivity=steps, candidates=2, relation=ADD_REMOVE, monotone=monotone)
    here, there = (
        pmf(mechanism, [steps * (score + times * move) for score, move in zip(scores, change, strict=True)])
        for times in (0, 1)
    )
    return max(abs(math.log(a / b)) for a, b in zip(here, there, strict=True))


def truth_telling(given: dict[str, Any]) -> RandomizedResponse:
    return RandomizedResponse.for_epsilon(given["eps"], categories=given.get("k", 2))


def estimated(mechanism: RandomizedResponse, rate: float) -> float:
    return float(SharesAccuracy(mechanism=mechanism, counts=(1,) * mechanism.categories).share(Fraction(str(rate))))


def histogram_sensitivity(relation: Any) -> Any:
    return Histogram(bins=("a", "b"), relation=relation, noise=laplace(1)).measurements[0].query.sensitivity


def mean_scale(given: dict[str, Any]) -> float:
    grid = Grid(low=Fraction(0), high=Fraction(1), step=Fraction(1), default=Fraction(0))
    mechanism = Mean(grid=grid, relation=REPLACE_ONE, noise=laplace(str(given["eps"])), public_rows=given["n"])
    accuracy = mechanism.release([0] * given["n"]).accuracy
    return float(accuracy.noise.scale * accuracy.step)  # type: ignore[union-attr,attr-defined]


def removed_from_mean(given: dict[str, Any]) -> float:
    """Under add-remove the mean itself moves by 1 / n, which is private: it is not what noise is fitted to."""
    before, after = Fraction(1, given["n"]), Fraction(0, given["n"] - 1)
    return float((before - after) * (given["hi"] - given["lo"]))


def geometric_masses(given: dict[str, Any]) -> list[float]:
    with precision(128):
        masses = Count(relation=ADD_REMOVE, noise=laplace(str(given["eps"]))).distribution([]).masses
        return [float(masses[k,]) for k in given["k"]]


EM_WORST = ([-10, 0], [-9, -1])
MEASURES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "selection_rr/em_mono_": chosen(Exponential, monotone=True),
    "selection_rr/em_[": chosen(Exponential),
    "selection_rr/pf_": chosen(PermuteAndFlip),
    "selection_rr/rnm_exp_": chosen(PermuteAndFlip),
    "selection_rr/rnm_laplace_[": continuous_noisy_max,
    "selection_rr/rnm_laplace_scale": largest_log_ratio,
    "selection_rr/rnm_gumbel_scale": largest_log_ratio,
    "selection_rr/em_true_logratio": lambda given: max(
        abs(math.log(a / b))
        for a, b in zip(*(chosen(Exponential)(given | {"u": u}) for u in EM_WORST), strict=True)
    ),
    "selection_rr/rr_keep_": lambda given: float(truth_telling(given).keep),
    "selection_rr/rr_var_per_n_": lambda given: float(
        SharesAccuracy(mechanism=truth_telling(given), counts=(0, given["n"])).variance(Fraction(1, 3))
    ),
    "selection_rr/rr_estimate_": lambda given: estimated(truth_telling(given), given["ybar"]),
    "selection_rr/krr_k": lambda given: [float(truth_telling(given).keep), float(truth_telling(given).lie)],
    "selection_rr/krr_estimator_": lambda given: estimated(truth_telling(given), given["observed_freq"]),
    "selection_rr/warner_coin_eps": lambda given: float(RandomizedResponse.warner().epsilon),
    "selection_rr/warner_coin_estimate": lambda given: estimated(RandomizedResponse.warner(), given["yes_rate"]),
    "ml_attacks/histogram_l1": lambda given: [histogram_sensitivity(r).l1 for r in (ADD_REMOVE, REPLACE_ONE)],
    "ml_attacks/histogram_l2": lambda given: [
        math.sqrt(histogram_sensitivity(r).squared_l2) for r in (ADD_REMOVE, REPLACE_ONE)
    ],
    "ml_attacks/laplace_vector_scale": lambda given: float(
        VectorLaplace(
            sensitivity=given["p"] * given["component_sensitivity"],
            scale=given["p"] * given["component_sensitivity"] / Fraction(given["eps"]),
            dimension=given["p"],
            relation=ADD_REMOVE,
        ).scale
    ),
    "ml_attacks/laplace_mean_scale": mean_scale,
    "ml_attacks/laplace_delta_at_half_eps": lambda given: privacy.delta(Laplace(1 / given["eps0"]), given["eps"]),
    "misc/geom_pmf": geometric_masses,
    "misc/mean_addremove_local": removed_from_mean,
}  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_mechanisms_agree_with_published_numbers(vector: dict[str, Any]) -> None:
    (measure,) = [measure for start, measure in MEASURES.items() if vector["id"].startswith(start)]
    kind = {"rel": "rel", "abs": "abs"}[vector["tolerance_kind"]]
    assert measure(vector["inputs"]) == pytest.approx(
        vector["expected"], **{"rel": 0, "abs": 0} | {kind: vector["tolerance"]}
    )
