"""Made-up people for the attacks that need them made to measure."""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import noise
from discreet.lab.attacks.marginal_reconstruction import Marginals, PeopleBlock

__all__ = ["ILLNESSES", "KNOWN", "block", "films", "planets", "town"]

KNOWN = tuple(f"a{i}" for i in range(5))
ILLNESSES = np.array([f"illness {i:02}" for i in range(16)])
_CROWD = 24
_SEED = 6  # Of data only: attacks and releases draw from the secure source.


@cache
def films(people: int, each: int = 20, there_are: int = 2000) -> pa.Table:
    """Let everybody rate a few of many films, popular ones more often, over two years."""
    generator = np.random.default_rng(_SEED)
    popular = 1 / np.arange(1, there_are + 1)
    rated = [generator.choice(there_are, each, replace=False, p=popular / popular.sum()) for _ in range(people)]
    days = [date(2024, 1, 1) + timedelta(int(day)) for day in generator.integers(0, 730, people * each)]
    columns = {"user_id": np.repeat(np.arange(people), each), "imdb_id": np.concatenate(rated), "timestamp": days}
    return pa.table(columns | {"rating": generator.integers(1, 11, people * each)})


@cache
def planets(count: int) -> pa.Table:
    """Make the best case for noise exploitation: unique people, with crowds who share all but one attribute."""
    people = []
    for planet in range(count):
        people.append([planet] * 5 + ["no"])
        for column in range(5):
            for number in range(_CROWD):
                other = [planet] * 5 + ["yes" if number % 2 else "no"]
                other[column] = 10_000 + column
                people.append(other)
    return pa.table(dict(zip([*KNOWN, "ill"], zip(*people, strict=True), strict=True)))


def town(people: int) -> dict[str, Any]:
    """Put everybody alone into a street, with an illness that nothing tells."""
    return {"street": np.array([f"s{i}" for i in range(people)]), "ill": ILLNESSES[noise.uniform(16, people)]}


def block(shape: tuple[int, ...], people: int, ways: int) -> PeopleBlock:
    """Make up a block of people, all kinds alike, of whom all tables of so many columns are published."""
    names = ("sex", "age", "race", "owner")[: len(shape)]
    values = tuple(tuple(map(str, range(size))) for size in shape)
    codes = [noise.uniform(size, people) for size in shape]
    plan = Marginals(columns=names, values=values, ways=ways)
    return PeopleBlock(plan, np.ravel_multi_index(codes, shape).astype(np.int64))
