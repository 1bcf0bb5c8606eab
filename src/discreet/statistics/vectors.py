"""Averages of bounded vectors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.mechanisms.release import Release
from discreet.mechanisms.vector_mean import VectorMean
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.paying import noise_from, pay, public_size, quoted

__all__ = ["vector_mean"]

_STEPS = 1 << 20  # To the bound, unless the caller says otherwise.


def vector_mean(
    rows: Any,
    *,
    relation: Relation,
    bound: Number,
    dimension: int,
    step: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    count_share: Number = Fraction(1, 2),
    session: Payer | None = None,
) -> Release[tuple[Fraction, ...]]:
    """Average rows of `dimension` numbers, each clipped to Euclidean length `bound`.

    `rows` is a two-dimensional array, something with `to_numpy` (a table of pandas or polars), or a list of rows.
    """
    radius = positive(bound, name="bound")
    size = public_size(rows, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        population=size if population is None else population,
        allow_large_delta=allow_large_delta,
    )
    mechanism = VectorMean(
        bound=radius,
        step=radius / _STEPS if step is None else exact(step, name="step"),
        dimension=dimension,
        relation=relation,
        noise=noise,
        size=size,
        count_share=exact(count_share, name="count_share"),
    )
    if not isinstance(rows, (np.ndarray, list, tuple)) and not hasattr(rows, "to_numpy"):
        raise InvalidParameter("rows must be a two-dimensional array, a table, or a list of rows")
    pay(mechanism.event, relation=relation, session=session, purpose="vector mean")
    release = mechanism.release(rows.to_numpy() if hasattr(rows, "to_numpy") else rows)
    return quoted(release, noise)
