"""Reading a budget: epsilon, epsilon with delta, rho, or mu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.mechanisms.budget import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.column import Column
from discreet.mechanisms.release import Release
from discreet.privacy.relation import Relation

__all__ = ["noise_for", "public_rows", "quoted", "reader_of"]

T = TypeVar("T")


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


def public_rows(data: Any, relation: Relation) -> int | None:
    """Return the number of rows where it is public, and not even look where it is private."""
    if relation is Relation.ADD_REMOVE:
        return None
    if not hasattr(data, "__len__"):
        raise InvalidParameter("a column must have a length")
    return len(data)


def quoted(release: Release[T], noise: Noise) -> Release[T]:
    """Quote the cost at the delta that the noise was made for, if it was made for one."""
    return replace(release, delta=noise.delta) if isinstance(noise, GaussianNoise) else release


def reader_of(data: Any) -> Callable[[Any], Any]:
    """Return what reads this kind of data, or refuse; no value is looked at."""
    kind = type(data)
    # Those of Arrow fail for some values and not for others, which would tell that there are such.
    if hasattr(data, "to_numpy") and not kind.__module__.startswith("pyarrow"):
        return lambda table: table.to_numpy()
    if isinstance(data, (np.ndarray, Column)) or (isinstance(data, Sequence) and not isinstance(data, (str, bytes))):
        return lambda rows: rows
    raise InvalidParameter(
        f"data must be an array, a list, or a column or table of pandas or polars, not {kind.__name__}"
    )
