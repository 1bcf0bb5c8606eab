"""Every sampler, one draw and many, over scales of all sizes."""

from __future__ import annotations

from collections.abc import Iterator

import discreet as dp

from .flow import Flow

__all__ = ["flows"]

_SCALES = ("1/100", "1/3", "1", "2.5", "40", "1000", "123456789", "1e15", "1e30")
_CHANCES = ("0", "1", "1/2", "1/3", "1e-9", "0.999", "355/1130")


def flows() -> Iterator[Flow]:
    """Every sampler."""
    for scale in _SCALES:
        for name in ("discrete_laplace", "rounded_laplace", "geometric", "discrete_gaussian", "rounded_gaussian"):
            yield _drawn(name, scale)
        yield _law(scale)
    for chance in _CHANCES:
        yield _drawn("bernoulli", chance)
        yield _drawn("bernoulli_exp", chance)
    for limit in (1, 2, 3, 10, 1000, 2**31 - 1, 2**63, 10**40):
        yield Flow(f"uniform {limit}", lambda limit=limit: [dp.noise.uniform(limit) for _ in range(8)])
        if limit <= 2**63:
            yield Flow(f"uniform many {limit}", lambda limit=limit: dp.noise.uniform(limit, (3, 50)))
    yield from _choices()


def _drawn(name: str, scale: str) -> Flow:
    def make() -> list[object]:
        sampler = getattr(dp.noise, name)
        some = [sampler(scale) for _ in range(5)]
        return [some, _many(sampler, scale)]

    return Flow(f"{name} {scale}", make)


def _many(sampler, scale: str) -> object:  # type: ignore[no-untyped-def]
    try:
        return sampler(scale, (2, 60))
    except dp.DiscreetError as error:
        return type(error).__name__


def _law(scale: str) -> Flow:
    def make() -> list[object]:
        noise = dp.noise
        laws = (noise.DiscreteLaplaceLaw, noise.RoundedLaplaceLaw, noise.DiscreteGaussianLaw, noise.RoundedGaussianLaw)
        return [law(scale) for law in laws]

    return Flow(f"laws {scale}", make)


def _choices() -> Iterator[Flow]:
    scores = [(17 * place) % 23 for place in range(30)]
    for factor in ("1/100", "1/3", "1", "20"):
        yield Flow(f"categorical {factor}", lambda f=factor: [dp.noise.categorical(scores, factor=f) for _ in range(9)])
        yield Flow(
            f"categorical with multiplicities {factor}",
            lambda f=factor: [
                dp.noise.categorical(scores, factor=f, multiplicities=list(range(1, 31))) for _ in range(9)
            ],
        )
        yield Flow(
            f"permute_and_flip {factor}",
            lambda f=factor: [dp.noise.permute_and_flip(scores, factor=f) for _ in range(9)],
        )
    for count in (0, 1, 2, 10, 500):
        yield Flow(f"permutation {count}", lambda count=count: dp.noise.permutation(count))
