"""Whatever is no parameter is refused by a typed error, at once, and leaves no sample behind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.noise import source

NO_NUMBERS: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    np.float32("inf"),
    Decimal("NaN"),
    Decimal("Infinity"),
    "nan",
    "inf",
    "",
    "one",
    "1/0",
    "1e99999",
    "0x10",
    "١",
    "1" * 3000,
    True,
    np.bool_(True),
    None,
    1j,
    b"1",
    [1],
    (1,),
    {1: 1},
    np.array([1.0]),
    object(),
    lambda: 1,
]
BAD_SCALES: list[Any] = [
    *NO_NUMBERS,
    0,
    0.0,
    -0.0,
    -1,
    "-1/3",
    Fraction(1, 2**20 + 1),
    2**50 + 1,
    2**62,
    1e300,
    5e-324,
    Decimal("1e-400"),
]
BAD_VARIANCES: list[Any] = [*NO_NUMBERS, 0, -1, Fraction(1, 2**20 + 1), 2**80 + 1, 1e300, 5e-324]
BAD_SIZES: list[Any] = [
    -1,
    2**32 + 1,
    2**40,
    2**62,
    2**64,
    10**30,
    1.0,
    "3",
    True,
    math.nan,
    [3],
    {3},
    b"3",
    (3, -1),
    (2**20, 2**20),
    (3, None),
    (1.5,),
    (True,),
    (1,) * 33,
    ((2,),),
    np.array([3]),
]
BAD_PROBABILITIES: list[Any] = [*NO_NUMBERS, -1e-9, -1, "1.0000001", 2, Fraction(-1, 3)]
BAD_EXPONENTS: list[Any] = [*NO_NUMBERS, -1, "-1e-300", Fraction(-1, 3)]
BAD_LIMITS: list[Any] = [0, -1, 1.0, "3", True, None, math.nan, 2.5, Fraction(5), [3]]
BAD_COUNTS: list[Any] = [-1, 2**32 + 1, 2**62, 1.0, "3", True, None, [3]]
BAD_SCORES: list[Any] = [
    [],
    (),
    np.array([]),
    np.array([], np.int64),
    None,
    5,
    "123",
    b"123",
    {1, 2},
    iter([1]),
    {0: 1},
    np.array([1.0, 2.0]),
    np.array([[1, 2]]),
    np.array(3),
    np.array([1, 2], np.uint64),
    np.array([True]),
    [math.nan],
    [1, None],
    [1, "x"],
    [[1]],
    [1, True],
    np.array([1, None]),
    np.array([1j]),
    [math.inf],
]
BAD_MULTIPLICITIES: list[Any] = [
    [],
    [1],
    [1, 1, 1],
    [0, 0],
    [1, -1],
    [1, 2**53],
    [1.0, 1],
    [True, 1],
    [1, None],
    5,
    "11",
    np.array([[1, 1]]),
    np.array([1.0, 1.0]),
    np.array([2**53, 1]),
    np.array([-1, 1]),
    {1, 2},
]

CALLS: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("discrete_laplace", lambda bad: noise.discrete_laplace(bad), BAD_SCALES),
    ("discrete_laplace array", lambda bad: noise.discrete_laplace(bad, 10), BAD_SCALES),
    ("discrete_laplace size", lambda bad: noise.discrete_laplace(1, bad), BAD_SIZES),
    ("geometric", lambda bad: noise.geometric(bad), BAD_SCALES),
    ("geometric size", lambda bad: noise.geometric(1, bad), BAD_SIZES),
    ("rounded_laplace", lambda bad: noise.rounded_laplace(bad), BAD_SCALES),
    ("rounded_laplace array", lambda bad: noise.rounded_laplace(bad, 10), BAD_SCALES),
    ("rounded_laplace size", lambda bad: noise.rounded_laplace(1, bad), BAD_SIZES),
    ("discrete_gaussian variance", lambda bad: noise.discrete_gaussian(variance=bad), BAD_VARIANCES),
    ("discrete_gaussian sigma", lambda bad: noise.discrete_gaussian(bad), BAD_VARIANCES),
    ("discrete_gaussian both", lambda bad: noise.discrete_gaussian(1, variance=bad), [1, 2, "x"]),
    ("discrete_gaussian size", lambda bad: noise.discrete_gaussian(1, bad), BAD_SIZES),
    ("rounded_gaussian variance", lambda bad: noise.rounded_gaussian(variance=bad), BAD_VARIANCES),
    ("rounded_gaussian sigma", lambda bad: noise.rounded_gaussian(bad), BAD_VARIANCES),
    ("rounded_gaussian size", lambda bad: noise.rounded_gaussian(1000, bad), BAD_SIZES),
    ("bernoulli", lambda bad: noise.bernoulli(bad), BAD_PROBABILITIES),
    ("bernoulli size", lambda bad: noise.bernoulli("1/3", bad), BAD_SIZES),
    ("bernoulli_exp", lambda bad: noise.bernoulli_exp(bad), BAD_EXPONENTS),
    ("bernoulli_exp size", lambda bad: noise.bernoulli_exp(1, bad), BAD_SIZES),
    ("uniform", lambda bad: noise.uniform(bad), BAD_LIMITS),
    ("uniform array", lambda bad: noise.uniform(bad, 3), [*BAD_LIMITS, 2**63 + 1, 2**64]),
    ("uniform size", lambda bad: noise.uniform(3, bad), BAD_SIZES),
    ("permutation", lambda bad: noise.permutation(bad), BAD_COUNTS),
    ("categorical", lambda bad: noise.categorical(bad, factor=1), BAD_SCORES),
    ("categorical factor", lambda bad: noise.categorical([1, 2], factor=bad), BAD_EXPONENTS),
    (
        "categorical multiplicities",
        lambda bad: noise.categorical([1, 2], factor=1, multiplicities=bad),
        BAD_MULTIPLICITIES,
    ),
    ("permute_and_flip", lambda bad: noise.permute_and_flip(bad, factor=1), BAD_SCORES),
    ("permute_and_flip factor", lambda bad: noise.permute_and_flip(np.array([1, 2]), factor=bad), BAD_EXPONENTS),
]
CASES = [(name, call, bad) for name, call, bads in CALLS for bad in bads]


def test_there_are_hundreds_of_cases() -> None:
    assert len(CASES) > 400


@pytest.mark.parametrize("what", sorted({name for name, _, _ in CASES}))
def test_bad_input_is_refused_at_once(what: str) -> None:
    for _, call, bad in (case for case in CASES if case[0] == what):
        start = time.process_time()
        with pytest.raises(InvalidParameter) as caught:
            call(bad)
        assert str(caught.value), bad
        assert len(str(caught.value)) < 300, bad
        assert time.process_time() - start < 10, bad


@pytest.mark.parametrize("call", [noise.discrete_gaussian, noise.rounded_gaussian])
def test_a_gaussian_needs_a_width(call: Any) -> None:
    with pytest.raises(InvalidParameter, match="either sigma or variance"):
        call()
    with pytest.raises(InvalidParameter, match="either sigma or variance"):
        call(size=3)


def test_a_message_repeats_no_score() -> None:
    for bad in ([12345, "secret"], [12345, None], np.array([12345.5])):
        with pytest.raises(InvalidParameter) as caught:
            noise.categorical(bad, factor=1)
        assert "12345" not in str(caught.value)
        assert "secret" not in str(caught.value)


def test_sizes_are_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_local", None)  # Any read would fail on it.
    for call in (noise.discrete_laplace, noise.rounded_gaussian, noise.bernoulli, noise.uniform):
        with pytest.raises(InvalidParameter):
            call(1, 2**62)
    with pytest.raises(InvalidParameter):
        noise.permutation(2**62)


def test_the_ends_of_the_ranges_are_within_them() -> None:
    for scale in (Fraction(1, 2**20), 2**50):
        for call in (noise.discrete_laplace, noise.geometric, noise.rounded_laplace):
            assert call(scale, 3).shape == (3,)
            assert isinstance(call(scale), int)
    for variance in (Fraction(1, 2**20), 2**80):
        for gaussian in (noise.discrete_gaussian, noise.rounded_gaussian):
            assert gaussian(size=3, variance=variance).shape == (3,)
            assert isinstance(gaussian(variance=variance), int)
    assert 0 <= noise.uniform(10**100) < 10**100
    assert noise.uniform(2**63, 3).min() >= 0
    assert noise.bernoulli(0, 5).tolist() == [0] * 5
    assert noise.bernoulli(1, 5).tolist() == [1] * 5


@pytest.mark.parametrize("exponent", ["1e9", "1e12", 10**100, "1e2000"])
def test_a_probability_of_next_to_nothing_costs_next_to_nothing(exponent: Any) -> None:
    start = time.process_time()
    assert noise.bernoulli_exp(exponent) == 0
    assert noise.bernoulli_exp(exponent, 1000).sum() == 0
    assert time.process_time() - start < 10


@pytest.mark.parametrize("value", [1, Fraction(1), Decimal(1), "1", 1.0, np.int64(1), np.float64(1), np.float32(1)])
def test_numbers_of_every_kind_are_read(value: Any) -> None:
    assert isinstance(noise.discrete_laplace(value), int)
    assert noise.rounded_gaussian(value, 3).shape == (3,)


def test_true_is_not_one_even_after_one_was_drawn() -> None:
    """Samplers are kept by parameter, and True equals 1."""
    assert isinstance(noise.discrete_laplace(1), int)
    assert isinstance(noise.bernoulli(1), int)
    for call in (noise.discrete_laplace, noise.bernoulli, noise.rounded_gaussian):
        with pytest.raises(InvalidParameter):
            call(True)
