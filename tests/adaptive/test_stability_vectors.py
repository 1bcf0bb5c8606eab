"""Hand-checked numbers for thresholds, distances and totals: every vector of the file is used by exactly one test.

Real-valued thresholds are met on a grid of 2^44 steps to a unit, on which discrete noise is as good as real noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from threshold_worlds import ADD_REMOVE, BOTH, GRID, REPLACE_ONE, small

from discreet.adaptive.local_sensitivity_bounds import BoundedSmoothSensitivity
from discreet.adaptive.partition_selection import partition_probability
from discreet.adaptive.propose_test_release import total_event
from discreet.adaptive.smooth_query import SmoothlyBoundedQuery
from discreet.adaptive.stability import DistanceTest, mode_distance
from discreet.adaptive.truncated_histogram import TruncatedHistogram
from discreet.balls import precision
from discreet.lab import verify
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "thresholds.json").read_text())["vectors"]
FINE = 1 << 44
Given = dict[str, Any]


def histogram(given: Given, relation: Any = ADD_REMOVE, contribution: int = 1) -> TruncatedHistogram:
    return TruncatedHistogram.laplace(
        given["eps"],
        given["delta"],
        relation=relation,
        bins_per_unit=given.get("bins_per_unit", 1),
        contribution=contribution,
    )


def real_threshold(relation: Any) -> Callable[[Given], float]:
    return lambda given: histogram(given, relation, FINE).threshold / FINE


def chance_at_noted_threshold(given: Given) -> float:
    """The chance of one unit to pass ln(1 / delta) / epsilon."""
    law = DiscreteLaplaceLaw(FINE / Fraction(repr(given["eps"])))
    with precision(128):
        return float(law.survival(round(FINE * (math.log(1 / given["delta"]) / given["eps"] - 1))))


def gaussian_threshold(given: Given) -> list[float]:
    delta = given["delta_noise"] + given["delta_threshold"]
    made = [
        TruncatedHistogram.gaussian(
            given["eps"], delta, relation=ADD_REMOVE, bins_per_unit=given["bins_per_unit"], contribution=contribution
        )
        for contribution in (1, 1 << 30)
    ]
    return [math.sqrt(made[0].law.variance), made[1].threshold / (1 << 30)]  # type: ignore[attr-defined]


def gap_sensitivity(given: Given) -> list[int]:
    def gap(data: Any) -> int:
        first, second, _ = sorted((data.count(letter) for letter in "abc"), reverse=True)
        return int(first - second)

    return [int(verify.sensitivity(gap, small("abc", relation, 5), relation=relation).value) for relation in BOTH]


def mode_distances(given: Given) -> list[int]:
    first, second, *_ = sorted(given["counts"], reverse=True)
    return [*(mode_distance(given["counts"], relation) for relation in BOTH), first - second]


def literal_mode(given: Given) -> float:
    """Counts (6, 4) and (5, 5): gaps of 2 and 0 with noise 1 / epsilon, and other modes, told above the threshold."""
    steps, epsilon = 64, Fraction(given["eps"])
    limit = steps * math.log(1 / given["delta"]) / given["eps"]

    class Literal:
        symmetric = True

        def distribution(self, data: Any) -> Any:
            a, b = data.count("a"), data.count("b")
            noisy = outcomes.from_law(DiscreteLaplaceLaw(steps / epsilon), steps * abs(a - b))
            mode = "a" if a > b else "b"
            return outcomes.map(noisy, lambda value: (value, mode if value > limit else None))

    pair = [("a",) * 6 + ("b",) * 4, ("a",) * 5 + ("b",) * 5]
    report = verify.check(Literal(), pair, relation=REPLACE_ONE, claim=ApproxDP(epsilon, given["delta"]))
    assert report.violated
    return float(report.lower)


def total(given: Given) -> list[float]:
    """The threshold of the vector is the real one; ours is the next whole number, and has the same delta."""
    test = DistanceTest(epsilon=given["eps_test"], delta=Fraction("1e-6"))
    assert test.threshold == math.floor(given["threshold"])
    spent = total_event(test, ApproxDP(given["eps_B"], given["delta_B"]))
    assert isinstance(spent, ApproxDP)
    return [float(spent.epsilon), float(spent.delta)]


def sure_count(given: Given) -> float:
    """All of n bins are shown with probability 1 - e^-t / 2 if each is with 1 - e^-t / (2 n)."""
    miss = math.exp(-given["t"]) / (2 * given["n"])
    return histogram(given, contribution=FINE).reliable_count(1 - Fraction(miss)) / FINE


def inflation(given: Given) -> float:
    query = SmoothlyBoundedQuery(
        evaluate=lambda data: Fraction(0), bound=lambda data, beta: pytest.fail("read"), grid=GRID, relation=ADD_REMOVE
    )
    mechanism = BoundedSmoothSensitivity(
        query=query,
        beta=given["beta"],
        epsilon=2 * given["eps1"],
        delta=given["delta"],
        fineness=1 << 40,
    )
    return mechanism.inflation


MEASURES: dict[str, Callable[[Given], Any]] = {
    "ptr_hist/ptr_seed_true_delta_": chance_at_noted_threshold,
    "ptr_hist/ptr_threshold_": real_threshold(ADD_REMOVE),
    "ptr_hist/gap_sensitivity": gap_sensitivity,
    "ptr_hist/mode_dist_": mode_distances,
    "ptr_hist/hist_thr_lap_addrem_": real_threshold(ADD_REMOVE),
    "ptr_hist/hist_thr_lap_replace_": real_threshold(REPLACE_ONE),
    "ptr_hist/hist_thr_lap_l0": real_threshold(ADD_REMOVE),
    "ptr_hist/hist_thr_geom_addrem_": lambda given: histogram(given).threshold,
    "ptr_hist/hist_thr_gauss_": gaussian_threshold,
    "ptr_hist/partsel_": lambda given: float(
        partition_probability(given["n"], epsilon=given["eps"], delta=given["delta"])
    ),
    "misc/stable_mode_literal_": literal_mode,
    "misc/ptr_total": total,
    "misc/hist_utility_count": sure_count,
    "ml_attacks/log_ls_inflation": inflation,
}


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_thresholds_agree_with_hand_checked_numbers(vector: Given) -> None:
    (measure,) = [measure for start, measure in MEASURES.items() if vector["id"].startswith(start)]
    kind = {"rel": "rel", "abs": "abs"}[vector["tolerance_kind"]]
    assert measure(vector["inputs"]) == pytest.approx(
        vector["expected"], **{"rel": 0, "abs": 0} | {kind: vector["tolerance"]}
    )


def test_every_kind_of_vector_is_there() -> None:
    found = {start for start in MEASURES for vector in VECTORS if vector["id"].startswith(start)}
    assert found == set(MEASURES)
