"""The fast samplers give what slow ones give that compute in whole numbers only and read the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference
import reference_laws
from recorded import Recorded, replayed

from discreet import noise
from discreet.noise import samplers
from discreet.noise.block_sampling import BlockSampler

Exponents = Callable[[Fraction, int], Any]
_twins: dict[str, Any] = {}


@dataclass(frozen=True)
class Case:
    """A fast sampler, as the public calls it, and its slow twin."""

    name: str
    fast: Callable[[int | None], Any]
    make: Callable[[], Any]

    def slow(self) -> Any:
        """Return the slow twin, made once: its lists take a second."""
        if self.name not in _twins:
            _twins[self.name] = self.make()
        return _twins[self.name]


def in_blocks(sampler: Any, steps: Any, exponents: Exponents, parameter: Fraction, *, half: bool = False) -> Any:
    """Build the slow twin of a sampler that draws blocks; how these are laid out is read from it."""
    inversion = reference.Inversion(steps(parameter, sampler._shift), sampler._inversion.unsure)
    return reference.Blocks(
        inversion,
        sampler._shift,
        sampler._check,
        sampler._sure,
        lambda block: int(sampler._sure_of[block & 0xFFFF]),
        half,
        exponents(parameter, sampler._shift),
    )


def laplace(text: str) -> Case:
    scale = Fraction(text)

    def slow() -> Any:
        sampler = samplers.laplace_sampler(scale)
        if not hasattr(sampler, "_shift"):
            return reference.Inversion(reference_laws.laplace(scale))
        return in_blocks(sampler, reference_laws.laplace, reference_laws.exponential_exponents, scale)

    return Case(f"laplace {text}", lambda size: noise.discrete_laplace(text, size), slow)


def geometric(text: str) -> Case:
    scale = Fraction(text)

    def slow() -> Any:
        sampler = samplers.geometric_sampler(scale)
        if not hasattr(sampler, "_shift"):
            return reference.Inversion(reference_laws.geometric(scale))
        return in_blocks(sampler, reference_laws.geometric, reference_laws.exponential_exponents, scale)

    return Case(f"geometric {text}", lambda size: noise.geometric(text, size), slow)


def discrete_gaussian(text: str) -> Case:
    variance = Fraction(text)

    def slow() -> Any:
        sampler = samplers.discrete_gaussian_sampler(variance)
        if not hasattr(sampler, "_shift"):
            return reference.Inversion(reference_laws.discrete_gaussian(variance))
        return in_blocks(sampler, reference_laws.discrete_gaussian, reference_laws.gaussian_exponents, variance)

    return Case(f"discrete Gaussian {text}", lambda size: noise.discrete_gaussian(size=size, variance=text), slow)


def rounded_gaussian(text: str) -> Case:
    variance = Fraction(text)

    def slow() -> Any:
        sampler = samplers.rounded_gaussian_sampler(variance)
        if not hasattr(sampler, "_shift"):
            return reference.Inversion(reference_laws.rounded_gaussian(variance))
        steps, exponents = reference_laws.rounded_gaussian_blocks, reference_laws.rounded_exponents
        return in_blocks(sampler, steps, exponents, variance, half=True)

    return Case(f"rounded Gaussian {text}", lambda size: noise.rounded_gaussian(size=size, variance=text), slow)


def bernoulli(text: str) -> Case:
    return Case(
        f"bernoulli {text}",
        lambda size: noise.bernoulli(text, size),
        lambda: reference.rational_coin(Fraction(text)),
    )


def bernoulli_exp(text: str) -> Case:
    return Case(
        f"bernoulli_exp {text}",
        lambda size: noise.bernoulli_exp(text, size),
        lambda: reference.exponential_coin(Fraction(text)),
    )


class Uniform:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def one(self, read: reference.Read) -> int:
        return reference.integer_below(read, self.limit)

    def array(self, read: reference.Read, count: int) -> list[int]:
        return reference.integers_below(read, self.limit, count)


class RoundedLaplace:
    """Zero by a coin, otherwise a geometric size above zero and a fair sign."""

    def __init__(self, scale: Fraction) -> None:
        self._coin = reference.exponential_coin(1 / (2 * scale))
        self._size = geometric(str(scale)).slow()
        self._sign = reference.rational_coin(Fraction(1, 2))

    def one(self, read: reference.Read) -> int:
        away, size, sign = (part.one(read) for part in (self._coin, self._size, self._sign))
        return away * (1 + size) * (-1) ** sign

    def array(self, read: reference.Read, count: int) -> list[int]:
        drawn = [part.array(read, count) for part in (self._coin, self._size, self._sign)]
        return [away * (1 + size) * (-1) ** sign for away, size, sign in zip(*drawn, strict=True)]


def uniform(limit: int) -> Case:
    return Case(f"uniform {limit}", lambda size: noise.uniform(limit, size), lambda: Uniform(limit))


def rounded_laplace(text: str) -> Case:
    return Case(
        f"rounded Laplace {text}",
        lambda size: noise.rounded_laplace(text, size),
        lambda: RoundedLaplace(Fraction(text)),
    )


CASES = [
    *(laplace(scale) for scale in ("1/3", "1", "21/2", "1000", "1000000/3", str(2**50))),
    *(geometric(scale) for scale in ("1/100", "5", "129", str(2**40))),
    *(discrete_gaussian(variance) for variance in ("1/3", "100/7", "262145", "1e12", str(2**80))),
    *(rounded_gaussian(variance) for variance in ("1/50", "25/3", "300000", "1e12", "1e14", "1e15", str(2**80))),
    *(rounded_laplace(scale) for scale in ("1/3", "1000")),
    *(bernoulli(p) for p in ("0", "1e-9", "1/2", "1/3", "999/1000", "1")),
    *(bernoulli_exp(x) for x in ("0", "1e-9", "1/3", "12", "1e15")),
    *(uniform(limit) for limit in (1, 2, 3, 1000, 2**62 + 1, 2**63)),
]
named = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def compare(case: Case, *, single: int, together: tuple[int, ...]) -> int:
    """Compare single draws and arrays, and that exactly the same bytes were read; return how many draws."""
    slow, recording = case.slow(), Recorded(case.name)
    with replayed(case.name) as bytes_read:
        for _ in range(single):
            assert case.fast(None) == slow.one(recording.read)
            assert bytes_read.used == recording.used
        for count in together:
            drawn = case.fast(count)
            assert drawn.dtype == np.int64
            assert drawn.tolist() == slow.array(recording.read, count)
            assert bytes_read.used == recording.used
    return single + sum(together)


@named
def test_draws_are_those_of_the_reference(case: Case) -> None:
    assert compare(case, single=400, together=(0, 1, reference.FEW - 1, reference.FEW)) > 0


@named
@pytest.mark.slow
def test_draws_are_those_of_the_reference_a_hundred_thousand_times(case: Case) -> None:
    assert (
        compare(case, single=20_000, together=(reference.FEW - 1, reference.FEW, reference.CHUNK + 14_000)) >= 100_000
    )


MANY = 10 * reference.FEW
SHORT = ["300000", "1e12", "1e14", "1e15", str(2**80)]


@pytest.mark.parametrize("text", SHORT)
def test_short_numbers_are_those_of_the_reference(text: str) -> None:
    case = rounded_gaussian(text)
    with replayed(case.name) as bytes_read:
        drawn = samplers.long_rounded_gaussian(Fraction(text), MANY)
    recording = Recorded(case.name)
    assert drawn.dtype == (np.int64 if text == str(2**80) else np.int32)
    assert drawn.tolist() == case.slow().array(recording.read, MANY)
    assert bytes_read.used == recording.used


@pytest.mark.parametrize("text", ["300000", "1e14"])
def test_a_block_whose_bound_is_too_high_is_found_out(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in a thousand places that are taken though their weight would refuse some of them."""
    right = BlockSampler._sure_of.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        BlockSampler, "_sure_of", property(lambda sampler: right(sampler) + (1 << sampler._check) // 1000)
    )
    case = rounded_gaussian(text)
    with pytest.raises(AssertionError, match="accepted too soon"):
        case.make().array(Recorded(case.name).read, MANY)
