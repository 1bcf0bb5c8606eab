"""One small instance of every mechanism, with a world it is verified on and data it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet.lab.audit.self_audit.subjects import ListedSubject, of_mechanisms
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.mechanisms import (
    AboveThreshold,
    CorrelatedGaussian,
    Count,
    DiscreteGaussian,
    Exponential,
    Gaussian,
    GaussianNoise,
    Grid,
    Histogram,
    Laplace,
    LaplaceNoise,
    Mean,
    PermuteAndFlip,
    Proportion,
    Quantile,
    QuantileAmong,
    QuantileInterval,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    Sum,
    TopK,
    Variance,
    VectorGaussian,
    VectorLaplace,
    VectorMean,
)
from discreet.mechanisms.proportion import HALVES
from discreet.privacy.relation import Relation
from discreet.statistics.population_means import PopulationMean

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = (ADD_REMOVE, REPLACE_ONE)
GRID = Grid(low=Fraction(-1), high=Fraction(2), step=Fraction(1), default=Fraction(0))
UNIT = Grid(low=Fraction(-1), high=Fraction(1), step=Fraction(1), default=Fraction(0))
LETTERS = ("a", "b", "c")
LOUD = GaussianNoise.for_rho(2)


@dataclass(frozen=True)
class Subject:
    """A mechanism, its world, and how a data set becomes what `release` takes."""

    mechanism: Any
    worlds: Worlds
    query: Callable[[Any], Any] | None = None
    told_apart: tuple[Any, Any] | None = None  # two data sets with clearly different laws

    @property
    def pair(self) -> tuple[Any, Any]:
        """Two data sets that are far apart: of the largest size, the first and the last of the world."""
        most = max(map(len, self.worlds.data_sets))
        largest = [data for data in self.worlds.data_sets if len(data) == most]
        return self.told_apart or (largest[0], largest[-1])

    def given(self, data: Any) -> Any:
        """Return what `release` takes for a data set of the world."""
        return list(data) if self.query is None else self.query(data)

    @property
    def name(self) -> str:
        return f"{type(self.mechanism).__name__}-{self.mechanism.relation.value}"


def sizes(relation: Relation, most: int = 3) -> tuple[int, ...]:
    """Data sets of all sizes up to `most`, or of that size only where the size is public."""
    return tuple(range(most + 1)) if relation is ADD_REMOVE else (most,)


def public(relation: Relation, size: int = 3) -> int | None:
    return size if relation is REPLACE_ONE else None


def letters(relation: Relation, most: int = 3) -> Worlds:
    return worlds(LETTERS, sizes(relation, most))


def numbers(relation: Relation, most: int = 3) -> Worlds:
    return worlds((-1, 0, 2), sizes(relation, most))


def letter_counts(data: Any) -> list[int]:
    return [data.count(letter) for letter in LETTERS]


def count(data: Any) -> int:
    return int(data.count("a"))


def two(data: Any) -> list[int]:
    return letter_counts(data)[:2]


def laplace(epsilon: int | str | Fraction) -> LaplaceNoise:
    return LaplaceNoise(epsilon=Fraction(epsilon))


def additive(relation: Relation) -> list[Subject]:
    """Noise on answers that somebody else computed, here counts of letters."""
    changed = 1 if relation is ADD_REMOVE else 2
    squared = Fraction(changed)
    return [
        Subject(Laplace(sensitivity=1, scale=Fraction(3, 2), relation=relation), letters(relation), count),
        Subject(
            VectorLaplace(sensitivity=changed, scale=Fraction(1, 3), dimension=2, relation=relation),
            letters(relation),
            two,
        ),
        Subject(
            Gaussian(squared_sensitivity=Fraction(1), variance=Fraction(9, 4), relation=relation),
            letters(relation),
            count,
        ),
        Subject(
            VectorGaussian(squared_sensitivity=squared, variance=Fraction(1), dimension=2, relation=relation),
            letters(relation),
            two,
        ),
        Subject(DiscreteGaussian(sensitivity=1, variance=Fraction(4), relation=relation), letters(relation), count),
        Subject(correlated(relation), letters(relation, 2), two),
        Subject(
            AboveThreshold(epsilon=Fraction(4), sensitivity=1, threshold=1, relation=relation),
            letters(relation),
            letter_counts,
        ),
    ]


def correlated(relation: Relation, fineness: int = 1) -> CorrelatedGaussian:
    """Noise of covariance (2, 1; 1, 1), whose inverse is (1, -1; -1, 2), on two of three tallies.

    One letter that comes or goes moves them by (1, 0) or (0, 1), of squared norm 1 and 2; one that changes, also by
    (1, -1), of squared norm 5.
    """
    return CorrelatedGaussian(
        covariance=((Fraction(2), Fraction(1)), (Fraction(1), Fraction(1))),
        squared_sensitivity=Fraction(2 if relation is ADD_REMOVE else 5),
        relation=relation,
        fineness=fineness,
    )


def choosing(relation: Relation) -> list[Subject]:
    """Selections by how often a letter occurs."""
    shared: dict[str, Any] = {"epsilon": Fraction(1), "candidates": 3, "relation": relation}
    made: list[Any] = [
        Exponential(sensitivity=Fraction(1), **shared),
        PermuteAndFlip(sensitivity=Fraction(1), **shared),
        ReportNoisyMax(sensitivity=1, **shared | {"epsilon": Fraction(4)}),
        TopK(sensitivity=Fraction(1), count=2, **shared),
    ]
    if relation is ADD_REMOVE:
        made += [
            Exponential(sensitivity=Fraction(1), monotone=True, **shared),
            PermuteAndFlip(sensitivity=Fraction(1), monotone=True, **shared),
            ReportNoisyMax(sensitivity=1, monotone=True, **shared | {"epsilon": Fraction(2)}),
            TopK(sensitivity=Fraction(1), count=2, monotone=True, **shared),
        ]
    apart = (("a", "a", "a", "b"), ("b", "c", "c", "c"))
    return [Subject(mechanism, letters(relation, 4), letter_counts, apart) for mechanism in made]


def aggregates(relation: Relation) -> list[Subject]:
    """Statistics of a column."""
    size = public(relation)
    rows = worlds(((1, 0), (0, -1), (0, 0)), sizes(relation, 2))
    return [
        Subject(Count(relation=relation, noise=laplace("1/2")), worlds((1, None), sizes(relation))),
        Subject(Count(relation=relation, noise=LOUD), worlds((1, None), sizes(relation))),
        Subject(Sum(grid=GRID, relation=relation, noise=laplace(1)), numbers(relation)),
        Subject(Mean(grid=GRID, relation=relation, noise=laplace(8), public_rows=size), numbers(relation)),
        Subject(Mean(grid=GRID, relation=relation, noise=LOUD, public_rows=size), numbers(relation)),
        Subject(
            Proportion(relation=relation, noise=laplace(6), public_rows=size), worlds((True, False), sizes(relation))
        ),
        Subject(
            Variance(grid=UNIT, relation=relation, noise=laplace(36 if size is None else 2), public_rows=size),
            worlds((-1, 0, 1), sizes(relation)),
            told_apart=((-1, 1, 1), (1, 1, 1)),
        ),
        Subject(  # about a middle between grid points, and squares less half of the largest
            Variance(grid=GRID, relation=relation, noise=laplace(36 if size is None else 2), public_rows=size),
            worlds((-1, 0, 2), sizes(relation)),
            told_apart=((-1, 2, 2), (0, 0, 0)),
        ),
        Subject(  # a sum, a count where it is private, and squares
            PopulationMean(grid=UNIT, relation=relation, noise=laplace(24), public_rows=size),
            worlds((-1, 0, 1), sizes(relation)),
            told_apart=((-1, 1, 1), (1, 1, 1)),
        ),
        Subject(
            PopulationMean(grid=HALVES, relation=relation, noise=laplace(6), public_rows=size, binary=True),
            worlds((0, 1), sizes(relation)),
        ),
        Subject(Histogram(bins=LETTERS[:2], relation=relation, noise=laplace(4)), letters(relation)),
        Subject(Histogram(bins=LETTERS[:2], relation=relation, noise=LOUD), letters(relation)),
        Subject(
            VectorMean(
                bound=Fraction(1),
                step=Fraction(1),
                dimension=2,
                relation=relation,
                noise=laplace(24 if size is None else 6),
                public_rows=public(relation, 2),
            ),
            rows,
        ),
        *(
            Subject(
                Quantile(quantile=Fraction(q), epsilon=Fraction(1), grid=GRID, relation=relation, flips=flips),
                worlds((-1, 0, 1, 2), sizes(relation, 4)),
            )
            for q in ("0", "1/4", "1/2", "9/10")
            for flips in (False, True)
        ),
        *(
            Subject(
                QuantileInterval(
                    quantile=Fraction(q),
                    epsilon=Fraction(3),
                    grid=GRID,
                    relation=relation,
                    flips=flips,
                    confidence=Fraction(1, 10),
                    population=population,
                ),
                worlds((-1, 0, 1, 2), sizes(relation, 4)),
            )
            for q, flips, population in (("1/4", False, False), ("1/2", True, False), ("1/2", False, True))
        ),
        *(
            Subject(
                Quantiles(
                    quantiles=tuple(map(Fraction, shares)),
                    epsilons=(Fraction(2), Fraction(2)),
                    grid=UNIT,
                    relation=relation,
                    flips=flips,
                    fineness=fineness,
                ),
                worlds((-1, 0, 1), sizes(relation, most)),
            )
            for shares, flips, fineness, most in ((("1/4", "1/2"), False, 1, 4), (("0", "1/2", "1"), True, 2, 3))
        ),
        *(
            Subject(
                QuantileAmong(
                    candidates=(GRID.first, 0, GRID.last),
                    quantile=Fraction(q),
                    epsilon=Fraction(1),
                    grid=GRID,
                    relation=relation,
                ),
                worlds((-1, 0, 1, 2), sizes(relation, 4)),
            )
            for q in ("1/4", "1/2")
        ),
    ]


SURVEYS = [
    Subject(RandomizedResponse.for_epsilon(1, categories=3), worlds((0, 1, 2), (2,), ordered=True)),
    Subject(RandomizedResponse.for_epsilon("0.001"), worlds((0, 1), (3,), ordered=True)),
    Subject(RandomizedResponse.warner(), worlds((0, 1), (3,), ordered=True)),
]


def furthest(listed: ListedSubject) -> tuple[Any, Any]:
    """Return the two data sets whose laws differ most, in total variation."""
    laws = {data: listed.mechanism.distribution(listed.given(data)).masses for data in listed.worlds.data_sets}

    def distance(pair: tuple[Any, Any]) -> float:
        one, other = laws[pair[0]], laws[pair[1]]
        return sum(abs(float(one.get(key, 0)) - float(other.get(key, 0))) for key in {**one, **other})

    return max(combinations(laws, 2), key=distance)


_LARGER = [
    *(subject for relation in BOTH for subject in additive(relation)),
    *(subject for relation in BOTH for subject in choosing(relation)),
    *(subject for relation in BOTH for subject in aggregates(relation)),
    *SURVEYS,
]
# The library lists every mechanism in its audit of itself. What has no larger world above is tried in that one.
LISTED = [
    Subject(listed.mechanism, listed.worlds, listed.query, furthest(listed))
    for listed in of_mechanisms()
    if type(listed.mechanism) not in {type(subject.mechanism) for subject in _LARGER}
]
SUBJECTS = [*_LARGER, *LISTED]
