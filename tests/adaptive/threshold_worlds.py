"""What the tests of thresholds share: small worlds, distances between data sets by definition, and a purse."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from discreet.balls import precision
from discreet.errors import BudgetExceeded, DiscreetError
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms import Grid
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = (ADD_REMOVE, REPLACE_ONE)
LETTERS = tuple("abcde")
NUMBERS = tuple(range(5))
GRID = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(0))
Data = tuple[Any, ...]
NONSENSE = (float("nan"), float("inf"), -1, 0, "x", None, True, [])


def small(values: Sequence[Hashable], relation: Relation, most: int) -> Worlds:
    """All data sets up to a size, or of that size where it is public."""
    return worlds(values, range(most + 1) if relation is ADD_REMOVE else [most])


def multisets(values: Sequence[Hashable], sizes: Sequence[int]) -> list[Data]:
    return [row for size in sizes for row in combinations_with_replacement(values, size)]


def distances_to(found: Sequence[Data], targets: Sequence[Data], relation: Relation) -> list[int]:
    """The least number of steps from each data set to one of the others, by definition.

    Multisets differ by what one has more of and what the other has; one replacement makes up for both.
    """
    values = sorted({value for data in (*found, *targets) for value in data})
    here, there = (np.array([[data.count(v) for v in values] for data in rows]) for rows in (found, targets))
    apart = [int(np.abs(there - row).sum(axis=1).min()) for row in here]
    return apart if relation is ADD_REMOVE else [steps // 2 for steps in apart]


def neighbours_of(data: Data, values: Sequence[Any], relation: Relation) -> list[Data]:
    """Every data set that is one step away."""
    less = [data[:i] + data[i + 1 :] for i in range(len(data))]
    if relation is ADD_REMOVE:
        return [*less, *((*data, value) for value in values)]
    return [(*rest, value) for rest in less for value in values]


def local_sensitivity(query: Callable[[Data], Any], data: Data, values: Sequence[Any], relation: Relation) -> Any:
    """The largest change that one step makes, by definition."""
    here = query(data)
    return max(abs(query(other) - here) for other in neighbours_of(data, values, relation))


def enclosed(mechanism: Any, method: str, *arguments: Any) -> tuple[float, float]:
    """The float ends of a ball that a method returns."""
    with precision(128):
        found = getattr(mechanism, method)(*arguments)
        return float(found.lower()), float(found.upper())


class Purse:
    """A payer that notes what it is charged, until it has no more."""

    def __init__(self, charges: int = 1) -> None:
        self.left = charges
        self.paid: list[tuple[Event, Relation]] = []

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        assert purpose
        if self.left == 0:
            raise BudgetExceeded(asked=event, left="nothing")
        self.left -= 1
        self.paid.append((event, relation))


class Unreadable(Sequence[Any]):
    """Data that must not be looked at."""

    def __len__(self) -> int:
        raise AssertionError("read before it was paid for")

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("read before it was paid for")


def assert_pays_first(mechanism: Any, data: Any) -> None:
    """Check that a release is charged for its event before it reads, and that a refused charge reads nothing."""
    purse = Purse()
    release = mechanism.release(data, session=purse)
    assert purse.paid == [(mechanism.event, mechanism.relation)]
    assert release.event == mechanism.event
    assert release.relation is mechanism.relation
    assert "=" in release.cost
    with pytest.raises(BudgetExceeded):
        mechanism.release(Unreadable(), session=purse)


def assert_refuses(make: Callable[..., Any], good: dict[str, Any], *, numbers: Sequence[str]) -> None:
    """Check that nonsense in any of some numbers, and what is no relation, is refused."""
    make(**good)
    for name in numbers:
        for value in NONSENSE:
            with pytest.raises(DiscreetError):
                make(**good | {name: value})
    if "relation" in good:
        for value in ("neighbours", None, 1):
            with pytest.raises(DiscreetError):
                make(**good | {"relation": value})
