"""Samples follow their laws, and would not if the scale were 1 % or 30 % off."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare
from statistical import Bins, fits, rejects

from discreet import noise
from discreet.balls import ball

SIZE, SINGLE, LARGE = 100_000, 5_000, 4_000_000
FAMILY_WISE = 1e-3  # Over all comparisons of a slow run.


class Clipped:
    """A wide law, taken to end where it has less than 1e-22 left: its tails cost more to sum than to draw."""

    def __init__(self, law: Any) -> None:
        self._law = law
        self._end = int((60 if hasattr(law, "scale") else 9.9) * law.standard_deviation)
        self.cdf = cache(self._cdf)
        self.pmf = law.pmf

    def half_width(self, confidence: Any) -> int:
        return self._end

    def _cdf(self, k: int) -> Any:
        return ball(int(k > 0)) if abs(k) > self._end else self._law.cdf(k)


@cache
def listed_or_clipped(law: Any) -> Any:
    return law if law.standard_deviation < 420 else Clipped(law)


@dataclass(frozen=True)
class Sampler:
    """A function of `noise`, the law that it follows, and the parameter of that law, which is a scale or a square."""

    draw: Callable[..., Any]
    law: Callable[[Fraction], Any]
    parameter: str

    def sample(self, size: int) -> NDArray[np.int64]:
        drawn = self.draw(self.parameter, size)
        assert drawn.dtype == np.int64
        assert drawn.shape == (size,)
        return drawn

    def singles(self, size: int) -> list[int]:
        return [self.draw(self.parameter, None) for _ in range(size)]

    def scaled(self, factor: str = "1") -> Any:
        """Return the law with its scale multiplied."""
        power = 2 if "Gaussian" in self.law.__name__ else 1
        return listed_or_clipped(self.law(Fraction(self.parameter) * Fraction(factor) ** power))


def discrete_gaussian(variance: str, size: int | None) -> Any:
    return noise.discrete_gaussian(size=size, variance=variance)


def rounded_gaussian(variance: str, size: int | None) -> Any:
    return noise.rounded_gaussian(size=size, variance=variance)


SIGMAS = ["1/3", "1", "100", str(512**2 - 1), str(512**2 + 1), "1e6", "1e12", str(2**80)]
SAMPLERS = [
    *(
        Sampler(noise.discrete_laplace, noise.DiscreteLaplaceLaw, s)
        for s in ("1/3", "1", "10", "129", "1e6", str(2**40))
    ),
    *(Sampler(noise.geometric, noise.GeometricLaw, s) for s in ("1/2", "5", "1000", str(2**50))),
    *(Sampler(noise.rounded_laplace, noise.RoundedLaplaceLaw, s) for s in ("1/3", "10", "1e6")),
    *(Sampler(discrete_gaussian, noise.DiscreteGaussianLaw, v) for v in SIGMAS),
    *(Sampler(rounded_gaussian, noise.RoundedGaussianLaw, v) for v in SIGMAS),
]


def each(some: list[Sampler]) -> Any:
    return pytest.mark.parametrize("sampler", some, ids=[f"{s.law.__name__} {s.parameter}" for s in some])


@each([s for s in SAMPLERS if s.law is not noise.DiscreteGaussianLaw or s.parameter not in ("262143", "1e6", "1e12")])
@pytest.mark.statistical
def test_arrays_follow_their_law(sampler: Sampler) -> None:
    sample = sampler.sample(SIZE)
    assert fits(sample, sampler.scaled())
    assert rejects(sample, sampler.scaled("1.3"))
    assert rejects(sample, sampler.scaled("0.7"))


@each([sampler for sampler in SAMPLERS if sampler.parameter in ("1/3", "10", "1000", "1e6", str(512**2 + 1))])
@pytest.mark.statistical
def test_single_draws_follow_their_law(sampler: Sampler) -> None:
    sample = sampler.singles(SINGLE)
    assert all(type(value) is int for value in sample)
    assert fits(sample, sampler.scaled())
    assert rejects(sample, sampler.scaled("1.3"))
    assert rejects(sample, sampler.scaled("0.7"))


@each(SAMPLERS)
@pytest.mark.statistical
@pytest.mark.soak
def test_four_million_draws_follow_their_law_and_none_of_a_scale_one_percent_larger(sampler: Sampler) -> None:
    sample = sampler.sample(LARGE)
    bins = Bins.of(sampler.scaled(), 10_000)  # So a thousand values are expected in a bin, and chi-square is right.
    counts = bins.counts(sample[:1_000_000])
    p = chisquare(counts, bins.chances / bins.chances.sum() * counts.sum()).pvalue
    print(f"{sampler.law.__name__} {sampler.parameter}: chi-square of {len(counts)} bins, p = {p:.4f}", file=sys.stderr)
    assert p > FAMILY_WISE / len(SAMPLERS)
    assert fits(sample, sampler.scaled())
    assert rejects(sample, sampler.scaled("1.01"))


@pytest.mark.statistical
@pytest.mark.parametrize("p", ["1/100", "1/3", "0.5", "0.97"])
def test_coins_follow_their_probability(p: str) -> None:
    chance = float(Fraction(p))
    for sample in (noise.bernoulli(p, 10 * SIZE), np.array([noise.bernoulli(p) for _ in range(SIZE // 4)])):
        assert fits(sample, [1 - chance, chance])
        assert rejects(sample, [1 - chance / 4, chance / 4])


@pytest.mark.statistical
@pytest.mark.parametrize("x", ["0.001", "1/3", "1", "5"])
def test_coins_of_an_exponent_follow_their_probability(x: str) -> None:
    chance = float(np.exp(-float(Fraction(x))))
    sample = noise.bernoulli_exp(x, SIZE)
    assert fits(sample, [1 - chance, chance])
    assert rejects(sample, [1 - chance / 2, chance / 2])


@pytest.mark.statistical
@pytest.mark.parametrize("limit", [2, 3, 7, 10, 1000])
def test_uniform_numbers_follow_the_uniform_law(limit: int) -> None:
    for sample in (noise.uniform(limit, SIZE), np.array([noise.uniform(limit) for _ in range(SIZE // 4)])):
        assert fits(sample, [1 / limit] * limit)
        assert rejects(
            sample, [2 / (limit + 1)] + [1 / (limit + 1)] * (limit - 1) if limit < 100 else [2 / limit] * (limit // 2)
        )


@pytest.mark.statistical
def test_orders_follow_the_uniform_law() -> None:
    ranks = {order: rank for rank, order in enumerate(permutations(range(4)))}
    drawn = [ranks[tuple(noise.permutation(4).tolist())] for _ in range(10_000)]
    assert fits(drawn, [1 / 24] * 24)
    wrong = Counter(swapped_anywhere(choices) for choices in product(range(4), repeat=4))
    assert rejects(drawn, [wrong[order] / 256 for order in ranks])


def swapped_anywhere(choices: tuple[int, ...]) -> tuple[int, ...]:
    """Shuffle as is often done by mistake: swap each place with any other."""
    order = list(range(len(choices)))
    for place, other in enumerate(choices):
        order[place], order[other] = order[other], order[place]
    return tuple(order)


@pytest.mark.statistical
def test_shapes_are_those_asked_for() -> None:
    for shape in ((3, 4), (2, 0), (), (1, 1, 5)):
        assert noise.discrete_laplace(2, shape).shape == shape
        assert noise.rounded_laplace(2, shape).shape == shape
        assert noise.uniform(2, shape).shape == shape
    assert not np.array_equal(noise.rounded_gaussian(50, (2, 50))[0], noise.rounded_gaussian(50, (2, 50))[1])
