"""Discreet: how often intervals for a population hold its mean, and how wide they are beside an oracle's.

A sample of a law on the grid is drawn as the number of rows at each of its values, so that a million rows cost no more
than a hundred. The noisy numbers are those of the mechanism; that an interval holds the mean is asked of the set of
possible means, of which it is the hull. The oracle knows the standard deviation, the number of rows and the law of the
noise on the sum, which has all of epsilon.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from benchmarks.datasets import SEED
from benchmarks.interval_columns import COLUMNS
from benchmarks.peers.protocol import emit, is_quick
from discreet.mechanisms.additive_noise import LaplaceNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.measurement import Measurement
from discreet.mechanisms.proportion import HALVES
from discreet.mechanisms.sum import centred_reach, centred_values
from discreet.mechanisms.variance import fold_of
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.statistics.population_intervals import SampledDifference, SampledMean
from discreet.statistics.population_means import PopulationMean

SIZES = (50, 500, 5_000, 50_000, 10**6)
RUNS = 2_000
CONFIDENCE = Fraction(95, 100)
WIDTHS = 40  # Intervals of a cell whose width is taken.
ORACLE = 40_000
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GridLaw:
    """A law on a grid: values about its centre, in centred steps, and their chances."""

    name: str
    real: bool
    grid: Grid
    values: Ints
    chances: Floats
    binary: bool = False

    @property
    def mean(self) -> float:
        """In steps, about the centre."""
        return float(self.values @ self.chances)

    @property
    def deviation(self) -> float:
        """In steps."""
        return float(np.sqrt(self.chances @ (self.values - self.mean) ** 2))


def made_up() -> list[GridLaw]:
    """Laws that intervals find hard: skewed, heavy tails up to the bound, two points, shares near 0 and 1."""
    grid = Grid.between(0, 1000, step=1)
    middle = (np.arange(1001) + 0.5) / 1001
    shapes = {
        "skewed: beta(0.3, 6)": middle ** (0.3 - 1) * (1 - middle) ** 5,
        "heavy tail: x^-2": 1.0 / (1 + np.arange(1001.0)) ** 2,
        "two points: 2 % at the bound": np.where(
            np.arange(1001) == 1000, 0.02, np.where(np.arange(1001) == 0, 0.98, 0)
        ),
        "even": np.ones(1001),
    }
    laws = [_law(name, grid, np.arange(1001), weights) for name, weights in shapes.items()]
    for share in (0.003, 0.5, 0.99):
        laws.append(
            _law(f"share of {100 * share:g} %", HALVES, np.array([0, 1]), np.array([1 - share, share]), binary=True)
        )
    return laws


def _law(name: str, grid: Grid, points: NDArray[np.int64], weights: Floats, *, binary: bool = False) -> GridLaw:
    kept = weights > 0
    return GridLaw(name, False, grid, centred_values(grid, points[kept]), weights[kept] / weights[kept].sum(), binary)


def recorded(folder: Path) -> list[GridLaw]:
    """The six real columns: the population is the whole column."""
    laws = []
    for column in COLUMNS:
        grid = Grid.between(column.low, column.high, step=column.step)
        values, counts = np.unique(
            centred_values(grid, np.asarray(column.load(folder), dtype=float)), return_counts=True
        )
        laws.append(GridLaw(column.name, True, grid, values, counts / counts.sum()))
    return laws


def samples(law: GridLaw, size: int, epsilon: str, relation: dp.Relation, runs: int) -> Iterator[SampledMean]:
    """Draw samples and the noise of their numbers."""
    mechanism = PopulationMean(
        grid=law.grid,
        relation=relation,
        noise=LaplaceNoise(epsilon=Fraction(epsilon)),
        public_rows=size if relation is dp.Relation.REPLACE_ONE else None,
        binary=law.binary,
    )
    chance = np.random.default_rng((SEED, size, len(law.values)))
    for part in np.array_split(np.arange(runs), max(1, runs * len(law.values) // 10**7)):
        rows = chance.multinomial(size, law.chances, size=part.size)
        exact = [rows @ law.values, rows.sum(axis=1), rows @ (law.values**2 - fold_of(law.grid))]
        if relation is dp.Relation.REPLACE_ONE:
            del exact[1]
        noisy = [
            one + measured.unit * dp.noise.discrete_laplace(_scale(measured), part.size)
            for one, measured in zip(exact, mechanism.measurements, strict=False)
        ]
        for numbers in zip(*(column.tolist() for column in noisy), strict=True):
            yield mechanism.accuracy_of(numbers).sampled


def _scale(measured: Measurement) -> Fraction:
    law = measured.noise_in_units.law
    assert isinstance(law, DiscreteLaplaceLaw)
    return law.scale


def oracle(law: GridLaw, size: int, epsilon: str, relation: dp.Relation) -> float:
    """Return the half width of one who knows spread, size and noise, in steps."""
    chance = np.random.default_rng(SEED)
    reach = centred_reach(law.grid) * (1 if relation is dp.Relation.ADD_REMOVE else 2)
    drawn = chance.normal(0, law.deviation * np.sqrt(size), ORACLE) + chance.laplace(0, reach / float(epsilon), ORACLE)
    return float(np.quantile(np.abs(drawn), float(CONFIDENCE))) / size


def show(law: GridLaw, size: int, epsilon: str, relation: dp.Relation) -> None:
    """Report one cell."""
    runs = RUNS // 10 if is_quick() else RUNS
    drawn = list(samples(law, size, epsilon, relation, runs))
    ends = [one.ends(CONFIDENCE) for one in drawn[:WIDTHS]]
    emit(
        what="share" if law.binary else "mean",
        data=law.name,
        real=law.real,
        size=size,
        epsilon=epsilon,
        relation=relation.value,
        runs=runs,
        covered=sum(one.holds(law.mean, CONFIDENCE) for one in drawn),
        half=float(np.median([high - low for low, high in ends])) / 2,
        normal=1.96 * law.deviation / float(np.sqrt(size)),
        oracle=oracle(law, size, epsilon, relation),
    )


def show_difference(law: GridLaw, size: int) -> None:
    """Report the difference of two samples of one law, at ε = 1 each: it is zero."""
    runs = RUNS // 10 if is_quick() else RUNS
    relation = dp.Relation.ADD_REMOVE
    drawn = list(samples(law, size, "1", relation, 2 * runs))
    ends = [
        SampledDifference(first=one, second=other, steps=(1.0, 1.0)).ends(CONFIDENCE)
        for one, other in zip(drawn[:runs], drawn[runs:], strict=True)
    ]
    emit(
        what="difference",
        data=law.name,
        real=law.real,
        size=size,
        epsilon="1",
        relation=relation.value,
        runs=runs,
        covered=sum(low <= 0 <= high for low, high in ends),
        half=float(np.median([high - low for low, high in ends])) / 2,
        normal=1.96 * law.deviation * float(np.sqrt(2 / size)),
        oracle=float(np.sqrt(2)) * oracle(law, size, "1", relation),
    )


def main() -> None:
    """Report every cell, of real columns too where the folder of data is said."""
    laws = made_up() + (recorded(Path(sys.argv[1])) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else [])
    for law, size in product(laws, SIZES):
        show(law, size, "1", dp.Relation.ADD_REMOVE)
        if size in SIZES[1::2]:
            show(law, size, "0.1", dp.Relation.ADD_REMOVE)
            show(law, size, "1", dp.Relation.REPLACE_ONE)
    for law, size in product((laws[0], laws[5]), (SIZES[0], SIZES[-1])):
        show_difference(law, size)


if __name__ == "__main__":
    main()
