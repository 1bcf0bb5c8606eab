"""Reading a budget: epsilon, epsilon with delta, rho, or mu."""

from __future__ import annotations

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.mechanisms.budget import GaussianNoise, LaplaceNoise, Noise

__all__ = ["noise_for"]


def noise_for(
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    mu: Number | None,
    population: int | None = None,
    allow_large_delta: bool = False,
) -> Noise:
    """Choose the noise by what the caller wants to spend."""
    named = [name for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None]
    if len(named) != 1 or (delta is not None and epsilon is None):
        raise InvalidParameter(
            "say what to spend: epsilon=… (Laplace noise), epsilon=… and delta=…, rho=… or mu=… (Gaussian noise)"
        )
    if rho is not None:
        return GaussianNoise.for_rho(rho)
    if mu is not None:
        return GaussianNoise(squared_multiplier=1 / positive(mu, name="mu") ** 2)
    assert epsilon is not None
    if delta is None:
        return LaplaceNoise(epsilon=positive(epsilon, name="epsilon"))
    return GaussianNoise.for_epsilon(epsilon, delta, population=population, allow_large_delta=allow_large_delta)
