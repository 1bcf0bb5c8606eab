"""What bad rows can do: the report against all ways for rows to go wrong in small samples."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import adaptive, robust
from discreet.errors import InvalidParameter, Refused
from discreet.robust import HodgesLehmann, Huber, Mean, MLocation, Quantile, TrimmedMean, Tukey, WinsorisedMean
from discreet.robust.robustness_report import CorruptedSample, SampledVersion, estimate, private_version, worst_sample

BOUNDS = (0.0, 8.0)
VALUES = (0.0, 1.0, 3.0, 6.0, 8.0)
OTHERS = (2.0, 2.5, 7.0, 8.0)
MONOTONE = [
    Mean(),
    Quantile(),
    Quantile("0.3"),
    TrimmedMean("0.25"),
    WinsorisedMean("0.25"),
    MLocation(Huber(1), "0.5"),
    HodgesLehmann(),
]
SAMPLES = [np.array(sample) for sample in combinations_with_replacement(VALUES, 5)][::14]


def functional(estimator: Any) -> Any:
    return MLocation(estimator) if hasattr(estimator, "rho") else estimator


def all_corrupted(sample: Any, count: int, points: Any = VALUES) -> Iterator[Any]:
    for kept in combinations(sample, len(sample) - count):
        for new in combinations_with_replacement(points, count):
            yield np.array([*kept, *new])


def all_mislabelled(sample: Any, count: int) -> Iterator[Any]:
    yield from (np.array(kept) for kept in combinations(sample, len(sample) - count))


def all_exchanged(sample: Any, count: int) -> Iterator[Any]:
    for kept, new in product(combinations(sample, len(sample) - count), combinations(OTHERS, count)):
        yield np.array([*kept, *new])


def farthest(estimator: Any, sample: Any, changed: Iterator[Any]) -> float:
    before = estimate(functional(estimator), sample)
    return max(abs(estimate(functional(estimator), other) - before) for other in changed)


@pytest.mark.parametrize("estimator", MONOTONE, ids=repr)
@pytest.mark.parametrize("count", [1, 3])
def test_effects_are_the_worst_of_all_ways_for_rows_to_go_wrong(estimator: Any, count: int) -> None:
    """The values of a world include both bounds, where the worst rows end."""
    chosen = functional(estimator)
    for sample in SAMPLES:
        alone = CorruptedSample(sample, BOUNDS, None)
        beside = CorruptedSample(sample, BOUNDS, np.array(OTHERS))
        before = estimate(chosen, sample)
        for trouble, kind, ways in (
            (alone, "corrupted", all_corrupted),
            (alone, "mislabelled", all_mislabelled),
            (beside, "mislabelled", all_exchanged),
        ):
            found = abs(estimate(chosen, worst_sample(chosen, trouble, kind, count)) - before)
            assert found == pytest.approx(farthest(estimator, sample, ways(sample, count)), abs=1e-9)


def test_a_search_finds_no_more_than_there_is_and_most_of_it() -> None:
    chosen, points = MLocation(Tukey(), 1), np.linspace(*BOUNDS, 25)
    for sample in SAMPLES[::2]:
        trouble = CorruptedSample(sample, BOUNDS, None)
        found = abs(estimate(chosen, worst_sample(chosen, trouble, "corrupted", 1)) - estimate(chosen, sample))
        there = farthest(chosen, sample, all_corrupted(sample, 1, points))
        assert 0.9 * there - 1e-9 <= found <= there + 1e-9


AGES = [float(18 + (37 * k) % 61) for k in range(61)]


def report(**more: Any) -> Any:
    return robust.robustness_report(**{"values": AGES, "bounds": (0, 120), "epsilon": 1, **more})


def test_a_report_is_not_private_and_says_so() -> None:
    found = report()
    assert isinstance(found, dp.NotPrivate)
    assert str(found).startswith("NOT PRIVATE")
    with pytest.raises(Refused):
        found == found  # noqa: B015


def test_the_local_sensitivity_is_that_of_order_statistics() -> None:
    for estimator, more in ((Quantile(), {"statistic": "median"}), (TrimmedMean(Fraction(6, 61)), {"ends": 6})):
        local = adaptive.local_sensitivity(
            AGES, bounds=(0, 120), relation=dp.Relation.REPLACE_ONE, **{"statistic": "trimmed_mean", **more}
        )
        found = report(estimator=estimator).value
        assert found.robust.local_sensitivity == pytest.approx(local.value)
        assert found.effects_of("corrupted")[1].robust == pytest.approx(local.value)


def test_the_mean_moves_by_its_distance_from_the_bounds() -> None:
    plain = report().value.plain
    mean = sum(AGES) / 61
    assert plain.estimate == pytest.approx(mean)
    assert plain.gross_error_sensitivity == pytest.approx(max(120 - mean, mean))
    assert plain.local_sensitivity == pytest.approx((120 - 18) / 61)
    assert plain.breakdown == 0


def test_the_median_stays_until_half_of_the_rows_are_bad() -> None:
    found = {effect.rows: effect for effect in report(rows=[30, 31]).value.effects_of("corrupted")}
    assert found[0].plain == found[0].robust == 0
    assert found[30].robust == pytest.approx(max(AGES) - 48)
    assert found[31].robust == pytest.approx(120 - 48)


def test_the_noise_of_the_private_median_is_that_of_its_smooth_sensitivity() -> None:
    median = private_version(
        functional(Quantile()), grid=dp.mechanisms.Grid.between(0, 120), epsilon=Fraction(1), delta=None
    )
    recipe = adaptive.best_recipe(lambda beta: adaptive.polynomial(1, beta=beta))
    smooth = adaptive.smooth_sensitivity(
        AGES, bounds=(0, 120), statistic="median", beta=recipe.beta, relation=dp.Relation.REPLACE_ONE
    )
    assert median is not None
    assert median.centre(np.array(AGES)) == 48
    assert median.spread(np.array(AGES)) == pytest.approx(smooth.value * recipe.half_width(), rel=1e-4)
    assert report(rows=[1]).value.effects[0].private == pytest.approx(median.spread(np.array(AGES)))


def test_the_noise_of_the_private_mean_is_laplace_noise() -> None:
    found = report(estimator=Mean(), rows=[1, 5]).value
    spread = 120 / 61 * math.log(20)
    for effect in found.effects_of("corrupted"):
        assert effect.private == pytest.approx(effect.plain + spread, rel=1e-3)


@pytest.mark.statistical
def test_the_noise_of_a_private_huber_estimate_is_measured() -> None:
    """Ten thousand rows: the noise of a Laplace step for them, far below the width of the bounds and not nothing."""
    rows = np.tile(np.array(AGES), 164)
    version = private_version(
        MLocation(Huber(), 10), grid=dp.mechanisms.Grid.between(0, 120), epsilon=Fraction(2), delta=None
    )
    assert isinstance(version, SampledVersion)
    assert 1e-4 < version.spread(rows) < 5


@pytest.mark.parametrize(
    ("estimator", "name", "private", "exact"),
    [
        (Quantile(), "median", "smooth sensitivity", True),
        (Quantile("0.9"), "0.9-quantile", "smooth sensitivity", True),
        (TrimmedMean("0.1"), "0.1-trimmed mean", "smooth sensitivity", True),
        (WinsorisedMean("0.1"), "0.1-Winsorised mean", "smooth sensitivity", True),
        (HodgesLehmann(), "Hodges–Lehmann", None, True),
        (MLocation(Huber(), 10), "Huber", "noisy Newton steps", True),
        (MLocation(Tukey(), 10), "Tukey", "noisy Newton steps", False),
        (MLocation(Huber(), None), "Huber", "noisy Newton steps", False),
        (robust.MedianAbsoluteDeviation(), "median deviation", None, False),
    ],
)
def test_a_report_tells_what_it_is_about(estimator: Any, name: str, private: str | None, exact: bool) -> None:
    found = report(estimator=estimator, rows=[1]).value
    assert (found.robust.name, found.private, found.robust.exact) == (name, private, exact)
    text = str(found)
    assert name in text
    assert ("search" in text) is not exact
    assert (private or "local sensitivity") in text
    assert all(math.isfinite(effect.robust) for effect in found.effects)
    assert all((effect.private is None) is (private is None) for effect in found.effects)


def test_rows_are_one_to_fifty_percent_unless_they_are_named() -> None:
    rows = [effect.rows for effect in report().value.effects_of("corrupted")]
    assert rows[:5] == [0, 1, 2, 4, 7]
    assert rows[-1] == 31
    named = report(rows=[7, 3, 61]).value
    assert [effect.rows for effect in named.effects_of("corrupted")] == [0, 3, 7, 61]
    assert [effect.rows for effect in named.effects_of("mislabelled")] == [0, 3, 7]  # Something must be left.


def test_labels_are_exchanged_with_others_that_are_named() -> None:
    found = report(others=[119.0, 110.0, 1.0], rows=[2, 5]).value
    assert "exchanged" in str(found)
    assert [effect.rows for effect in found.effects_of("mislabelled")] == [0, 2]
    gone = sum(sorted(AGES)[:2])
    assert found.effects_of("mislabelled")[1].plain == pytest.approx((119 + 110 - gone) / 61)


def test_more_budget_gives_a_private_estimate_that_is_less_far_off() -> None:
    less, more = (report(epsilon=epsilon, rows=[3]).value.effects[1].private for epsilon in ("0.1", 10))
    approximate = report(delta="1e-6", rows=[3]).value
    assert more < less
    assert "δ = 1e-06" in approximate.budget


@pytest.mark.parametrize("kind", ["corrupted", "mislabelled"])
def test_the_picture_shows_every_estimate_and_that_it_is_not_private(kind: Any) -> None:
    drawn = json.loads(report().value.plot(kind).to_json())
    assert drawn["title"].startswith("NOT PRIVATE")
    rows = [row for data in drawn["datasets"].values() for row in data if "curve" in row]
    assert {row["curve"] for row in rows} == {"mean", "median", "private median"}
    assert kind in drawn["layer"][0]["encoding"]["x"]["axis"]["title"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": []},
        {"values": [1.0, float("nan")]},
        {"values": ["x"]},
        {"bounds": (8, 0)},
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"delta": 2},
        {"rows": []},
        {"rows": [-1]},
        {"rows": [62]},
        {"rows": [1.5]},
        {"others": []},
    ],
    ids=str,
)
def test_nonsense_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        report(**wrong)


def test_a_picture_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        report().value.plot("lost")
