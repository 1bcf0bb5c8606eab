"""Noise drawn ahead: exact, never handed out twice, not across a fork, and it ends when the run does."""

from __future__ import annotations

import gc
import multiprocessing
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from statistical import fits

from discreet import noise
from discreet.errors import InvalidParameter, NoiseOverflow
from discreet.learn.training import AdaptiveClip, TrainingPlan, plan_training, prefetched_noise
from discreet.learn.training.adaptive_clip import FollowedClip
from discreet.learn.training.grid_sums import GridSum
from discreet.learn.training.prefetched_noise import NoiseAhead
from discreet.noise.laws import RoundedGaussianLaw


def small_plan(parameters: int = 50, **changes: Any) -> TrainingPlan:
    chosen: dict[str, Any] = {
        "noise_multiplier": "1.1",
        "delta": "1e-5",
        "public_rows": 1000,
        "batch_size": 100,
        "steps": 30,
        "clip": 1,
        "parameters": parameters,
        "physical_batch": 32,
    }
    return plan_training(**(chosen | changes))


def threads() -> int:
    return sum(thread.name == "discreet-noise" for thread in threading.enumerate())


def soon(law: Callable[[], bool]) -> bool:
    """Wait a while for something that another thread does."""
    end = time.monotonic() + 20
    while not law() and time.monotonic() < end:
        time.sleep(0.01)
    return law()


@pytest.mark.statistical
@pytest.mark.parametrize("waiting", [0, 2])
def test_noise_follows_the_rounded_gaussian_of_the_plan(waiting: int) -> None:
    plan = small_plan(parameters=30_000)
    with NoiseAhead(plan, ahead=waiting) as noise:
        drawn = noise.next()
    assert drawn.dtype == np.int32
    assert drawn.shape == (30_000,)
    assert fits(drawn, RoundedGaussianLaw(plan.variance))
    assert not fits(drawn, RoundedGaussianLaw(plan.variance * 3 / 2))
    assert not fits(drawn, RoundedGaussianLaw(plan.variance * 2 / 3))


def test_no_vector_is_handed_out_twice() -> None:
    with NoiseAhead(small_plan(), ahead=1) as noise:
        vectors = [noise.next() for _ in range(50)]
    assert len({vector.tobytes() for vector in vectors}) == 50
    assert not any(np.shares_memory(one, other) for one, other in pairwise(vectors))


def test_no_more_wait_than_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(prefetched_noise, "draw", lambda plan: drawn.append(1) or np.zeros(plan.parameters, np.int64))
    with NoiseAhead(small_plan(), ahead=2) as noise:
        noise.next()
        assert soon(lambda: len(drawn) == 4)  # One was taken, two wait, and one is in hand.
        time.sleep(0.3)
        assert len(drawn) == 4


@pytest.mark.parametrize(("parameters", "started"), [(50, 0), (20_000, 1)])
def test_short_vectors_need_no_thread(parameters: int, started: int) -> None:
    before = threads()
    with NoiseAhead(small_plan(parameters)) as noise:
        noise.next()
        assert threads() == before + started


def test_closing_ends_the_thread() -> None:
    before = threads()
    noise = NoiseAhead(small_plan(), ahead=1)
    noise.next()
    assert threads() == before + 1
    noise.close()
    assert threads() == before
    noise.close()
    with pytest.raises(InvalidParameter):
        noise.next()


def test_a_row_that_is_forgotten_ends_its_thread() -> None:
    before = threads()
    noise = NoiseAhead(small_plan(), ahead=1)
    noise.next()
    del noise
    gc.collect()
    assert soon(lambda: threads() == before)


def test_what_fails_in_the_thread_is_raised_where_noise_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(plan: TrainingPlan) -> Any:
        raise NoiseOverflow("planted")

    monkeypatch.setattr(prefetched_noise, "draw", fail)
    with NoiseAhead(small_plan(), ahead=1) as noise:
        for _ in range(2):
            with pytest.raises(NoiseOverflow, match="planted"):
                noise.next()


def child(noise: NoiseAhead, pipe: Any) -> None:
    pipe.send([noise.next().tobytes() for _ in range(3)])
    noise.close()
    pipe.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_draws_its_own_noise() -> None:
    with NoiseAhead(small_plan(), ahead=2) as noise:
        noise.next()
        time.sleep(0.1)  # Two vectors wait now, and a child that took them would share them with its parent.
        context = multiprocessing.get_context("fork")
        mine, theirs = context.Pipe()
        process = context.Process(target=child, args=(noise, theirs))
        process.start()
        assert mine.poll(60)
        in_child = mine.recv()
        process.join(60)
        in_parent = [noise.next().tobytes() for _ in range(3)]
    assert process.exitcode == 0
    assert len({*in_child, *in_parent}) == 6


@pytest.mark.parametrize("wrong", [-1, 1.5, True, 10**6])
def test_a_queue_of_no_sane_length_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        NoiseAhead(small_plan(), ahead=wrong)


@pytest.mark.statistical
def test_noise_on_the_count_follows_its_rounded_gaussian() -> None:
    """The noisy count is told apart by where the clip goes: a rate and a batch that make it readable."""
    plan = small_plan(clip=AdaptiveClip(1, count_noise=40, rate="0.001"))
    moved = [FollowedClip(plan).follow(0) for _ in range(3000)]
    counts = np.rint(-np.log(moved) / 0.001 * 200).astype(np.int64)  # Minus rate times noisy / (2 * 100).
    assert fits(counts, RoundedGaussianLaw(plan.count_variance))
    assert plan.count_variance == 80**2
    assert not fits(counts, RoundedGaussianLaw(plan.count_variance / 2))


def test_the_clip_moves_towards_its_quantile() -> None:
    plan = small_plan(clip=AdaptiveClip(1, quantile="0.9"), batch_size=1000)
    low, high = FollowedClip(plan), FollowedClip(plan)
    for _ in range(60):
        low.follow(1000)  # Every norm is below the clip: it falls, by 0.02 in each step.
        high.follow(-1000)
    assert 0.1 < low.current < 0.5
    assert high.current > 1000
    assert FollowedClip(plan, current=0.25).current == 0.25


def test_the_clip_stays_of_a_sane_size_whatever_the_noise_says() -> None:
    rule = AdaptiveClip(2)
    clip = 2.0
    for _ in range(1000):
        clip = rule.updated(clip, -(10.0**9))
    assert clip == pytest.approx(2 * np.exp(14))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AdaptiveClip(0),
        lambda: AdaptiveClip(1, quantile=0),
        lambda: AdaptiveClip(1, quantile=1),
        lambda: AdaptiveClip(1, rate=0),
        lambda: AdaptiveClip(1, rate=2),
        lambda: AdaptiveClip(1, count_noise=0),
        lambda: small_plan(clip=AdaptiveClip(1, count_noise="0.55")),  # Half the multiplier: nothing is left.
        lambda: small_plan(clip=1).count_variance,
        lambda: FollowedClip(small_plan(clip=1)),
    ],
)
def test_clips_that_cannot_follow_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        wrong()


# --- One pass for grid, rounding, noise and scale ---------------------------------------------------------------------


def _pieces(sizes: tuple[int, ...], grid: float) -> tuple[GridSum, list[int]]:
    """A sum of some float32 and float64 pieces and of earlier batches, and what it is in whole grid steps."""
    parts, exact = [], []
    for number, size in enumerate(sizes):
        steps = [noise.rounded_gaussian(1 << 18, size) / 8 for _ in range(number % 3 + 1)]
        parts.append([(each * grid).astype(np.float32 if number % 2 else np.float64) for each in steps])
        exact.append(sum(each.astype(np.float64) for each in parts[-1]) / grid)
    before = noise.rounded_gaussian(1 << 30, sum(sizes)).astype(np.float64)
    whole = np.rint(np.concatenate(exact)).astype(np.int64) + before.astype(np.int64)
    return GridSum(parts, grid, before), whole.tolist()


@pytest.mark.parametrize("sizes", [(1,), (3, 5, 2), (1 << 14,), (7, (1 << 14) + 1, 40_000)])
def test_a_sum_is_rounded_to_the_grid_and_gets_its_noise_in_whole_numbers(sizes):
    taken, whole = _pieces(sizes, 2.0**-20)
    assert taken.whole().astype(np.int64).tolist() == whole
    drawn = noise.uniform(1 << 62, taken.size) - (1 << 61)  # Float64 would lose ten bits of these.
    expected = [np.float32(float(a + int(b)) * 0.375) for a, b in zip(whole, drawn, strict=True)]
    assert taken.noisy(drawn, 0.375).tolist() == expected
    assert taken.noisy(drawn - np.array(whole), 1.0).tolist() == drawn.astype(np.float64).astype(np.float32).tolist()
    short = (drawn >> 31).astype(np.int32)
    assert taken.noisy(short, 0.375).tolist() == taken.noisy(short.astype(np.int64), 0.375).tolist()


@pytest.mark.parametrize("limit", [None, np.inf])
def test_what_is_released_follows_from_the_exact_sum_with_its_noise(limit, monkeypatch):
    """Sums that are the same with their noise must look alike; floats that round noise by itself tell them apart."""
    if limit is not None:
        monkeypatch.setattr("discreet.learn.training.grid_sums._EXACT", limit)
    total = 2**53 + 2**29 + 1
    alike = [GridSum([[np.full(1, float(part))]], 1.0).noisy(np.array([total - part]), 1.0).item() for part in (0, 2)]
    assert (alike[0] == alike[1]) is (limit is None)


@pytest.mark.parametrize("power", [-160, -140, -126, 0, 120])
def test_grids_beyond_float32_round_as_others_do(power: int) -> None:
    """A sum of 0 stays 0 on a grid whose inverse float32 does not hold: times infinity it would not be a number."""
    grid = 2.0**power
    values = np.array([0.0, 1.0, -3.0], np.float64) * grid
    single = values.astype(np.float32)
    wanted = np.rint(single.astype(np.float64) / grid)
    assert GridSum([[single]], grid).whole().tolist() == wanted.tolist()
    assert wanted[0] == 0


def test_noise_before_the_rounding_is_told_apart_from_noise_after_it():
    """The law of F + round(Z) needs a sum on the grid: what is rounded off must not come back with the noise."""
    taken = GridSum([[np.array([0.5 - 2.0**-30, 1.5 - 2.0**-30])]], 1.0)
    noisy = taken.noisy(np.array([1 << 20, -(1 << 20)]), 1.0)
    assert noisy.tolist() == [1 << 20, 1 - (1 << 20)]
