"""Who takes part in a step: exact coins, independent of each other, random order, batches of one shape."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from inclusion import again_p, fixed_size, pair_p, right_coins, shuffled, single_p
from scipy import stats

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.learn.training import TrainingPlan, plan_training
from discreet.learn.training.sampling import NOBODY, PoissonSampler, cut

RATE, COUNT, STEPS = 0.1, 20, 4000


def plan_of(rate: Fraction, *, slots: int = 4) -> TrainingPlan:
    return plan_training(
        noise_multiplier=1,
        delta="1e-9",
        public_rows=rate.denominator,
        batch_size=rate.numerator,
        steps=10,
        clip=1,
        parameters=3,
        physical_batch=slots,
    )


def members(rate: Fraction, count: int, steps: int) -> Any:
    """Return who was in, a row for every step."""
    sampler, drawn = PoissonSampler(plan_of(rate)), np.zeros((steps, count), bool)
    for row in drawn:
        for batch in sampler.draw(count):
            row[batch.indices[batch.inside]] = True
    return drawn


@pytest.fixture(scope="module")
def drawn() -> Any:
    return members(Fraction(1, 10), COUNT, STEPS)


@pytest.mark.statistical
def test_inclusion_follows_independent_coins(drawn: Any) -> None:
    assert right_coins(drawn, RATE)
    assert not right_coins(drawn, RATE * 1.2)
    assert not right_coins(drawn, RATE * 0.8)


@pytest.mark.statistical
def test_a_shuffling_loader_is_caught_by_pairs() -> None:
    drawn = shuffled(COUNT, 2, 2 * STEPS, noise.permutation)
    assert drawn.sum(axis=1).tolist() == [2] * 2 * STEPS
    assert pair_p(drawn, RATE) < 1e-9
    assert again_p(drawn, RATE) < 1e-9


@pytest.mark.statistical
def test_samples_of_fixed_size_are_caught_by_pairs_of_records_only() -> None:
    drawn = fixed_size(COUNT, 2, 2 * STEPS, noise.permutation)
    assert single_p(drawn, RATE) > 1e-9
    assert again_p(drawn, RATE) > 1e-9
    assert pair_p(drawn, RATE) < 1e-9


@pytest.mark.statistical
def test_batch_sizes_follow_a_binomial_law_and_are_sometimes_nothing(drawn: Any) -> None:
    sizes = drawn.sum(axis=1)
    counts = np.bincount(np.minimum(sizes, 5), minlength=6)
    chances = np.append(stats.binom.pmf(range(5), COUNT, RATE), stats.binom.sf(4, COUNT, RATE))
    assert stats.chisquare(counts, chances * STEPS).pvalue > 1e-9
    assert counts[0] > 0  # 0.9^20 = 12 %


def test_an_empty_sample_has_no_batch() -> None:
    sampler = PoissonSampler(plan_of(Fraction(1, 2)))
    assert sampler.draw(0) == []
    assert [] in [sampler.draw(1) for _ in range(100)]  # Fails once in 2^100.


def test_everybody_is_in_at_rate_one() -> None:
    batches = PoissonSampler(plan_of(Fraction(1), slots=8)).draw(20)
    assert sorted(np.concatenate([batch.indices[batch.inside] for batch in batches])) == list(range(20))


def test_batches_have_one_shape_and_only_the_last_is_filled_up() -> None:
    for count in range(12):
        batches = cut(np.arange(count), 4)
        assert len(batches) == -(-count // 4)
        assert all(batch.indices.shape == batch.inside.shape == (4,) for batch in batches)
        assert all(batch.inside.all() for batch in batches[:-1])
        together = np.concatenate([np.empty(0, np.int64), *(batch.indices for batch in batches)])
        assert together.tolist() == [*range(count), *[NOBODY] * (-count % 4)]
        assert all((batch.inside == (batch.indices != NOBODY)).all() for batch in batches)


@pytest.mark.statistical
def test_the_order_follows_the_uniform_law() -> None:
    sampler = PoissonSampler(plan_of(Fraction(1)))
    seen = Counter(tuple(sampler.draw(4)[0].indices.tolist()) for _ in range(2000))
    assert set(seen) == set(permutations(range(4)))
    assert stats.chisquare(list(seen.values())).pvalue > 1e-9


@pytest.mark.parametrize("count", [-1, 1.5, True, "3", 1 << 60])
def test_counts_that_are_none_are_refused(count: Any) -> None:
    with pytest.raises(InvalidParameter):
        PoissonSampler(plan_of(Fraction(1, 2))).draw(count)
