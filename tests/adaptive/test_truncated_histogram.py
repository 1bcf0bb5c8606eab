"""Histograms of bins that nobody declared: thresholds are exact, least, and enough; the notes' ones are not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from statistical import clopper_pearson, fits, rejects
from threshold_worlds import (
    ADD_REMOVE,
    BOTH,
    LETTERS,
    REPLACE_ONE,
    assert_pays_first,
    assert_refuses,
    enclosed,
    small,
)

from discreet import privacy
from discreet.adaptive.bounded_memberships import Memberships
from discreet.adaptive.stability import least_excess
from discreet.adaptive.truncated_histogram import TruncatedHistogram
from discreet.balls import ball, precision
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import GaussianNoise, LaplaceNoise
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.noise.laws import DiscreteLaplaceLaw, Law
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed, DiscreteLaplace
from discreet.privacy.outcomes import Outcomes

LAPLACE = {relation: TruncatedHistogram.laplace(3, "0.01", relation=relation) for relation in BOTH}
GAUSSIAN = {relation: TruncatedHistogram.gaussian(4, "0.01", relation=relation) for relation in BOTH}


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("bins", [1, 4])
def test_noise_and_threshold_together_spend_what_is_asked(bins: int, relation: Any) -> None:
    """One delta is for both: what the noise takes of it is not there for the threshold."""
    for share in ("1/10", "1/2", "9/10"):
        gaussian = TruncatedHistogram.gaussian(
            1, "1e-6", relation=relation, bins_per_unit=bins, noise_share=Fraction(share)
        )
        assert privacy.epsilon(gaussian.event, "1e-6", relation=relation) <= 1 + 1e-5  # The account rounds up.
    laplace = TruncatedHistogram.laplace(1, "1e-6", relation=relation, bins_per_unit=bins)
    assert privacy.epsilon(laplace.event, "1e-6", relation=relation) <= 1


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_claim_holds_on_small_worlds(kind: Any, relation: Any) -> None:
    """The whole profile: at the epsilon that is named, and at smaller ones."""
    top = 3 if kind is LAPLACE else 4
    report = verify.check(kind[relation], small(LETTERS[:2], relation, 4), epsilons=[0, 1, top])
    assert report.holds, str(report)


@pytest.mark.long
@pytest.mark.parametrize("relation", BOTH)
def test_claim_holds_on_all_data_sets_of_five_over_five_keys(relation: Any) -> None:
    mechanism = TruncatedHistogram.laplace(16, "0.01", relation=relation)
    report = verify.check(mechanism, small(LETTERS, relation, 5), epsilons=[0, 8, 16])
    assert report.holds, str(report)


UNITS = [(), (("a", 1),), (("a", 2),), (("a", 1), ("b", 2)), (("a", 3), ("b", 1), ("c", 1))]


def rows(data: Any) -> Memberships:
    """Units that bring several amounts to several bins."""
    listed = [(unit, key, amount) for unit, brought in enumerate(data) for key, amount in brought]
    units, keys, amounts = zip(*listed, strict=True) if listed else ((), (), ())
    return Memberships(units, keys, amounts)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("bins", "contribution"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_claim_holds_where_units_bring_more_than_counts(relation: Any, bins: int, contribution: int) -> None:
    mechanism = TruncatedHistogram.laplace(
        8 * bins * contribution, "0.02", relation=relation, bins_per_unit=bins, contribution=contribution
    )
    report = verify.check(mechanism, small(UNITS, relation, 2), epsilons=[0, 8 * bins * contribution], query=rows)
    assert report.holds, str(report)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("epsilon", ["0.1", 1, 4])
@pytest.mark.parametrize("delta", ["0.3", "1e-3", "1e-9"])
@pytest.mark.parametrize("bins", [1, 8])
def test_threshold_is_the_least_that_keeps_the_promise(relation: Any, epsilon: Any, delta: str, bins: int) -> None:
    """C14: what one unit opens is shown, in any of its bins, with probability delta at most; one less is too low."""
    mechanism = TruncatedHistogram.laplace(epsilon, delta, relation=relation, bins_per_unit=bins, contribution=3)
    with precision(256):
        for threshold, kept in ((mechanism.threshold, True), (mechanism.threshold - 1, False)):
            silent = (1 - mechanism.law.survival(threshold - 3)) ** bins
            assert (1 - silent <= ball(Fraction(delta))) is kept
        assert mechanism.release_probability(0).is_zero()
        chances = [mechanism.release_probability(count) for count in range(1, 60)]
        assert all(one < other for one, other in pairwise(chances))


def test_replacing_costs_twice_the_noise_of_removing() -> None:
    one, two = LAPLACE[ADD_REMOVE], LAPLACE[REPLACE_ONE]
    assert two.law.scale == 2 * one.law.scale  # type: ignore[attr-defined]
    assert GAUSSIAN[REPLACE_ONE].law.variance == 2 * GAUSSIAN[ADD_REMOVE].law.variance  # type: ignore[attr-defined]
    assert one.event == Composed([DiscreteLaplace(Fraction(1, 3), 1), ApproxDP(0, "0.01")])


@dataclass(frozen=True)
class Literal:
    """A truncated histogram with a threshold of somebody's own, on units that bring a tuple of bins each."""

    law: Law
    threshold: int
    event: ApproxDP
    relation: Any
    symmetric: bool = True

    def distribution(self, data: Any) -> Outcomes:
        flat = [key for unit in data for key in unit]
        rows = outcomes.product(*(self._cell(key, flat.count(key)) for key in sorted(set(flat))))
        return outcomes.map(rows, lambda row: tuple(cell for cell in row if cell is not None))

    def _cell(self, key: str, count: int) -> Outcomes:
        noisy = outcomes.from_law(self.law, count)
        return outcomes.map(noisy, lambda value: (key, value) if value > self.threshold else None)


def noted(epsilon: int, delta: float) -> int:
    """The threshold ln(1 / delta) / epsilon of the notes, where whole numbers are compared with it."""
    return math.floor(math.log(1 / delta) / epsilon)


def gaussian_without_root() -> Literal:
    """A Gaussian threshold as for one bin, where a unit may open three."""
    law = GaussianNoise.for_epsilon(1, "0.001").law(Sensitivity(l1=3, squared_l2=3))
    return Literal(law, 1 + least_excess(law, Fraction(1, 100)), ApproxDP(1, "0.011"), ADD_REMOVE)


def laplace(scale: Fraction, threshold: int, epsilon: int, delta: str, relation: Any) -> Literal:
    return Literal(DiscreteLaplaceLaw(scale), threshold, ApproxDP(epsilon, delta), relation)


ONE_BIN = [("a",), ("b",)]
MUTANTS: dict[str, tuple[Literal, list[Any], list[int]]] = {
    "ln(1/δ)/ε at ε = 2": (laplace(Fraction(1, 2), noted(2, 1e-5), 2, "1e-5", ADD_REMOVE), ONE_BIN, [0, 1]),
    "ln(1/δ)/ε at ε = 4": (laplace(Fraction(1, 4), noted(4, 1e-5), 4, "1e-5", ADD_REMOVE), ONE_BIN, [0, 1]),
    "noise 1/ε where units are replaced": (
        laplace(Fraction(1, 3), LAPLACE[ADD_REMOVE].threshold, 3, "0.01", REPLACE_ONE),
        ONE_BIN,
        [5],
    ),
    "noise 1/ε where a unit is in two bins": (
        laplace(Fraction(1, 3), LAPLACE[ADD_REMOVE].threshold, 3, "0.01", ADD_REMOVE),
        [("a", "b")],
        [4, 5],
    ),
    "Gaussian threshold without the c-th root": (gaussian_without_root(), [("a", "b", "c")], [0, 1]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_thresholds_are_refuted(name: str) -> None:
    wrong, units, sizes = MUTANTS[name]
    report = verify.check(wrong, worlds(units, sizes))
    assert report.violated
    assert not report.holds


def test_the_gaussian_threshold_with_the_root_is_enough() -> None:
    right = TruncatedHistogram.gaussian(1, "0.011", relation=ADD_REMOVE, bins_per_unit=3, noise_share="1/11")
    wrong = gaussian_without_root()
    assert right.law == wrong.law
    assert right.threshold > wrong.threshold
    twin = replace(wrong, threshold=right.threshold)
    assert verify.check(twin, worlds([("a", "b", "c")], range(2))).holds


def test_the_threshold_of_the_notes_is_too_low_by_exactly_half_e_to_the_epsilon() -> None:
    fine = 1 << 40
    for epsilon in (1, 2, 4):
        law = DiscreteLaplaceLaw(Fraction(fine, epsilon))
        with precision(128):
            true = float(law.survival(math.floor(fine * (math.log(1e6) / epsilon - 1))))
        assert true == pytest.approx(math.exp(epsilon) * 1e-6 / 2, rel=1e-6)
        assert true > 1e-6


@pytest.mark.parametrize("mechanism", [LAPLACE[ADD_REMOVE], GAUSSIAN[REPLACE_ONE]], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100)])
def test_intervals_cover_among_the_shown(mechanism: TruncatedHistogram, confidence: Fraction) -> None:
    """Every count, however small, is enclosed with the asked probability once it is shown; the usual one is not."""
    accuracy = mechanism.release([]).accuracy.cells[0]  # type: ignore[attr-defined]
    usual = mechanism.law.half_width(confidence)
    plain = []
    for count in range(1, mechanism.threshold + 12):
        with precision(128):
            cells = outcomes.from_law(mechanism.law, count).masses
            shown = {value: float(mass) for value, mass in cells.items() if value > mechanism.threshold}
        total = math.fsum(shown.values())
        within = [mass for value, mass in shown.items() if _holds(accuracy.interval(value, confidence), count)]
        assert math.fsum(within) >= float(confidence) * total
        plain.append(math.fsum(m for v, m in shown.items() if abs(v - count) <= usual) / total)
    assert min(plain) < 0.01


def _holds(interval: Any, count: int) -> bool:
    return bool(interval[0] <= count <= interval[1])


def test_an_interval_holds_its_value_and_never_less_than_one_person() -> None:
    release = LAPLACE[ADD_REMOVE].release(["a"] * 100 + ["b"] * 9)
    for value, (low, high) in zip(release.value, release.interval(), strict=True):
        assert 1 <= low <= value <= high


def test_order_of_output_is_that_of_keys() -> None:
    mechanism = TruncatedHistogram.laplace(60, "0.4", relation=ADD_REMOVE)
    data = ["b", "a", 3, -1, True, 2.5] * 9
    turned = mechanism.release(data[::-1])
    assert mechanism.release(data).labels == turned.labels == ("True", "-1", "2.5", "3", "a", "b")
    assert turned.as_dict()["a"] == 9
    assert [key for key, _ in mechanism.measure(data)] == [True, -1, 2.5, 3, "a", "b"]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_release_follows_distribution(kind: Any) -> None:
    mechanism, data = kind[ADD_REMOVE], ["a"] * 7 + ["b"] * 3
    with precision(128):
        right, wrong = (mechanism.distribution(given).masses for given in (data, [*data, "a"]))
    places = {outcome: place for place, outcome in enumerate({**right, **wrong})}
    sample = []
    for _ in range(800):
        release = mechanism.release(data)
        sample.append(places[tuple(zip(release.labels, release.value, strict=True))])
    assert fits(sample, [max(0.0, float(right.get(outcome, 0))) for outcome in places])
    assert rejects(sample, [max(0.0, float(wrong.get(outcome, 0))) for outcome in places])


@pytest.mark.statistical
@pytest.mark.parametrize("bins", [1, 8])
def test_singletons_are_shown_no_more_often_than_delta(bins: int) -> None:
    """C14: units that open bins of their own; twice the chance would be seen."""
    mechanism, units = TruncatedHistogram.laplace(1, "0.08", relation=ADD_REMOVE, bins_per_unit=bins), 100_000 // bins
    data = Memberships(np.repeat(np.arange(units), bins), np.arange(units * bins))
    low, high = clopper_pearson(len(mechanism.release(data).value), units * bins)
    each = enclosed(mechanism, "release_probability", 1)[1]
    assert each <= 0.08
    assert low <= each <= high < 2 * each


def test_reliable_count_is_shown_reliably() -> None:
    for mechanism in (*LAPLACE.values(), *GAUSSIAN.values()):
        count = mechanism.reliable_count("0.99")
        assert enclosed(mechanism, "release_probability", count)[0] >= 0.99
        assert enclosed(mechanism, "release_probability", count - 1)[1] < 0.99


def test_delta_is_quoted_whole() -> None:
    assert "δ = 0.01" in GAUSSIAN[ADD_REMOVE].release([]).cost
    assert LAPLACE[ADD_REMOVE].release([]).cost == "ε = 3, δ = 0.01"


def test_pays_first_and_refuses_nonsense() -> None:
    assert_pays_first(LAPLACE[ADD_REMOVE], ["a"])
    good = {"noise": LaplaceNoise(epsilon=Fraction(1)), "delta": Fraction(1, 10), "relation": ADD_REMOVE}
    assert_refuses(
        TruncatedHistogram,
        good | {"bins_per_unit": 2, "contribution": 3},
        numbers=["delta", "bins_per_unit", "contribution"],
    )
    assert_refuses(
        TruncatedHistogram.laplace, {"epsilon": 1, "delta": "0.1", "relation": ADD_REMOVE}, numbers=["epsilon"]
    )
    assert_refuses(
        TruncatedHistogram.gaussian,
        {"epsilon": 1, "delta": "0.1", "relation": ADD_REMOVE, "noise_share": "0.5"},
        numbers=["delta", "noise_share"],
    )


def test_noise_of_any_kind_pays_for_its_own_part() -> None:
    mechanism = TruncatedHistogram(noise=GaussianNoise.for_rho(2), delta=Fraction(1, 100), relation=ADD_REMOVE)
    report = verify.check(mechanism, small(LETTERS[:2], ADD_REMOVE, 4), epsilons=[0, 1, 3])
    assert report.holds
    assert replace(mechanism, bins_per_unit=4).threshold > mechanism.threshold
