"""NumPy's integers wrap around and texts are true: both would weaken a promise without a word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms import (
    AboveThreshold,
    Exponential,
    GaussianNoise,
    LaplaceNoise,
    PermuteAndFlip,
    ReportNoisyMax,
    TopK,
    Variance,
    VectorMean,
)
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.mechanisms.grid import Grid

_ADD, _REPLACE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
_NOISE = LaplaceNoise(epsilon=1)


def test_noisy_max_does_not_wrap_its_sensitivity() -> None:
    assert ReportNoisyMax(epsilon=1, sensitivity=np.uint8(200), candidates=2, relation=_ADD).scale == 400


def test_above_threshold_does_not_wrap() -> None:
    run = AboveThreshold(epsilon=1, sensitivity=np.uint8(200), threshold=np.int8(100), relation=_ADD)
    assert run.answer_scale == 800
    assert type(run.threshold) is int
    assert (
        AboveThreshold(epsilon=1, sensitivity=1, threshold=0, relation=_ADD, positives=np.uint8(200)).answer_scale
        == 800
    )


@pytest.mark.parametrize("size", [4 * 10**7, 10**8])
def test_a_variance_does_not_wrap_its_sensitivity(size: int) -> None:
    plain = Variance(grid=Grid.between(0, 10**6, step=1), relation=_REPLACE, noise=_NOISE, public_rows=size)
    assert replace(plain, public_rows=np.int64(size)).event == plain.event


def test_a_vector_mean_does_not_wrap_its_sensitivity() -> None:
    plain = VectorMean(bound=2**14, step=1, dimension=5, relation=_REPLACE, noise=_NOISE, public_rows=3)
    assert replace(plain, dimension=np.int32(5)).event == plain.event


def test_sensitivities_are_plain_integers() -> None:
    found = Sensitivity(l1=np.int8(100), squared_l2=np.int16(10_000), dimension=np.int8(1))
    assert {type(value) for value in (found.l1, found.squared_l2, found.dimension)} == {int}


@pytest.mark.parametrize("flag", ["no", "False", 1, 0, None, np.True_])
@pytest.mark.parametrize("made", [Exponential, PermuteAndFlip, ReportNoisyMax])
def test_monotone_is_true_or_false(made: Any, flag: object) -> None:
    with pytest.raises(InvalidParameter, match="monotone"):
        made(epsilon=1, sensitivity=1, candidates=2, relation=_ADD, monotone=flag)


@pytest.mark.parametrize("flag", ["no", "False", 1, 0, None])
def test_other_flags_are_true_or_false(flag: Any) -> None:
    with pytest.raises(InvalidParameter, match="monotone"):
        TopK(epsilon=1, sensitivity=1, candidates=2, count=1, relation=_ADD, monotone=flag)
    with pytest.raises(InvalidParameter, match="monotone"):
        AboveThreshold(epsilon=1, sensitivity=1, threshold=0, relation=_ADD, monotone=flag)
    with pytest.raises(InvalidParameter, match="allow_large_delta"):
        GaussianNoise.for_epsilon(1, "0.6", public_rows=2, allow_large_delta=flag)


@pytest.mark.parametrize("public_rows", [-2, 0, True, 1.5, "2"])
def test_a_public_rows_is_a_number_of_people(public_rows: Any) -> None:
    with pytest.raises(InvalidParameter, match="public_rows"):
        GaussianNoise.for_epsilon(1, "0.6", public_rows=public_rows)


def test_an_exact_diagnostic_is_released_in_no_cell() -> None:
    release = dp.histogram(["a"], bins=["a", "b"], relation=_ADD, epsilon=1)
    with pytest.raises(Refused):
        replace(release, value=(release.value[0], dp.NotPrivate(1)))
