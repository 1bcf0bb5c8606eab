"""Means of what the rows were drawn from: a mechanism whose interval covers sampling error and noise together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.adaptive.bounded_memberships import UnitRows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.formatting import record
from discreet.frames.column import Data, column_of
from discreet.mechanisms.additive_noise import Noise
from discreet.mechanisms.count import row_query
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import check_length, check_size
from discreet.mechanisms.measurement import Measurement, joint_distribution, joint_event
from discreet.mechanisms.parameters import read_confidence, read_flag, read_share, settle
from discreet.mechanisms.release import Interval, Release
from discreet.mechanisms.sum import centre_of, centred_ends, centred_step, centred_sum_query
from discreet.mechanisms.variance import fold_of, square_query
from discreet.privacy.events import Composed, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation
from discreet.statistics.population_intervals import SampledDifference, SampledMean

__all__ = [
    "DifferenceAccuracy",
    "NoisyTest",
    "PopulationAccuracy",
    "PopulationMean",
    "difference",
    "least_level",
    "of_population",
    "two_sample_test",
]

_SQUARES_SHARE = Fraction(1, 5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMean:
    """Average the values, each clamped to the grid, with an interval for the mean of the law that they are drawn from.

    Under add-remove a noisy sum about the middle, a noisy count and a noisy sum of squares; under replace-one the count
    is public. Zeros and ones (`binary`) need no squares: their variance follows from their mean.

    Guarantee   what the noise spends: `squares_share` on the squares, and of the rest `count_share` on the count.
    Theorem     Dividing noisy numbers is free. [DMNS06] That the interval covers is the theorem of `SampledMean`; it
                takes rows for independent draws of one law, and is for the mean of that law as it is clamped: of
                values on the grid, where one that is missing or no number is the default of the grid.
    Utility     for many rows the half width is that of a normal interval with the standard deviation of the law; for
                few, or bounds that are many standard deviations wide, it is several times that (7 times for 50 rows
                and bounds of 10 standard deviations), since nothing is assumed about the law but its bounds.

    Args:
        grid: The bounds that values are clamped to, the step that they are rounded to, and the default that a missing
            value counts as.
        relation: The neighbouring relation.
        noise: The noise and with it the budget: `LaplaceNoise` or `GaussianNoise`.
        public_rows: The public number of rows, under replace-one; None under add-remove.
        count_share: The part of the budget that pays for a noisy count, under add-remove.
        squares_share: The part of the budget that pays for the noisy squares.
        binary: Whether all values are at the bounds, such as zeros and ones.

    Raises:
        InvalidParameter: If the public number of rows is missing under replace-one, or said under add-remove.
    """

    grid: Grid
    relation: Relation
    noise: Noise
    public_rows: int | None = None
    count_share: Fraction = Fraction(1, 2)
    squares_share: Fraction = _SQUARES_SHARE
    binary: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            count_share=read_share(self.count_share, name="count_share"),
            squares_share=read_share(self.squares_share, name="squares_share"),
            public_rows=check_size(self.relation, self.public_rows),
            binary=read_flag(self.binary, name="binary"),
        )
        _ = self.event  # Refuses noise that no sampler takes, while nothing is spent yet.

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The noisy sum, the noisy count under add-remove, and the noisy squares but for zeros and ones."""
        rest = Fraction(1) if self.binary else 1 - self.squares_share
        private = self.public_rows is None
        part = self.noise.part
        found = [(centred_sum_query(self.grid, self.relation), rest * (1 - self.count_share if private else 1))]
        if private:
            found.append((row_query(self.relation), rest * self.count_share))
        if not self.binary:
            found.append((square_query(self.grid, self.relation), self.squares_share))
        return tuple(
            Measurement(query=query, noise=self.noise if share == 1 else part(share)) for query, share in found
        )

    @property
    def event(self) -> Event:
        return joint_event(self.measurements)

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the noisy numbers behind the answer."""
        return joint_distribution(self.measurements, data)

    def release(self, data: Data) -> Release[Fraction]:
        """Average with noise."""
        column = column_of(data)
        if self.public_rows is not None:
            check_length(column, self.public_rows)
        accuracy = self.accuracy_of([one.measure(column)[0] for one in self.measurements])
        return Release(
            value=min(max(accuracy.quotient, self.grid.low), self.grid.high),
            event=self.event,
            relation=self.relation,
            accuracy=accuracy,
            limits=(self.grid.low, self.grid.high),
        )

    def accuracy_of(self, noisy: Sequence[int]) -> PopulationAccuracy:
        """Put the noisy numbers into their places."""
        noises, private = [one.noise_in_units for one in self.measurements], self.public_rows is None
        low, high = centred_ends(self.grid)
        sampled = SampledMean(
            low=low,
            high=high,
            total=noisy[0],
            count=noisy[1] if private else self.public_rows or 0,
            noises=(noises[0], noises[1] if private else None, None if self.binary else noises[-1]),
            squares=None if self.binary else noisy[-1],
            fold=fold_of(self.grid),
            binary=self.binary,
        )
        return PopulationAccuracy(centre=centre_of(self.grid), step=centred_step(self.grid), sampled=sampled)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationAccuracy:
    """The interval of a mean of what the rows were drawn from: sampling error and noise together."""

    centre: Fraction
    step: Fraction
    sampled: SampledMean

    @property
    def quotient(self) -> Fraction:
        """The released mean; where the count says that nobody is there, it is taken for one."""
        return self.centre + self.step * self.sampled.total / max(1, self.sampled.count)

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        low, high = (self.centre + self.step * Fraction(end) for end in self.sampled.ends(confidence))
        return min(low, value), max(high, value)


def of_population(population: bool, whom: UnitRows | None) -> bool:
    """Read whether an interval is for a population; refuse it where several rows of a unit count."""
    if read_flag(population, name="population") and whom is not None and whom.max_rows > 1:
        raise Refused(
            "with several rows of a unit there is no interval for a population",
            reason="rows of one unit are no independent draws, which the interval counts on",
            way_out="leave population out, or keep one row of each unit: max_rows=1",
        )
    return population


# --- difference: Of two releases, for free. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceAccuracy:
    """The interval of the difference of two means of populations, of which the samples are independent."""

    first: PopulationAccuracy
    second: PopulationAccuracy

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        both = SampledDifference(
            first=self.first.sampled,
            second=self.second.sampled,
            steps=(float(self.first.step), float(self.second.step)),
        )
        centre = self.first.centre - self.second.centre
        low, high = (centre + Fraction(end) for end in both.ends(confidence))
        return min(low, value), max(high, value)


def difference(first: Release[Fraction], second: Release[Fraction]) -> Release[Fraction]:
    """Subtract the second of two released means or shares from the first, with an interval for the populations.

    Nothing is read and nothing is charged: both were paid for when they were released, with `population=True`. The
    interval takes the rows of both for independent draws, and nobody for being in both.

    Args:
        first: What `dp.mean` or `dp.proportion` released, with `population=True`.
        second: What is subtracted from it, released in the same way.

    Returns:
        The difference, with an interval; its event is that of both releases together.

    Raises:
        InvalidParameter: If one of them has no interval for a population, or if their neighbouring relations differ.

    Examples:
        >>> terms = {"relation": dp.Relation.ADD_REMOVE, "epsilon": 1, "population": True}
        >>> new, old = dp.proportion([True] * 5000, **terms), dp.proportion([False] * 5000, **terms)
        >>> low, high = dp.difference(new, old).interval(0.95)
        >>> 0.9 < low < high <= 1
        True
    """
    one, other = _accuracy_of(first), _accuracy_of(second)
    if first.relation is not second.relation:
        raise InvalidParameter("both releases must have the same neighbouring relation")
    (a, b), (c, d) = first.limits, second.limits
    known = None not in (a, b, c, d)
    return Release(
        value=first.value - second.value,
        event=Composed([first.event, second.event]),
        relation=first.relation,
        accuracy=DifferenceAccuracy(first=one, second=other),
        limits=(a - d, b - c) if known else (None, None),  # type: ignore[operator]
        delta=first.delta if first.delta == second.delta else None,
        unit=first.unit if first.unit == second.unit else None,
        max_rows=first.max_rows if first.max_rows == second.max_rows else None,
    )


def _accuracy_of(release: Release[Fraction]) -> PopulationAccuracy:
    accuracy = release.accuracy if isinstance(release, Release) else None
    if not isinstance(accuracy, PopulationAccuracy):
        raise InvalidParameter("this takes what dp.mean or dp.proportion released with population=True")
    return accuracy


# --- test: Whether two populations have the same mean. ---

# Levels at which a test is tried, from one in ten thousand to a half; a p-value is one of them, or 1.
_LEVELS = tuple(Fraction(digit, 10**power) for power in (4, 3, 2, 1) for digit in (1, 2, 3, 5))


def least_level(rejects: Callable[[Fraction], bool], below: Fraction = Fraction(1)) -> Fraction:
    """Return the least level that rejects, as do all that are larger; at most `below`, which ends the search sooner.

    Theorem     If a test of each level L rejects a true hypothesis with a chance of at most L, then what is returned
                is at most L with a chance of at most L: only where the test of level L rejects, too. This counts on
                no order of the tests: intervals of higher levels lie within those of lower ones but for rounding.
    """
    lower = [level for level in _LEVELS if level < below]
    if below < 1 and not (lower and rejects(lower[-1])):
        return below
    found = Fraction(1)
    for level in reversed(_LEVELS):
        if not rejects(level):
            break
        found = level
    return min(found, below)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTest:
    """What a test of noisy numbers found; everything in it may be published.

    Args:
        statistic: What was looked at.
        p_value: The least level at which the hypothesis is rejected, and at all larger ones, of 0.0001, 0.0002,
            0.0003, 0.0005, 0.001 and so on; or a bound of it.
    """

    statistic: Fraction
    p_value: Fraction

    __repr__ = record

    def rejects(self, alpha: Number) -> bool:
        """Tell whether the hypothesis is rejected: if it is true, with a chance of at most alpha."""
        return self.p_value <= 1 - read_confidence(1 - exact(alpha, name="alpha"))


def two_sample_test(first: Release[Fraction], second: Release[Fraction]) -> NoisyTest:
    """Test whether two populations have the same mean or the same share, by what was released of samples of them.

    The two-sample t-test and the test of two proportions, for noisy numbers. Equal means are rejected at a level where
    the interval of `dp.difference` does not hold zero, so that the size of the test is at most its level for every
    number of rows and every law within the bounds: no degrees of freedom, and no exact count, is used.

    Args:
        first: What `dp.mean` or `dp.proportion` released, with `population=True`.
        second: The same of an independent sample.

    Returns:
        The difference and the p-value, which is at least one in ten thousand.

    Raises:
        InvalidParameter: If one of them has no interval for a population, or if their neighbouring relations differ.

    Examples:
        >>> terms = {"relation": dp.Relation.ADD_REMOVE, "epsilon": 1, "population": True}
        >>> new, old = dp.proportion([True] * 5000, **terms), dp.proportion([False] * 5000, **terms)
        >>> dp.two_sample_test(new, old).rejects(0.05)
        True
    """
    found = difference(first, second)

    def leaves_zero_out(level: Fraction) -> bool:
        low, high = found.interval(1 - level)
        return not low <= 0 <= high

    return NoisyTest(statistic=found.value, p_value=least_level(leaves_zero_out))
