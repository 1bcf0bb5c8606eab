"""Local and smooth sensitivity by definition: every data set over a few values, every step from one to the next."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

from discreet.balls import ball
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
VALUES = (0, 1, 3, 6, 8)  # The first and the last are the bounds.
LOW, HIGH = VALUES[0], VALUES[-1]
World = tuple[int, ...]
Statistic = Callable[[World], Fraction]


def order(m: int) -> Statistic:
    return lambda x: Fraction(x[m - 1])


def midpoint(x: World) -> Fraction:
    return Fraction(x[(len(x) - 1) // 2] + x[len(x) // 2], 2)


def trimmed(ends: int) -> Statistic:
    return lambda x: Fraction(sum(x[ends : len(x) - ends]), len(x) - 2 * ends)


def winsorised(ends: int) -> Statistic:
    def mean(x: World) -> Fraction:
        kept = x[ends : len(x) - ends]
        return Fraction(sum(kept) + ends * (kept[0] + kept[-1]), len(x))

    return mean


def quantile(q: Fraction) -> Statistic:
    """The rank max(1, ceil(q n)), by counting how many values are needed; of nothing, the lower bound."""

    def value(x: World) -> Fraction:
        return Fraction(next((v for i, v in enumerate(x, 1) if i >= q * len(x)), LOW))

    return value


def data_sets(size: int) -> list[World]:
    return list(combinations_with_replacement(VALUES, size))


@cache
def steps(x: World, relation: Relation) -> frozenset[World]:
    """Return all neighbours of a sorted data set, sorted."""
    less = {x[:i] + x[i + 1 :] for i in range(len(x))}
    if relation is REPLACE_ONE:
        return frozenset(tuple(sorted((*rest, v))) for rest in less for v in VALUES)
    return frozenset(less | {tuple(sorted((*x, v))) for v in VALUES})


def at_distances(statistic: Statistic, size: int, relation: Relation) -> dict[World, list[Fraction]]:
    """Return A_0, …, A_size for all data sets of a size; by then the local sensitivity is the whole range."""
    far = range(2 * size + 1) if relation is ADD_REMOVE else [size]
    rows = [row for length in far for row in data_sets(length)]
    now = {x: max((abs(statistic(x) - statistic(y)) for y in steps(x, relation)), default=Fraction(0)) for x in rows}
    found = {x: [now[x]] for x in data_sets(size)}
    for _ in range(size):
        now = {x: max(height, *(now.get(y, 0) for y in steps(x, relation))) for x, height in now.items()}
        for x, heights in found.items():
            heights.append(now[x])
    return found


def halved(heights: list[Fraction]) -> Fraction:
    """Return the smooth sensitivity where e^beta is 2, exactly."""
    return max(height / 2**k for k, height in enumerate(heights))


def enclosed(heights: list[Fraction], beta: Fraction):
    """Enclose the smooth sensitivity for any beta."""
    best = ball(0)
    for k, height in enumerate(heights):
        best = best.max(ball(height) * ball(-beta * k).exp())
    return best
