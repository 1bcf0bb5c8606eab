"""How many, and what share."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.exact import Number, exact
from discreet.mechanisms.count import Count
from discreet.mechanisms.proportion import Proportion
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.paying import answer, noise_from, public_size

__all__ = ["count", "proportion"]


def count(
    column: Any,
    *,
    relation: Relation,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    session: Payer | None = None,
) -> Release[int]:
    """Count the entries of a column that are neither missing nor False.

    So `count(ages)` counts rows and `count(ages > 65)` counts people over 65.
    """
    noise = noise_from(
        epsilon=epsilon, delta=delta, rho=rho, population=population, allow_large_delta=allow_large_delta
    )
    return answer(Count(relation=relation, noise=noise), column, session=session, purpose="count", noise=noise)


def proportion(
    column: Any,
    *,
    relation: Relation,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    count_share: Number = Fraction(1, 2),
    session: Payer | None = None,
) -> Release[Fraction]:
    """Release the share of rows that are true: True, or a number other than zero.

    Under add-remove the part `count_share` of the budget pays for the number of rows, which is private there.
    """
    size = public_size(column, relation)
    noise = noise_from(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        population=size if population is None else population,
        allow_large_delta=allow_large_delta,
    )
    mechanism = Proportion(
        relation=relation, noise=noise, size=size, count_share=exact(count_share, name="count_share")
    )
    return answer(mechanism, column, session=session, purpose="proportion", noise=noise)
