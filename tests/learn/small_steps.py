"""One step of private training, small enough that the law of what it releases can be listed exactly.

Rows are clipped, put into random order, summed in blocks of a coarse float type, rounded to a coarse grid, and get
rounded Gaussian noise: every error that float32 and a fine grid make is there, thousands of times larger. `wrong`
breaks the step in one way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np

from discreet.learn.training.training_plan import sensitivity_up
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import Event, Gaussian, PoissonSampled, Relation, outcomes
from discreet.privacy.outcomes import Outcomes

Row = tuple[float, ...]
_UNIT = Fraction(1, 2**11)  # of rounding in float16


def arrangements(rows: tuple[Row, ...]) -> Iterator[tuple[Row, ...]]:
    """List the different orders of a multiset; a uniform order takes each with the same probability."""
    if not rows:
        yield ()
    for first in dict.fromkeys(rows):
        place = rows.index(first)
        for rest in arrangements(rows[:place] + rows[place + 1 :]):
            yield (first, *rest)


@dataclass(frozen=True, kw_only=True)
class SmallStep:
    """A step on `coordinates` numbers, with blocks of `block` slots."""

    rate: Fraction = Fraction(1)
    clip: Fraction = Fraction(1)
    block: int = 2
    grid: Fraction = Fraction(1, 4)
    multiplier: Fraction = Fraction(1)
    coordinates: int = 1
    count_variance: Fraction | None = None  # Also release how many norms are below the clip minus how many are above.
    wrong: str = ""

    relation = Relation.ADD_REMOVE
    symmetric = True

    @property
    def slack(self) -> Fraction:
        """Four errors of a block: k rows of norm `clip` added up, each at most gamma_k of it."""
        gamma = self.block * _UNIT / (1 - self.block * _UNIT)
        return 4 * self.block * gamma

    @property
    def sensitivity(self) -> Fraction:
        """In grid steps."""
        return sensitivity_up(self.clip, self.slack, self.grid, self.coordinates) / self.grid

    @property
    def event(self) -> Event:
        return PoissonSampled(Gaussian(self.multiplier), self.rate)

    @property
    def variance(self) -> Fraction:
        left = 1 / self.multiplier**2
        if self.count_variance is not None and self.wrong != "count is free":
            left -= 1 / self.count_variance
        return self.sensitivity**2 / left / {"half noise": 4, "noise / B": 9}.get(self.wrong, 1)

    def clipped(self, row: Row) -> Any:
        """Shrink a row to the clip, rounded so that the norm does not exceed it; what is not finite becomes zero."""
        values = np.array(row, np.float32)
        norm = float(np.linalg.norm(values))
        if self.wrong == "no clip":
            return values.astype(np.float16)
        if not np.isfinite(norm):
            return np.zeros_like(values, np.float16)
        factor = min(1.0, float(self.clip) / norm) if norm else 1.0
        return np.trunc(values * factor * 1024).astype(np.float32).astype(np.float16) / np.float16(1024)

    def centre(self, order: tuple[Row, ...]) -> tuple[Any, ...]:
        """The sum before noise, in grid steps: blocks in float16, one after the other, each rounded."""
        clipped = {row: self.clipped(row) for row in set(order)}
        rows = [clipped[row] for row in order]
        total = np.zeros(self.coordinates)
        for start in range(0, len(rows), self.block):
            block = np.zeros(self.coordinates, np.float16)
            for row in rows[start : start + self.block]:
                block = (block + row).astype(np.float16)
            exact = block.astype(float) * float(1 / self.grid)  # A power of two.
            total += exact if self.wrong == "no grid" else np.rint(exact)
        return tuple(int(value) if value == int(value) else Fraction(value) for value in total)

    def count(self, sample: tuple[Row, ...]) -> int:
        small = [np.linalg.norm(row) <= self.clip for row in sample]
        return 2 * sum(map(int, small)) - len(small)

    def samples(self, data: tuple[Row, ...]) -> list[tuple[Fraction, tuple[Row, ...]]]:
        """List the samples with their probabilities."""
        if self.wrong == "fixed size":
            size = min(1, len(data))
            return [(Fraction(1, comb(len(data), size)), chosen) for chosen in combinations(data, size)]
        chances = [self.rate**size * (1 - self.rate) ** (len(data) - size) for size in range(len(data) + 1)]
        sizes = [size for size, chance in enumerate(chances) if chance]
        return [(chances[size], chosen) for size in sizes for chosen in combinations(data, size)]

    def orders(self, sample: tuple[Row, ...]) -> list[tuple[Row, ...]]:
        return [sample] if self.wrong == "no order" else list(arrangements(sample))

    def distribution(self, data: tuple[Row, ...]) -> Outcomes:
        parts: Counter[tuple[Any, int, int]] = Counter()
        for chance, sample in self.samples(data):
            orders = self.orders(sample)
            for order in orders:
                parts[self.centre(order), self.count(sample), len(sample)] += chance / len(orders)
        return outcomes.mixture((weight, self._noisy(*part)) for part, weight in parts.items())

    def _noisy(self, centre: tuple[Any, ...], count: int, size: int) -> Outcomes:
        if self.wrong == "empty is skipped" and size == 0:
            return outcomes.point("nothing")
        laws = [_shifted(self.variance, value) for value in centre]
        if self.count_variance is not None:
            laws.append(_shifted(self.count_variance, count))
        noisy = outcomes.product(*laws)
        if self.wrong == "actual divisor":
            return outcomes.map(noisy, lambda values: tuple(Fraction(value, max(size, 1)) for value in values))
        return noisy


@lru_cache(None)
def _noise(variance: Fraction) -> RoundedGaussianLaw:
    return RoundedGaussianLaw(variance)


def _shifted(variance: Fraction, centre: Any) -> Outcomes:
    """Noise around a centre that need not be whole: then the noise is whole all the same, and the sum tells."""
    around = outcomes.from_law(_noise(variance))
    return outcomes.map(around, lambda k: k + centre)


@dataclass(frozen=True, kw_only=True)
class SmallPeopleStep:
    """The same step where a record is a person, a tuple of rows: the mean of at most `most` of them, chosen afresh."""

    step: SmallStep
    most: int = 2
    wrong: str = ""

    relation = Relation.ADD_REMOVE
    symmetric = True

    @property
    def event(self) -> Event:
        return self.step.event

    def records(self, person: tuple[Row, ...]) -> list[tuple[Row, ...]]:
        """List what a person may contribute to a step, each with the same probability."""
        choices = list(combinations(person, min(self.most, len(person))))
        if self.wrong == "clips rows":
            return choices
        return [(tuple(float(np.mean(column)) for column in zip(*rows, strict=True)),) for rows in choices]

    def distribution(self, data: tuple[tuple[Row, ...], ...]) -> Outcomes:
        parts: Counter[Any] = Counter()
        for chance, sample in self.step.samples(self._people(data)):
            for chosen in product(*map(self.records, sample)):
                rows = tuple(row for record in chosen for row in record)
                orders = list(arrangements(rows))
                for order in orders:
                    weight = chance / prod(len(self.records(person)) for person in sample) / len(orders)
                    parts[self.step.centre(order)] += weight
        noisy = replace(self.step, wrong="half noise") if self.wrong == "noise for a row" else self.step
        return outcomes.mixture((weight, noisy._noisy(centre, 0, 1)) for centre, weight in parts.items())

    def _people(self, data: tuple[tuple[Row, ...], ...]) -> tuple[tuple[Row, ...], ...]:
        if self.wrong == "samples rows":
            return tuple((row,) for person in data for row in person)
        if self.wrong == "two groups":
            halves = ((person[::2], person[1::2]) for person in data)
            return tuple(half for pair in halves for half in pair if half)
        return data
