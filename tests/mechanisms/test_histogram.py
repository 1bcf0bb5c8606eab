"""Histograms with public bins: every bin gets noise, keys have one form, sensitivity is 1 or 2."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from subjects import ADD_REMOVE, BOTH, REPLACE_ONE, laplace

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.frames.column import Column, column_of
from discreet.lab.verify import check, worlds
from discreet.mechanisms import GaussianNoise, Histogram
from discreet.mechanisms.histogram import bin_counts
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.events import DiscreteLaplace, Gaussian


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("people", [0, 1, 5])
def test_no_bin_is_left_out_however_empty_it_is(relation: Any, people: int) -> None:
    """C14 for known bins: by the exact law, a count of any size is possible for any bin, with or without a person."""
    mechanism = Histogram(bins=("a", "b"), relation=relation, noise=laplace(2))
    law = DiscreteLaplaceLaw(Fraction(1 if relation is REPLACE_ONE else Fraction(1, 2)))
    with precision(128):
        masses = mechanism.distribution(["a"] * people).masses
        for count in range(-3, 9):
            for other in (-1, 0, 1):
                expected = law.pmf(count - people) * law.pmf(other)
                assert masses[count, other].overlaps(expected)
                assert masses[count, other] > 0


def test_noise_for_one_bin_under_replace_one_is_refuted() -> None:
    """The mutant: noise 1 / epsilon for a histogram in which a row may change its bin."""
    wrong = Histogram(bins=("a", "b"), relation=ADD_REMOVE, noise=laplace(2))
    report = check(wrong, worlds("ab", (3,)), relation=REPLACE_ONE, claim=wrong.event)
    assert any(finding.violated for finding in report.findings)


def test_the_number_of_bins_does_not_matter_for_the_noise() -> None:
    one, many = (Histogram(bins=tuple(range(size)), relation=ADD_REMOVE, noise=laplace(1)) for size in (2, 100))
    assert one.event == many.event == DiscreteLaplace(1, 1)
    gaussian = Histogram(bins=(1, 2, 3), relation=REPLACE_ONE, noise=GaussianNoise(squared_multiplier=Fraction(2)))
    assert gaussian.event == Gaussian(variance=4, squared_sensitivity=2)
    assert gaussian.release([1]).noise == RoundedGaussianLaw(Fraction(4))


def test_keys_have_one_form() -> None:
    assert bin_counts(column_of(["é", "é", "e"]), ("é", "e")) == (2, 1)
    assert bin_counts(column_of([0.0, -0.0, 0, np.int8(0), Decimal(0), False]), (0, 1)) == (6, 0)
    assert bin_counts(column_of(np.array([-0.0, 0.0, 1.0])), (0, 1)) == (2, 1)
    assert bin_counts(column_of([math.nan, None, "x", Decimal("NaN"), 1]), (None, 1)) == (3, 1)
    assert bin_counts(column_of(np.array([math.nan, 1.0])), (None, 1)) == (1, 1)
    assert bin_counts(Column(np.array([1, 2, 1]), np.array([True, False, False])), (1, 2, None)) == (1, 1, 1)


def test_what_is_in_no_bin_is_not_counted() -> None:
    assert bin_counts(column_of([[], {}, object(), "z", ("a", []), 1j]), ("a",)) == (0,)


def test_arrays_and_lists_are_counted_alike() -> None:
    values = [3, 1, 2, 3, 3, 9, 1]
    for kind in ("int64", "uint8", "float32", "object"):
        assert bin_counts(column_of(np.array(values).astype(kind)), (1, 2, 3)) == bin_counts(
            column_of(values), (1, 2, 3)
        )
    assert bin_counts(column_of(np.array(["a", "b", "a"])), ("a", "b")) == (2, 1)
    assert bin_counts(column_of(np.array([True, False, True])), (True,)) == (2,)


@pytest.mark.parametrize("bins", [(), ("a", "a"), (1, 1.0), (0, False), (math.nan,), ([],), "ab", b"ab", 5, None])
def test_bad_bins_are_refused(bins: Any) -> None:
    with pytest.raises(InvalidParameter):
        Histogram(bins=bins, relation=ADD_REMOVE, noise=laplace(1))


def test_labels_follow_the_bins() -> None:
    release = Histogram(bins=("a", 7, None), relation=ADD_REMOVE, noise=laplace(60)).release(["a", "a", 7, None])
    assert release.as_dict() == {"a": 2, "7": 1, "None": 1}


def test_ratio_between_neighbours_is_reached() -> None:
    mechanism = Histogram(bins=("a", "b"), relation=REPLACE_ONE, noise=laplace(2))
    with precision(128):
        one, other = (mechanism.distribution([letter]).masses for letter in "ab")
        ratio = (one[5, -5] / other[5, -5]).log()
        assert abs(ratio - 2) < ball(Fraction(1, 2**60))
