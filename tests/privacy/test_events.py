"""Events are values: equal ones are one key, they survive storage and copies, and nothing changes them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from fractions import Fraction

import pytest

from discreet.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomlyStopped,
    Repeated,
    SampledWithoutReplacement,
)
from discreet.privacy.events import from_json


def every_kind() -> list[Event]:
    basic: list[Event] = [
        PureDP("0.1"),
        ApproxDP("0.1", "1e-6"),
        ZCDP("1/3"),
        GDP("0.7"),
        Laplace("2.5"),
        DiscreteLaplace("2.5", 3),
        Gaussian(variance=2),
        DiscreteGaussian(variance=2, squared_sensitivity=3, dimension=4),
        RandomizedResponse(1, 5),
        BoundedRange("0.4"),
    ]
    return [
        *basic,
        PoissonSampled(Gaussian(1), "0.01"),
        SampledWithoutReplacement(Laplace(1), 3, 100),
        Repeated(PureDP("0.1"), 10),
        Composed(basic),
        Parallel([Grouped(Laplace(1), 2), Repeated(Gaussian(3), 4)]),
        Grouped(Gaussian(1), 3),
        RandomlyStopped([PureDP(1), Gaussian(2)], "1/2", "0.02"),
    ]


EVENTS = every_kind()


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_back_equal(event: Event) -> None:
    for back in (from_json(event.to_json()), pickle.loads(pickle.dumps(event)), copy.deepcopy(event)):
        assert back == event
        assert hash(back) == hash(event)
        assert back.to_json() == event.to_json()


@pytest.mark.parametrize("at", range(len(EVENTS)), ids=lambda at: type(EVENTS[at]).__name__)
def test_equal_events_are_one_key_and_different_ones_are_not(at: int) -> None:
    event, again = EVENTS[at], every_kind()[at]
    assert hash(event) == hash(event) == hash(again)
    assert {event: 1}[again] == 1
    assert all((event == other) == (i == at) for i, other in enumerate(EVENTS))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_no_field_can_be_set(event: Event) -> None:
    hash(event)
    for field in dataclasses.fields(event):  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, getattr(event, field.name))


def test_a_changed_copy_has_a_hash_of_its_own() -> None:
    event = PureDP("0.1")
    hash(event)
    assert {event: 1}.get(dataclasses.replace(event, epsilon=Fraction(1, 5))) is None


def test_the_order_of_a_set_of_events_is_the_same_in_every_process() -> None:
    """Sums of floats in another order would differ in their last digits, from run to run."""
    code = (
        "from discreet.privacy import Laplace, PureDP, Gaussian;"
        "print([e.to_json() for e in frozenset([*map(Laplace, range(1, 30)), PureDP(1), Gaussian(2)])])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1
