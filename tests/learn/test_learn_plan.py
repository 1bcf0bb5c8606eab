"""The training plan: public numbers in, one coupled value out, and what it says it spends is what it draws."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.learn.training import AdaptiveClip, Automatic, Flat, PerLayer, TrainingPlan, plan_training
from discreet.learn.training.training_plan import grid_for, root_up
from discreet.privacy import Gaussian, PoissonSampled, PureDP, Relation, Repeated, epsilon

CLIPS = [Flat("0.1"), Automatic(1), PerLayer(2), AdaptiveClip("0.3"), AdaptiveClip(1, count_noise=7)]


def small_plan(**changes: object) -> TrainingPlan:
    chosen: dict[str, object] = {
        "noise_multiplier": "1.1",
        "delta": "1e-5",
        "public_rows": 1000,
        "batch_size": 100,
        "steps": 30,
        "clip": 1,
        "parameters": 50,
        "physical_batch": 32,
    }
    return plan_training(**(chosen | changes))  # type: ignore[arg-type]


def test_rate_steps_and_divisor_come_from_public_numbers() -> None:
    plan = small_plan(public_rows=60_000, batch_size=512, epochs=20, steps=None)
    assert plan.sampling_probability == Fraction(512, 60_000)
    assert plan.steps == 2344  # 20 * 60000 / 512 = 2343.75: the last epoch is finished.
    assert plan.divisor == 512


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: type(clip).__name__)
def test_the_event_is_exactly_that_of_the_stated_multiplier(clip: object) -> None:
    plan = small_plan(clip=clip)
    step = Gaussian(variance=Fraction(121, 100), squared_sensitivity=1)
    assert plan.step_event == step
    assert plan.event == Repeated(PoissonSampled(step, Fraction(1, 10)), 30)
    assert plan.epsilon("1e-5") == epsilon(plan.event, "1e-5", relation=Relation.ADD_REMOVE)


def test_the_least_noise_that_keeps_epsilon_is_chosen() -> None:
    plan = small_plan(epsilon=3, noise_multiplier=None)
    assert 2.999 < plan.epsilon(plan.delta) <= 3
    assert replace(plan, noise_multiplier=plan.noise_multiplier * Fraction(999, 1000)).epsilon(plan.delta) > 3


@settings(max_examples=60, deadline=None)
@given(
    clip=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    parameters=st.integers(1, 10**10),
    slack=st.fractions(min_value=0, max_value=Fraction(1, 2000)),
)
def test_sensitivity_stays_below_a_thousandth_above_the_clip_for_all_sizes(
    clip: Fraction, parameters: int, slack: Fraction
) -> None:
    plan = small_plan(clip=clip, parameters=parameters, slack=slack)
    assert clip * (1 + slack) < plan.sensitivity <= clip * Fraction(1001, 1000)
    # What is added for rounding is at least 2 grid sqrt(P), exactly.
    assert (plan.sensitivity - clip * (1 + slack)) ** 2 >= 4 * plan.grid**2 * parameters
    power = plan.grid.numerator * plan.grid.denominator
    assert power & (power - 1) == 0
    assert min(plan.grid.numerator, plan.grid.denominator) == 1


@given(st.integers(1, 10**18))
def test_roots_are_rounded_up_for_all_whole_numbers(value: int) -> None:
    root = root_up(value)
    assert root**2 >= value
    assert (root - Fraction(1, 1 << 31)) ** 2 < value


def test_the_grid_is_the_largest_that_fits() -> None:
    grid = grid_for(Fraction(1), 10_000)
    assert 2 * grid * isqrt(10_000) <= Fraction(1, 2000) < 4 * grid * isqrt(10_000)


@pytest.mark.parametrize(("parameters", "records"), [(10, 10**11), (10**6, 10**9), (10**9, 5 * 10**7)])
def test_sums_of_many_records_stay_exact_in_doubles(parameters: int, records: int) -> None:
    plan = small_plan(parameters=parameters)
    assert plan.most_records >= records
    assert plan.most_records * plan.sensitivity / plan.grid <= 2**53


def test_noise_is_the_multiplier_times_the_sensitivity() -> None:
    plan = small_plan(noise_multiplier=2, clip="0.1")
    assert plan.variance * plan.grid**2 == 4 * plan.sensitivity**2
    assert plan.deviation == pytest.approx(float(2 * plan.sensitivity / plan.grid))


def test_steps_add_up() -> None:
    plan = small_plan()
    assert plan.after(0) == PureDP(0)
    assert plan.after(30) == plan.event
    assert plan.after(7) == Repeated(plan.event.event, 7)  # type: ignore[attr-defined]


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: type(clip).__name__)
def test_a_plan_reads_back_equal(clip: object) -> None:
    plan = small_plan(clip=clip, slack="0.0001")
    assert TrainingPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"steps": 0},
        {"extra": 1},
        {"clip": {"rule": "Loose", "clip": "1"}},
        {"clip": {"rule": "Flat", "clip": "1", "gamma": "1"}},
        {"clip": "1"},
        {"slack": "1/1000"},
        {"sampling_probability": "2"},
    ],
)
def test_a_plan_that_was_changed_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        TrainingPlan.from_json(json.dumps(json.loads(small_plan().to_json()) | change))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "{}", '{"format": 1}'])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        TrainingPlan.from_json(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1},
        {"noise_multiplier": None},
        {"noise_multiplier": 0},
        {"noise_multiplier": float("nan")},
        {"epochs": 1},
        {"steps": None},
        {"steps": 0},
        {"steps": 1.5},
        {"steps": None, "epochs": 0},
        {"delta": 0},
        {"delta": 1},
        {"delta": "0.001"},  # 1 / public_rows
        {"batch_size": 1001},
        {"batch_size": 0},
        {"public_rows": 0},
        {"public_rows": 99},
        {"clip": 0},
        {"clip": -1},
        {"clip": float("inf")},
        {"clip": "lots"},
        {"parameters": 0},
        {"physical_batch": 0},
        {"slack": "0.001"},
        {"slack": -1},
        {"noise_multiplier": 10**20},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        small_plan(**wrong)


@pytest.mark.parametrize("gone", ["delta", "public_rows", "batch_size", "clip"])
def test_what_is_the_users_choice_has_no_default(gone: str) -> None:
    chosen = {
        "epsilon": 1,
        "delta": "1e-5",
        "public_rows": 100,
        "batch_size": 10,
        "steps": 3,
        "clip": 1,
        "parameters": 2,
        "physical_batch": 8,
    }
    with pytest.raises(TypeError):
        plan_training(**{name: value for name, value in chosen.items() if name != gone})  # type: ignore[arg-type]


def test_a_plan_is_frozen_and_says_what_it_does() -> None:
    plan = small_plan()
    with pytest.raises(FrozenInstanceError):
        plan.steps = 1  # type: ignore[misc]
    assert "30 steps" in plan.describe()
    assert "ε = " in plan.describe()
    assert "δ = 1e-05" in plan.describe()
