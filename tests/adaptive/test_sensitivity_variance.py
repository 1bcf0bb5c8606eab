"""The sensitivity of a variance: the definition on small data sets, and why no smooth bound is used."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sensitivity_worlds import ADD_REMOVE, HIGH, LOW, REPLACE_ONE, data_sets

from discreet.adaptive.local_sensitivity_bounds import (
    global_variance,
    local_sensitivity,
    local_variance,
    smooth_sensitivity,
)
from discreet.errors import InvalidParameter
from discreet.mechanisms.order_statistics import Ranked

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "smooth_sensitivity.json").read_text())["vectors"]
BY_NAME = {vector["id"].partition("/")[2]: vector for vector in VECTORS}


def variance(values) -> Fraction:
    return Fraction(sum(v * v for v in values), len(values)) - Fraction(sum(values), len(values)) ** 2


def by_definition(x, low: int, high: int) -> Fraction:
    """Every value, replaced by each bound and by where the variance is least: the mean of the others."""
    changes = [
        abs(variance((*rest, value)) - variance(x))
        for rest in (x[:i] + x[i + 1 :] for i in range(len(x)))
        for value in (low, high, Fraction(sum(rest), len(rest)))
    ]
    return max(changes)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_local_sensitivity_agrees_with_the_definition_and_is_never_far_below_the_global_one(n: int) -> None:
    everywhere = global_variance(Fraction(HIGH - LOW), n)
    found = {x: local_variance(Ranked(np.array(x), LOW, HIGH)) for x in data_sets(n)}
    assert all(by_definition(x, LOW, HIGH) == local for x, local in found.items())
    assert max(found.values()) == everywhere
    assert min(found.values()) >= everywhere / 8


def test_the_local_sensitivity_agrees_with_the_definition_for_uneven_values() -> None:
    source = np.random.default_rng(5)
    for size in range(2, 26):
        x = tuple(int(v) for v in source.integers(0, 1000, size) ** 2 // 1000)
        assert local_variance(Ranked(np.array(x), 0, 1000)) == by_definition(x, 0, 1000)


def test_the_vectors_agree() -> None:
    local = BY_NAME["LS_var_C"]
    found = local_sensitivity(local["inputs"]["x"], bounds=(0, 40), relation=REPLACE_ONE, statistic="variance")
    assert found.value == pytest.approx(local["expected"], rel=1e-9)
    for name in ("GS_var_pop_n10", "GS_var_pop_n100"):
        inputs = BY_NAME[name]["inputs"]
        asked = {"bounds": (inputs["lo"], inputs["hi"]), "relation": REPLACE_ONE, "statistic": "variance"}
        found = smooth_sensitivity([inputs["lo"]] * inputs["n"], beta=1, **asked)
        assert found.value == pytest.approx(BY_NAME[name]["expected"], rel=1e-12)
    # With the divisor n - 1 it is larger by n / (n - 1).
    unbiased = global_variance(Fraction(10), 100) * Fraction(100, 99)
    assert float(unbiased) == pytest.approx(BY_NAME["GS_var_unbiased_n100"]["expected"], rel=1e-12)


@pytest.mark.parametrize("change", [{"relation": ADD_REMOVE}, {"rank": 1}, {"ends": 1}, {"distance": 1}], ids=str)
def test_nonsense_is_refused(change: dict) -> None:
    asked = {"bounds": (0, 4), "relation": REPLACE_ONE, "statistic": "variance"}
    with pytest.raises(InvalidParameter):
        local_sensitivity([1, 2, 3], **(asked | change))


def test_the_variance_of_nothing_is_refused_and_of_one_value_never_moves() -> None:
    asked = {"bounds": (0, 4), "relation": REPLACE_ONE, "statistic": "variance"}
    assert local_sensitivity([1], **asked).value == 0
    with pytest.raises(InvalidParameter, match="at least one value"):
        local_sensitivity([], **asked)
