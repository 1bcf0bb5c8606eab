"""Exact samplers of discrete noise, from a cryptographic source."""

from discreet.noise.laws import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    Law,
    RoundedGaussianLaw,
    RoundedLaplaceLaw,
)
from discreet.noise.samplers import (
    bernoulli,
    bernoulli_exp,
    categorical,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    permutation,
    permute_and_flip,
    rounded_gaussian,
    rounded_laplace,
    uniform,
)

__all__ = [
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "GeometricLaw",
    "Law",
    "RoundedGaussianLaw",
    "RoundedLaplaceLaw",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "permutation",
    "permute_and_flip",
    "rounded_gaussian",
    "rounded_laplace",
    "uniform",
]
