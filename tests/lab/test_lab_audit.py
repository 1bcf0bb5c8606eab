"""A claim that holds must not be refuted by how outputs and scores are read; nor a wrong one pass for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.lab import audit
from discreet.lab.audit.output_features import alike, encoder_of, outputs_of
from discreet.privacy import Gaussian

_RARE = [(1.0, 2.5)]  # One such output turns all whole numbers of its sample into floats.


def _read(one: list[Any], other: list[Any]) -> tuple[Any, Any]:
    first, second = alike(outputs_of(one), outputs_of(other))
    encoder = encoder_of(first, second)
    return encoder.sample(first), encoder.sample(second)


def test_one_float_among_whole_numbers_tells_nothing_of_the_others() -> None:
    common = [(1, 2)] * 4999
    shown = audit.hockey_stick_at_least([*common, (1, 2)], [*common, *_RARE], epsilon=0, error=1e-3)
    assert shown < 0  # The laws differ by one in five thousand; 0.92 was shown.


def test_an_audit_of_one_law_is_not_misled_by_the_types_of_numbers() -> None:
    def rarely_a_float(data: int, runs: int) -> Any:
        return np.ones((runs, 2), np.int64 if data else np.float64)

    found = audit.audit(rarely_a_float, [(0, 1)], claim=0, runs=2000, many=True)
    assert not found.refuted


@pytest.mark.parametrize("same", [(True, 1), (Decimal("0.5"), 0.5), (Fraction(1, 2), Decimal("0.5")), (1, 1.0)])
def test_equal_outputs_are_read_alike_whichever_comes_first(same: tuple[Any, Any]) -> None:
    one, other = _read([same[0], same[1], "x"], [same[1], same[0], "x"])
    assert np.array_equal(one.features, other.features)
    assert np.array_equal(one.codes, other.codes)


def test_a_whole_number_that_no_float_holds_stays_itself() -> None:
    one, other = _read([2**53, 2**53 + 1, 0.5], [2**53 + 1, 2**53, 0.5])
    assert one.codes[0] == other.codes[1] != one.codes[1]


def test_outputs_that_equal_only_themselves_are_refused() -> None:
    class Box:
        def __init__(self, value: int) -> None:
            self.inside = value

    with pytest.raises(InvalidParameter, match="cannot compare"):
        audit.audit(lambda data: Box(len(data)), [((), (1,))], claim=1, runs=100)


def test_what_is_published_beside_a_value_is_looked_at_too() -> None:
    @dataclass(frozen=True)
    class Told:
        value: int
        scale: int

    assert audit.audit(lambda data: Told(0, len(data)), [((), (1,))], claim=1, runs=2000).refuted
    assert not audit.audit(lambda data: Told(0, 1), [((), (1,))], claim=0, runs=2000).refuted


def test_a_claim_beyond_all_exponents_is_audited() -> None:
    assert not audit.audit(lambda data: len(data), [((), (1,))], claim=1000, runs=2000).refuted
    assert audit.audit(lambda data: len(data), [((), (1,))], claim=1, runs=2000).refuted
    assert audit.hockey_stick_at_least([0] * 8, [1] * 8, epsilon=1000, error=0.1) < 0


@pytest.mark.parametrize("kept", [0, -1])
def test_no_pair_to_be_tested_is_refused(kept: int) -> None:
    with pytest.raises(InvalidParameter, match="kept"):
        audit.audit(lambda data: len(data), [((), (1,)), ((1,), (1, 1))], claim=1, runs=100, kept=kept)


def test_scores_that_are_no_numbers_find_no_canary() -> None:
    lost = [math.nan] * 1000
    with pytest.raises(InvalidParameter, match="not a number"):
        audit.audit_steps(lost, lost, step=Gaussian(1), steps=1, delta=1e-5)
    with pytest.raises(InvalidParameter, match="NaN"):
        audit.guess(lost, [False, True] * 500, high=10, low=10)


def test_equal_scores_find_no_canary_in_whatever_order_they_are_listed() -> None:
    for included in ([False] * 500 + [True] * 500, [True] * 500 + [False] * 500):
        found = audit.audit_one_run([0.0] * 1000, included, claim=Gaussian(100), high=500, low=500, delta=1e-5)
        assert found.epsilon == found.mu == 0
        assert not found.refuted


def test_scores_that_differ_still_find_canaries() -> None:
    guesses = audit.guess([0.0, 0.0, 1.0, 1.0], [False, False, True, True], high=2, low=2)
    assert guesses.right == 4


@pytest.mark.parametrize(("delta", "error"), [(-0.1, 0.05), (math.nan, 0.05), (0.0, 1.0), (0.0, 0.0)])
def test_chances_that_are_none_show_nothing(delta: float, error: float) -> None:
    guesses = audit.Guesses(canaries=1000, made=1000, right=700)
    with pytest.raises(InvalidParameter):
        audit.epsilon_from_guesses(guesses, delta=delta, error=error)


def test_a_negative_delta_shows_nothing() -> None:
    errors = audit.Errors(false_alarms=10, misses=10, without=100, with_it=100)
    with pytest.raises(InvalidParameter):
        audit.epsilon_from_errors(errors, delta=-1.0, error=0.05)
