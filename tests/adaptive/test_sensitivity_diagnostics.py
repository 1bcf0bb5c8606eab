"""The custodian's local and smooth sensitivity: recorded numbers, what breaks privacy, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from sensitivity_worlds import ADD_REMOVE, HIGH, LOW, REPLACE_ONE, VALUES, at_distances, data_sets, midpoint, order

from discreet.adaptive import order_queries
from discreet.adaptive.local_sensitivity_bounds import local_sensitivity, smooth_sensitivity
from discreet.adaptive.noise_recipes import polynomial
from discreet.adaptive.order_queries import (
    AddRemoveQuantileQuery,
    CentralMeanQuery,
    LowerMedianQuery,
    WinsorisedMeanQuery,
    farthest,
    median_query,
    quantile_query,
    trimmed_mean_query,
    winsorised_mean_query,
)
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.adaptive.smooth_query import SmoothlyBoundedQuery
from discreet.adaptive.smoothness_check import check_smoothness
from discreet.errors import InvalidParameter
from discreet.lab.verify import check, worlds
from discreet.mechanisms import Grid
from discreet.mechanisms.order_statistics import Ranked
from discreet.privacy.not_private import NotPrivate

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "smooth_sensitivity.json").read_text())["vectors"]
GRID = Grid(low=Fraction(LOW), high=Fraction(HIGH), step=Fraction(1), default=Fraction(LOW))
HALF = Fraction(1, 2)
QUERIES = [
    (CentralMeanQuery(grid=GRID, public_rows=5, lower=3, upper=3), [5]),
    (median_query(grid=GRID, relation=REPLACE_ONE, public_rows=4), [4]),
    (trimmed_mean_query(grid=GRID, public_rows=6, trimmed=1), [6]),
    (winsorised_mean_query(grid=GRID, public_rows=5, moved=1), [5]),
    (median_query(grid=GRID, relation=ADD_REMOVE), range(7)),
    (quantile_query(grid=GRID, relation=ADD_REMOVE, q="0.9"), range(7)),
]
NAMES = ["median of 5", "midpoint of 4", "trimmed", "Winsorised", "lower median", "0.9-quantile"]


def wanted(inputs: dict) -> dict:
    """Read what a vector asks for."""
    asked = {"bounds": (inputs["lo"], inputs["hi"]), "beta": inputs["beta"]}
    asked["relation"] = ADD_REMOVE if inputs.get("relation") == "add-remove" else REPLACE_ONE
    if "rank" in inputs:
        return asked | {"rank": inputs["rank"]}
    if "m" in inputs:
        return asked | {"ends": inputs["m"]}
    return asked | ({"statistic": "median"} if inputs["median"].startswith("average") else {"q": HALF})


@pytest.mark.parametrize("vector", [v for v in VECTORS if "beta" in v["inputs"]], ids=lambda v: v["id"])
def test_smooth_sensitivity_agrees_with_the_vectors(vector: dict) -> None:
    inputs, asked = vector["inputs"], wanted(vector["inputs"])
    values = [i / 10 for i in range(101)] if isinstance(inputs["x"], str) else inputs["x"]
    for name in ("trimmed", "winsorised"):
        if name in vector["id"]:
            asked["statistic"] = f"{name}_mean"
    assert smooth_sensitivity(values, **asked).value == pytest.approx(vector["expected"], rel=vector["tolerance"])


def faded_by_powers_of_two(values: list[int], epsilon: float, *, first: int, bounds: tuple[int, int]) -> float:
    """The maximum as lecture notes print it: from k = 1 on, and with 2^(-k epsilon) in place of e^(-beta k)."""
    middle = {"relation": REPLACE_ONE, "rank": (len(values) + 1) // 2, "bounds": bounds}
    rest = range(first, len(values) + 1)
    return max(2 ** (-k * epsilon) * local_sensitivity(values, distance=k, **middle).value for k in rest)


@pytest.mark.parametrize("vector", [v for v in VECTORS if "2pow" in v["id"]], ids=lambda v: v["id"])
def test_a_maximum_without_the_data_themselves_agrees_with_the_vectors(vector: dict) -> None:
    inputs, (printed, local) = vector["inputs"], vector["expected"]
    bounds = (inputs["lo"], inputs["hi"])
    assert faded_by_powers_of_two(inputs["x"], inputs["eps"], first=1, bounds=bounds) == pytest.approx(printed)
    found = local_sensitivity(inputs["x"], rank=(len(inputs["x"]) + 1) // 2, bounds=bounds, relation=REPLACE_ONE)
    assert found.value == local


@pytest.mark.parametrize(("values", "epsilon", "printed"), [
    ([4, 4, 4, 4, 5, 9, 9, 9, 9], 3, 0.625), ([0, 0, 0, 10, 10], 2, 2.5),
])  # fmt: skip
def test_a_maximum_without_the_data_themselves_is_below_the_local_sensitivity(values, epsilon, printed) -> None:
    asked = {"rank": (len(values) + 1) // 2, "bounds": (0, 10), "relation": REPLACE_ONE}
    local = local_sensitivity(values, **asked).value
    assert faded_by_powers_of_two(values, epsilon, first=1, bounds=(0, 10)) == pytest.approx(printed)
    assert printed < local <= smooth_sensitivity(values, beta=epsilon * math.log(2), **asked).value


class TestMutants:
    """Bounds as their wrong authors compute them are refuted in a small world, and the right one is not."""

    query = CentralMeanQuery(grid=GRID, public_rows=5, lower=3, upper=3)
    beta = Fraction(1, 2)
    world = data_sets(5)

    def smoothness(self, bound):
        wrong = SmoothlyBoundedQuery(
            evaluate=self.query.value, bound=bound, grid=GRID, relation=REPLACE_ONE, relative_error=Fraction(1, 10**10)
        )
        return check_smoothness(wrong, self.world, beta=self.beta)

    def from_distance(self, first: int):
        def bound(data, beta):
            heights = [self.query.local_sensitivity(data, k) for k in range(7)]
            return max(
                (_Faded(height, k) for k, height in enumerate(heights) if k >= first), key=lambda p: p.size(beta)
            )

        return bound

    def test_the_definition_is_not_refuted(self) -> None:
        assert self.smoothness(self.from_distance(0)).holds

    def test_leaving_out_the_data_themselves_is_refuted(self) -> None:
        assert self.smoothness(self.from_distance(1)).exceeded is not None

    def test_the_local_sensitivity_alone_is_refuted(self) -> None:
        assert self.smoothness(lambda data, beta: _Faded(self.query.local_sensitivity(data), 0)).uneven is not None

    def test_noise_for_a_maximum_without_the_data_themselves_breaks_its_claim(self) -> None:
        wrong = SmoothlyBoundedQuery(
            evaluate=self.query.value, bound=self.from_distance(1), grid=GRID, relation=REPLACE_ONE
        )
        recipe = polynomial(3, beta=Fraction(3, 2))
        small = worlds((LOW, 3, HIGH), [5])
        assert check(SmoothSensitivityMechanism(query=wrong, recipe=recipe), small).violated
        assert check(SmoothSensitivityMechanism(query=self.query, recipe=recipe), small).holds


class _Faded:
    def __init__(self, height: Fraction, distance: int) -> None:
        self.height, self.distance = height, distance

    def size(self, beta: Fraction) -> float:
        return float(self.height) * math.exp(-float(beta) * self.distance)

    def enclose(self, beta: Fraction):
        from discreet.balls import ball

        return ball(self.height) * ball(-beta * self.distance).exp()


def test_values_are_clamped_before_they_are_ranked() -> None:
    """The mutant ranks first and clamps never: the bounds then stand among the values, not around them."""
    wild, clamped = [-(10**9), 2, 3, 99, 10**9], [0, 2, 3, 10, 10]
    asked = {"rank": 3, "bounds": (0, 10), "relation": REPLACE_ONE, "beta": HALF}
    right = smooth_sensitivity([*wild[:4], float("inf")], **asked).value
    assert right == smooth_sensitivity(clamped, **asked).value <= 10
    mutant = order_queries.rank(Ranked(np.array(wild), 0, 10), 3, HALF).approximate(0.5)
    assert mutant > 10


@pytest.mark.parametrize(("query", "sizes"), QUERIES, ids=NAMES)
@pytest.mark.parametrize("beta", ["0.1", "1"])
def test_bounds_are_smooth_and_never_below_a_change(query, sizes, beta) -> None:
    world = [x for size in sizes for x in data_sets(size)]
    found = check_smoothness(query, world, beta=Fraction(beta))
    assert found.holds, str(found)
    assert found.pairs > 100


@pytest.mark.parametrize(("query", "sizes"), QUERIES, ids=NAMES)
def test_a_bound_lies_between_the_local_sensitivity_and_the_whole_range(query, sizes) -> None:
    for x in (x for size in sizes for x in data_sets(size)):
        bound = query.smooth_bound(x, HALF).approximate(0.5)
        most = 1 if not isinstance(query, WinsorisedMeanQuery) else 3  # Three parts, each at most the range.
        assert float(query.local_sensitivity(x)) <= bound * (1 + 1e-12)
        assert bound <= most * (HIGH - LOW)


@pytest.mark.parametrize(("query", "size"), [(q, 4) for q, s in QUERIES if 4 in s])
def test_neither_value_nor_bound_depends_on_the_order_of_rows(query, size) -> None:
    for x in data_sets(size)[::7]:
        answers = {(query.value(row), query.smooth_bound(row, HALF), query.local_sensitivity(row, 1))
                   for row in permutations(x)}  # fmt: skip
        assert len(answers) == 1


def test_queries_have_the_values_of_their_definitions() -> None:
    for x in data_sets(5):
        assert QUERIES[0][0].value(x) == order(3)(x)
        kept = sorted([*x[1:4], x[1], x[3]])
        assert QUERIES[3][0].value(x) == Fraction(sum(kept), 5)
        assert QUERIES[4][0].value(x) == x[2]
        assert QUERIES[5][0].value(x) == x[4]
    for x in data_sets(4):
        assert QUERIES[1][0].value(x) == midpoint(x)
    assert QUERIES[2][0].value((0, 1, 1, 3, 6, 8)) == Fraction(11, 4)
    assert QUERIES[4][0].value(()) == QUERIES[5][0].value(()) == LOW


@pytest.mark.parametrize(("query", "sizes"), QUERIES, ids=NAMES)
def test_releases_keep_their_claim_in_a_small_world(query, sizes) -> None:
    kept = list(sizes)[:4]
    few = worlds(VALUES if max(kept) < 6 else VALUES[::2], kept)
    mechanism = SmoothSensitivityMechanism(query=query, recipe=polynomial(1, beta=Fraction(1, 5)))
    assert check(mechanism, few).holds
    assert GRID.first - 10**6 < mechanism.release(list(few.data_sets[-1])).value


def test_a_bound_never_vanishes_and_looks_at_a_public_number_of_ranks() -> None:
    far = farthest(GRID, HALF)
    assert (HIGH - LOW) * math.exp(-far / 2) <= 1 / 256 < (HIGH - LOW) * math.exp(-(far - 1) / 2)
    alike = [LOW] * 1000
    for query in (LowerMedianQuery(grid=GRID), AddRemoveQuantileQuery(grid=GRID, q=Fraction(1, 10))):
        assert query.smooth_bound(alike, HALF).distance == far
        assert query.smooth_sensitivity(alike, HALF).distance > far


def test_sensitivities_agree_with_brute_force_in_units_of_the_data() -> None:
    for x, heights in at_distances(order(2), 3, REPLACE_ONE).items():
        data, asked = [v / 4 for v in x], {"rank": 2, "bounds": (0, 2), "relation": REPLACE_ONE}
        assert [4 * local_sensitivity(data, distance=k, **asked).value for k in range(4)] == heights
        best = max(float(height) * math.exp(-k / 3) for k, height in enumerate(heights)) / 4
        assert smooth_sensitivity(data, beta="1/3", **asked).value == pytest.approx(best, rel=1e-11)


def test_what_is_returned_is_marked_as_not_private() -> None:
    for found in (
        smooth_sensitivity([1, 2, 3], q=HALF, bounds=(0, 4), beta=1, relation=ADD_REMOVE),
        local_sensitivity([1, 2, 3], q=HALF, bounds=(0, 4), relation=ADD_REMOVE),
    ):
        assert isinstance(found, NotPrivate)
        assert "NOT PRIVATE" in repr(found)


@pytest.mark.parametrize("change", [
    {"rank": None}, {"q": HALF}, {"rank": 0}, {"rank": 4}, {"rank": 1.0}, {"rank": True}, {"beta": 0}, {"beta": -1},
    {"beta": float("nan")}, {"beta": float("inf")}, {"bounds": (1, 1)}, {"bounds": (0, float("inf"))},
    {"relation": None}, {"relation": ADD_REMOVE}, {"ends": 1}, {"statistic": "median"},
    {"statistic": "mean", "rank": None},
    {"statistic": "trimmed_mean", "rank": None}, {"statistic": "trimmed_mean", "rank": None, "ends": 2},
    {"statistic": "trimmed_mean", "rank": None, "ends": -1}, {"rank": None, "q": 2}, {"step": 0}, {"step": "3/7"},
    {"statistic": "winsorised_mean", "rank": None, "ends": 1, "relation": ADD_REMOVE},
], ids=str)  # fmt: skip
def test_nonsense_is_refused(change: dict) -> None:
    asked = {"rank": 2, "bounds": (0, 4), "beta": 1, "relation": REPLACE_ONE}
    assert smooth_sensitivity([1, 2, 3], **asked).value == 1
    with pytest.raises(InvalidParameter):
        smooth_sensitivity([1, 2, 3], **(asked | change))


def test_a_negative_distance_and_a_wrong_number_of_rows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="distance"):
        local_sensitivity([1, 2, 3], rank=1, bounds=(0, 4), relation=REPLACE_ONE, distance=-1)
    with pytest.raises(InvalidParameter, match="number of rows"):
        QUERIES[0][0].value(VALUES[:4])
