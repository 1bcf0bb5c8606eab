"""Tests of noisy tables of counts: whether shares are as said, and whether rows and columns are independent.

Both take what `dp.histogram` released and read nothing. They do what the χ² tests of fit and of independence do for
exact counts, by the largest residual instead of the sum of squared ones: its law under the hypothesis is bounded for
every number of rows, so that the size of a test is at most its level. No exact count is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, positive_integer
from discreet.mechanisms.quotient_intervals import MeasuredNoise
from discreet.mechanisms.release import EachCell, NoiseAccuracy, Release
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.statistics.population_intervals import (
    SampledDifference,
    SampledMean,
    Spread,
    sampled_reach,
    sampled_tail,
)
from discreet.statistics.population_means import NoisyTest, least_level

__all__ = ["fit_test", "independence_test"]

_COUNTED = Fraction(1, 2000)  # The part of a p-value that pays for not knowing the number of rows.
_MOST_CELLS = 256


def fit_test(counts: Release[tuple[int, ...]], shares: Sequence[Number]) -> NoisyTest:
    """Test whether rows were drawn with these shares, by a noisy histogram of them.

    Theorem     If they were, the count of a bin minus its share of all is a centred sum of independent draws plus noise
                of a known law, whatever the number of rows: see `sampled_tail`. The number is bounded from the noisy
                counts, which fails with a chance of 1/2000 and is added; of several bins the least p-value counts,
                times their number.

    Args:
        counts: What `dp.histogram` released. Its rows are taken for independent draws.
        shares: The share of each bin under the hypothesis, in the same order; above 0, and 1 together.

    Returns:
        The largest residual, and the p-value.

    Raises:
        InvalidParameter: If it is no histogram, or if the shares are not one for each bin and 1 together.
        Refused: If several rows of a unit count.

    Examples:
        >>> counts = dp.histogram(
        ...     ["f"] * 700 + ["m"] * 300, bins=["f", "m"], relation=dp.Relation.ADD_REMOVE, epsilon=1
        ... )
        >>> dp.statistics.fit_test(counts, ["1/2", "1/2"]).rejects("0.01")
        True
    """
    noise, values = _cells_of(counts)
    said = tuple(exact(share, name="a share") for share in shares)
    if len(said) != len(values) or len(said) < 2 or min(said) <= 0 or sum(said) != 1:
        raise InvalidParameter("shares must be one for each bin, at least two, above 0 and exactly 1 together")
    off = sampled_reach(Spread(0.0, 0.0, 0.0), [(1.0, noise)] * len(values), float(_COUNTED))
    rows = max(1.0, sum(values) + off)
    residuals = [value - share * sum(values) for value, share in zip(values, said, strict=True)]
    tails = [
        _tail(float(residual), float(share), rows, noise, len(values) - 1)
        for residual, share in zip(residuals, said, strict=True)
    ]
    tried = 1 if len(values) == 2 else len(values)  # Of two bins both residuals are the same.
    return NoisyTest(
        statistic=max(map(abs, residuals)), p_value=min(Fraction(1), 2 * tried * Fraction(min(tails)) + _COUNTED)
    )


def _tail(residual: float, share: float, rows: float, noise: MeasuredNoise, others: int) -> float:
    """Bound the chance of such a residual on its side."""
    beyond = 1 - share if residual > 0 else share
    spread = Spread(rows * share * (1 - share), beyond, share**2 + (1 - share) ** 2)
    return sampled_tail(spread, [(1 - share, noise)] + [(share, noise)] * others, abs(residual))


def independence_test(counts: Release[tuple[int, ...]], shape: tuple[int, int]) -> NoisyTest:
    """Test whether two attributes of the rows are independent, by a noisy table of both.

    Theorem     If they are, the share of a column among the rows of the table in one line is that among all other
                lines: two populations with the same mean, of which the rows are independent samples. See
                `two_sample_test`; of several lines and columns the least p-value counts, times their number.

    Args:
        counts: What `dp.histogram` released, of bins that are pairs: line by line. Rows are taken for independent
            draws.
        shape: How many lines and how many columns the table has, at least two of each.

    Returns:
        The largest difference of shares, and the p-value.

    Raises:
        InvalidParameter: If it is no histogram, or not of this shape.
        Refused: If several rows of a unit count.

    Examples:
        >>> pairs = [(sex, smokes) for sex in "fm" for smokes in (False, True)]
        >>> people = [pairs[0]] * 900 + [pairs[1]] * 100 + [pairs[2]] * 500 + [pairs[3]] * 500
        >>> counts = dp.histogram(people, bins=pairs, relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> dp.statistics.independence_test(counts, (2, 2)).rejects("0.01")
        True
    """
    noise, values = _cells_of(counts)
    lines, columns = (positive_integer(number, name="shape") for number in shape)
    if min(lines, columns) < 2 or lines * columns != len(values):
        raise InvalidParameter("shape must be the numbers of lines and columns, at least 2 each, of this table")
    table = np.array(values, dtype=object).reshape(lines, columns)
    tried = [(i, j) for i in range(lines if lines > 2 else 1) for j in range(columns if columns > 2 else 1)]
    pairs = [_compared(table, i, j, noise) for i, j in tried]
    pairs.sort(key=_apart, reverse=True)  # The clearest first, so that the others need one look each.
    p_value = Fraction(1)
    for pair in pairs:
        p_value = least_level(partial(_leaves_zero_out, pair), p_value)
    return NoisyTest(statistic=Fraction(_apart(pairs[0])), p_value=min(Fraction(1), len(tried) * p_value))


def _apart(pair: SampledDifference) -> float:
    return abs(pair.first.middle - pair.second.middle)


def _compared(table: Any, line: int, column: int, noise: MeasuredNoise) -> SampledDifference:
    """Compare the share of a column in one line with that in all others."""
    lines, columns = table.shape
    rest = np.delete(table, line, axis=0)
    sides = [
        SampledMean(
            low=0,
            high=1,
            total=int(part[:, column].sum()),
            count=int(part.sum()),
            noises=(noise, None, None),
            binary=True,
            cells=(many, many * (columns - 1)),
        )
        for part, many in ((table[line : line + 1], 1), (rest, lines - 1))
    ]
    return SampledDifference(first=sides[0], second=sides[1], steps=(1.0, 1.0))


def _leaves_zero_out(pair: SampledDifference, level: Fraction) -> bool:
    low, high = pair.ends(1 - level)
    return not low <= 0 <= high


def _cells_of(counts: Release[tuple[int, ...]]) -> tuple[MeasuredNoise, tuple[int, ...]]:
    """Return the noise of each cell and the noisy counts; refuse what is no histogram, or of no independent rows."""
    accuracy = counts.accuracy if isinstance(counts, Release) else None
    cell = accuracy.cells[0] if isinstance(accuracy, EachCell) and len(accuracy.cells) == 1 else None
    law = cell.noise if isinstance(cell, NoiseAccuracy) else None
    if (
        not isinstance(cell, NoiseAccuracy)
        or not isinstance(law, (DiscreteLaplaceLaw, RoundedGaussianLaw))
        or cell.step.denominator != 1
        or counts.labels is None
    ):
        raise InvalidParameter("this takes what dp.histogram released")
    if counts.max_rows is not None and counts.max_rows > 1:
        raise Refused(
            "with several rows of a unit in a histogram there is no test of it",
            reason="rows of one unit are no independent draws, which the test counts on",
            way_out="count one row of each unit: max_rows=1",
        )
    if len(counts.value) > _MOST_CELLS:
        raise InvalidParameter(f"a table that is tested has at most {_MOST_CELLS} cells")
    return MeasuredNoise(law, int(cell.step)), counts.value
