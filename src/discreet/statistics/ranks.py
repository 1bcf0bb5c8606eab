"""Quantiles of a bounded column."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.exact import Number, exact, probability
from discreet.mechanisms.fields import small_delta
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.answering import answer_by
from discreet.statistics.choosing import AUTO, rank_methods
from discreet.statistics.expected import Expected
from discreet.statistics.facts import ChooserInputs
from discreet.statistics.paid import SHARE
from discreet.statistics.paying import Bounds, grid_from, public_size

__all__ = ["median", "quantile"]


def quantile(
    column: Any,
    q: Number,
    *,
    relation: Relation,
    epsilon: Number,
    delta: Number | None = None,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    method: str = AUTO,
    expected: Expected | None = None,
    expected_size: int | None = None,
    choice_share: Number = SHARE,
    session: Payer | None = None,
) -> Release[Any]:
    """Release a value below which about the share `q` of a column lies.

    It is a multiple of `step` near to `bounds`. `method` is one of

    - "exponential": a point within the bounds, chosen by its rank;
    - "candidates": the same among fewer points, most of them where values are expected;
    - "smooth": the exact quantile with noise that follows its smooth sensitivity;
    - "propose-test-release": the exact quantile with little noise, or no answer (needs a delta);
    - "auto": the one that is predicted to be most accurate if the data are as `expected`; without that the first;
    - "paid": chosen by a private look at the data, which costs the part `choice_share` of epsilon.

    The choice never depends on the data, but for "paid", which charges for it. `dp.compare` shows the predictions.
    """
    size = public_size(column, relation)
    people = size or None if population is None else population
    if delta is not None:
        small_delta(delta, population=people, allow_large_delta=allow_large_delta)
    facts = ChooserInputs(
        grid=grid_from(bounds, step=step, missing=missing),
        relation=relation,
        epsilon=exact(epsilon, name="epsilon"),
        delta=None if delta is None else exact(delta, name="delta"),
        size=size,
        expected_size=expected_size,
        expected=expected,
    )
    methods = rank_methods(probability(q, name="q"))
    return answer_by(method, methods, facts, column, session=session, purpose="quantile", choice_share=choice_share)


def median(
    column: Any,
    *,
    relation: Relation,
    epsilon: Number,
    delta: Number | None = None,
    bounds: Bounds | None = None,
    step: Number | None = None,
    missing: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    method: str = AUTO,
    expected: Expected | None = None,
    expected_size: int | None = None,
    choice_share: Number = SHARE,
    session: Payer | None = None,
) -> Release[Any]:
    """Release a value that about half of a column lies below; see `quantile` for the methods."""
    return quantile(
        column,
        Fraction(1, 2),
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        bounds=bounds,
        step=step,
        missing=missing,
        population=population,
        allow_large_delta=allow_large_delta,
        method=method,
        expected=expected,
        expected_size=expected_size,
        choice_share=choice_share,
        session=session,
    )
