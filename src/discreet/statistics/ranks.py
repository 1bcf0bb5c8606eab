"""Quantiles of a bounded column."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.exact import Number, exact
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.paying import Bounds, answer, grid_from

__all__ = ["median", "quantile"]


def quantile(
    column: Any,
    q: Number,
    *,
    relation: Relation,
    epsilon: Number,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    session: Payer | None = None,
) -> Release[Fraction]:
    """Release a value below which about the share `q` of a column lies.

    It is chosen among the multiples of `step` within `bounds`. A coarser step makes the choice easier: the rank error
    grows with the logarithm of the number of points.
    """
    mechanism = Quantile(
        quantile=exact(q, name="q"),
        epsilon=exact(epsilon, name="epsilon"),
        grid=grid_from(bounds, step=step, missing=missing),
        relation=relation,
    )
    return answer(mechanism, column, session=session, purpose="quantile")


def median(
    column: Any,
    *,
    relation: Relation,
    epsilon: Number,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    session: Payer | None = None,
) -> Release[Fraction]:
    """Release a value that about half of a column lies below."""
    return quantile(
        column,
        Fraction(1, 2),
        relation=relation,
        epsilon=epsilon,
        bounds=bounds,
        step=step,
        missing=missing,
        session=session,
    )
