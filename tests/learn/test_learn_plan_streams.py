"""Streams: turns that are far enough apart, noise in a band, and one record's shift against brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from statistical import fits

from discreet.errors import DiscreetError, InvalidParameter, Refused
from discreet.lab import verify
from discreet.lab.verify.small_worlds import Worlds
from discreet.learn.training import AdaptiveClip, plan_stream
from discreet.learn.training import sampling as module
from discreet.learn.training.sampling import Stream
from discreet.learn.training.stream_plan import UNIT, StreamPlan, Unbanding, growth, whole_weights
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import Event, Gaussian, PureDP, Relation, outcomes
from discreet.privacy.outcomes import Outcomes


def small_plan(**changes: Any) -> StreamPlan:
    chosen: dict[str, Any] = {
        "noise_multiplier": 1,
        "delta": "1e-6",
        "public_rows": 600,
        "batch_size": 100,
        "epochs": 3,
        "clip": 1,
        "parameters": 5,
        "physical_batch": 32,
    }
    return plan_stream(**(chosen | changes))


def matrix(weights: tuple[int, ...], steps: int) -> Any:
    """The combination of all steps as one lower triangular matrix."""
    whole = np.zeros((steps, steps), np.int64)
    for j, weight in enumerate(weights[:steps]):
        whole += weight * np.eye(steps, k=-j, dtype=np.int64)
    return whole


def largest_shift(weights: tuple[int, ...], steps: int, period: int) -> int:
    """The largest squared shift over all places of a record and all directions of its turns, on a line."""
    whole, found = matrix(weights, steps), 0
    for place in range(period):
        turns = range(place, steps, period)
        for signs in product((-1, 0, 1), repeat=len(turns)):
            moved = np.zeros(steps, np.int64)
            moved[list(turns)] = signs
            found = max(found, int(((whole @ moved) ** 2).sum()))
    return found


@pytest.mark.parametrize(
    ("steps", "period", "band"), [(6, 2, 2), (7, 3, 2), (8, 3, 3), (9, 4, 1), (5, 5, 5), (10, 2, 2)]
)
def test_the_shift_of_all_turns_dominates_brute_force(steps: int, period: int, band: int) -> None:
    weights = whole_weights(band)
    claimed = -(-steps // period) * sum(weight**2 for weight in weights)
    found = largest_shift(weights, steps, period)
    assert found <= claimed
    if steps % period == 0:
        assert found == claimed  # The first place has all its turns, and room for the band of the last.


def test_turns_closer_than_the_band_move_more() -> None:
    weights = whole_weights(3)
    assert largest_shift(weights, 8, 2) > 4 * sum(weight**2 for weight in weights)
    with pytest.raises(InvalidParameter, match="band"):
        replace(small_plan(), band=7)


@dataclass(frozen=True)
class SmallStream:
    """Three steps on one coordinate, with a turn for everybody in every second; the third looks at the first answer."""

    weights: tuple[int, ...] = (2, 1)
    multiplier: Fraction = Fraction(1)
    wrong: str = ""
    relation = Relation.ADD_REMOVE
    symmetric = True

    @property
    def event(self) -> Event:
        return Gaussian(self.multiplier)

    @property
    def variance(self) -> Fraction:
        squared = sum(weight**2 for weight in self.weights) if self.wrong != "band forgotten" else self.weights[0] ** 2
        return self.multiplier**2 * squared * (2 if self.wrong != "turns forgotten" else 1)

    def distribution(self, data: tuple[int, ...]) -> Outcomes:
        """Records are 1 or -1, all with their turn in steps 0 and 2; in step 2 they turn around after a high answer."""
        around = outcomes.from_law(RoundedGaussianLaw(self.variance), cutoff=Fraction(1, 2**40))
        total, masses = sum(data), {}
        for first, second in product(around.masses, repeat=2):
            answer = first + self.weights[0] * total
            last = total if answer <= 0 else -total
            likely = around.masses[first] * around.masses[second]
            for third, mass in around.masses.items():
                known = (answer, second + self.weights[1] * total, third + self.weights[0] * last)
                masses[known] = likely * mass
        return Outcomes(masses, min(Fraction(1), 3 * around.tail))


def test_a_stream_that_adapts_claims_no_less_than_it_spends() -> None:
    small = SmallStream(multiplier=Fraction(1, 2))
    assert holds(small)
    assert not holds(replace(small, wrong="band forgotten"))
    assert not holds(replace(small, wrong="turns forgotten"))


def holds(stream: SmallStream) -> bool:
    pair = Worlds(((), (1,)), ordered=False)
    epsilons = [Fraction(1), Fraction(4)]
    return verify.check(stream, pair, relation=Relation.ADD_REMOVE, epsilons=epsilons, slack=Fraction(1, 2**30)).holds


def test_the_event_is_that_of_the_stated_multiplier() -> None:
    plan = small_plan(noise_multiplier="1.5")
    assert plan.event == Gaussian(variance=Fraction(9, 4), squared_sensitivity=1)
    assert plan.after(0) == PureDP(0)
    assert plan.after(plan.period) == Gaussian(variance=Fraction(27, 4), squared_sensitivity=1)  # One turn of three.
    assert (plan.period, plan.steps, plan.participations, plan.divisor) == (6, 18, 3, 100)
    assert 2.999 < small_plan(epsilon=3, noise_multiplier=None).epsilon("1e-6") <= 3
    assert StreamPlan.from_json(plan.to_json()) == plan
    assert "18 steps" in plan.describe()


def test_every_record_has_its_turn_once_in_a_period() -> None:
    plan = small_plan()
    stream, seen = Stream(plan), np.zeros((plan.steps, 40), np.int64)
    for row in seen:
        for batch in stream.draw(40):
            row[batch.indices[batch.inside]] += 1
        stream.noisy(np.zeros(5, np.int64))
    assert (seen.sum(axis=0) == 3).all()
    assert all((np.diff(np.flatnonzero(column)) == plan.period).all() for column in seen.T)
    assert len({tuple(column) for column in seen.T}) > 1


def places_of(plan: StreamPlan, records: int) -> Any:
    """Find in which step of the first period every record has its turn."""
    stream, places = Stream(plan), np.full(records, -1)
    for step in range(plan.period):
        for batch in stream.draw(records):
            places[batch.indices[batch.inside]] = step
        stream.noisy(np.zeros(plan.parameters, np.int64))
    return places


def are_independent(places: Any, period: int) -> bool:
    """Whether the turns of records that follow each other are two fair draws, at a false alarm of 1e-9."""
    pairs = places[0::2] * period + places[1::2]
    return bool(chisquare(np.bincount(pairs, minlength=period**2)).pvalue > 1e-9)


@pytest.mark.statistical
def test_turns_are_fair_draws_whatever_the_place_of_a_record() -> None:
    """Else a record that leaves would move the turns of all who come after it."""
    plan = small_plan(parameters=1)
    assert are_independent(places_of(plan, 8000), plan.period)


@pytest.mark.statistical
def test_turns_that_follow_the_place_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.noise, "uniform", lambda period, count: np.arange(count) % period)
    plan = small_plan(parameters=1)
    assert not are_independent(places_of(plan, 8000), plan.period)


def test_without_noise_every_sum_comes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.noise, "rounded_gaussian", lambda variance, size: np.zeros(size, np.int64))
    stream = Stream(small_plan(public_rows=4000, batch_size=100, epochs=1))
    for step in range(40):
        stream.draw(3)
        total = np.arange(5) * 1000 - step * 77
        assert np.allclose(stream.noisy(total), total, rtol=0, atol=1e-6)


def test_released_sums_solve_the_banded_system() -> None:
    weights = whole_weights(4)
    banded, sums = Unbanding(weights), [np.array([step * 3 - 5, 100 - step]) for step in range(9)]
    noisy = [banded.combined(each) + step for step, each in enumerate(sums)]
    solved = np.linalg.solve(matrix(weights, 9), np.array(noisy))
    assert np.allclose([banded.undone(each) for each in noisy], solved)


def test_noise_of_running_sums_falls_with_the_band() -> None:
    """For the same epsilon: the deviation of the sum of all steps so far, averaged over 64 steps of one epoch."""
    errors = {}
    for band in (1, 8, 64):
        weights = whole_weights(band)
        noise_of_sums = np.tril(np.ones((64, 64))) @ np.linalg.inv(matrix(weights, 64))
        errors[band] = np.sqrt((noise_of_sums**2).sum() / 64 * sum(weight**2 for weight in weights))
    assert errors[64] < 0.45 * errors[1]
    assert errors[8] < 0.6 * errors[1]
    assert growth(weights, 64) == pytest.approx(np.linalg.norm(np.linalg.inv(matrix(weights, 64))[-1]))


@pytest.mark.statistical
def test_noise_of_a_combined_sum_follows_its_rounded_gaussian() -> None:
    plan = small_plan(parameters=20_000)
    stream = Stream(plan)
    stream.draw(0)
    noisy = np.rint(stream.noisy(np.zeros(20_000, np.int64)) * UNIT).astype(np.int64)
    assert fits(noisy, RoundedGaussianLaw(plan.variance))
    assert not fits(noisy, RoundedGaussianLaw(plan.variance * 3 / 2))
    assert not fits(noisy, RoundedGaussianLaw(plan.variance * 2 / 3))


def test_steps_cannot_be_skipped_repeated_or_exceeded() -> None:
    stream = Stream(small_plan())
    with pytest.raises(Refused):
        stream.noisy(np.zeros(5, np.int64))
    stream.draw(3)
    with pytest.raises(Refused, match="left"):
        stream.draw(3)
    stream.noisy(np.zeros(5, np.int64))
    with pytest.raises(Refused):
        stream.noisy(np.zeros(5, np.int64))
    with pytest.raises(Refused, match="grow"):
        stream.draw(4)
    stream.close()
    with pytest.raises(DiscreetError):
        stream.draw(3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1},
        {"noise_multiplier": None},
        {"epochs": 0},
        {"band": 0},
        {"band": 7},
        {"clip": AdaptiveClip(1)},
        {"delta": "0.1"},
        {"slack": "0.01"},
        {"batch_size": 0},
        {"batch_size": 601},
    ],
)
def test_nonsense_about_streams_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        small_plan(**wrong)
