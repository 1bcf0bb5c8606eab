"""Small worlds for private regressions: all neighbours, and how far apart their moments are in units of the noise."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.lab.verify import sensitivity, worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.privacy.relation import Relation
from discreet.robust.noisy_moments import Moments, exact_moments

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = (ADD_REMOVE, REPLACE_ONE)

Rows = Callable[[Any], tuple[Any, Any]]  # from records to bounded rows and responses


def small(values: Any, relation: Relation, size: int) -> Worlds:
    """List the data sets of up to this size, or of this size where it is public; one record is the smallest."""
    return worlds(tuple(values), range(1, size + 1) if relation is ADD_REMOVE else [size])


def plain(data: Any) -> tuple[Any, Any]:
    """Take (x_1, …, x_d, y) as they are."""
    table = np.array(data, dtype=np.int64)
    return table[:, :-1], table[:, -1]


def listed(moments: Moments, rows: Any, responses: Any) -> tuple[int, ...]:
    """List X'X on and above the diagonal, then X'y."""
    gram, cross = exact_moments(rows, responses)
    return tuple(gram[np.triu_indices(moments.dimension)].tolist()) + tuple(cross.tolist())


def variances(moments: Moments) -> list[Fraction]:
    """Return the variance of the noise on each of these, told independently of how it is drawn."""
    i, j = np.triu_indices(moments.dimension)
    gram = [moments.gram_variance / (1 if a == b else 2) for a, b in zip(i, j, strict=True)]
    return gram + [moments.cross_variance] * moments.dimension


def largest_mu_squared(moments: Moments, world: Worlds, relation: Relation, rows: Rows = plain) -> Fraction:
    """Return the largest squared distance of neighbours, in units of the noise: the mu^2 of the worst pair."""
    noise = variances(moments)

    def distance(one: Any, other: Any) -> Fraction:
        parts = zip(one, other, noise, strict=True)
        return sum((Fraction((a - b) ** 2) / variance for a, b, variance in parts), Fraction(0))

    return sensitivity(lambda data: listed(moments, *rows(data)), world, relation=relation, distance=distance).value
