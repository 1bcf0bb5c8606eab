"""Quantiles of a column from the counts of its cells, with an interval that follows from public facts.

The quantile of q lies below a cut if and only if at least q of all values do. For each cut, the noisy number of values
below it less q times that of all values is known up to a sum of noises. From the lowest cut up, as long as that is
surely negative, the quantile is not below the cut; from the highest cut down, as long as it is surely positive, it is.
Only one cut can make each end wrong, the one next to the quantile, so each end is wrong with 2.5 % at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import accumulate
from typing import final

from discreet.release.friendly import friendly_step
from discreet.release.profiling.estimates import Law, reach
from discreet.release.profiling.partition import Bound, Ranges

__all__ = ["ASKED", "ProfileQuantile", "quantiles"]

_DIGITS = 20  # steps of a rounded guess within its interval, about
ASKED = tuple(Fraction(share, 100) for share in (5, 25, 50, 75, 95))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileQuantile:
    """The value below which a share of all values lies: about `value`, surely from `low` to `high`, None if open."""

    share: Fraction
    value: Bound | None
    low: Bound | None
    high: Bound | None


def quantiles(cells: Ranges, counts: Sequence[int], law: Law) -> tuple[ProfileQuantile, ...]:
    """Return all quantiles that are shown."""
    if sum(counts) <= 0:
        return ()
    return tuple(_quantile(cells, counts, law, share) for share in ASKED)


def _quantile(cells: Ranges, counts: Sequence[int], law: Law, share: Fraction) -> ProfileQuantile:
    total, below = sum(counts), list(accumulate(counts))[:-1]
    surplus = [count - share * total for count in below]
    off = [_reach(law, share, cut + 1, len(counts)) for cut in range(len(below))]
    edges = (cells.low, *cells.cuts, cells.high)
    first = _leading([excess <= -much for excess, much in zip(surplus, off, strict=True)])
    last = _leading([excess >= much for excess, much in zip(reversed(surplus), reversed(off), strict=True)])
    low, high = edges[first], edges[len(edges) - 1 - last]
    return ProfileQuantile(
        share=share, value=_guess(cells, counts, share, low, high), low=low, high=_up_to(cells, high)
    )


def _reach(law: Law, share: Fraction, below: int, cells: int) -> int:
    part = float(share)
    return reach(law, ((1 - part, below), (part, cells - below)))


def _leading(flags: Sequence[bool]) -> int:
    """Count how many of the first are true."""
    return next((place for place, flag in enumerate(flags) if not flag), len(flags))


def _up_to(cells: Ranges, high: Bound | None) -> Bound | None:
    """Whole numbers below a cut end one before it."""
    if not cells.whole or high is None or high == cells.high:
        return high
    return high - timedelta(days=1) if isinstance(high, date) else high - 1


def _guess(
    cells: Ranges, counts: Sequence[int], share: Fraction, low: Bound | None, high: Bound | None
) -> Bound | None:
    """Guess within the cell where the sum of counts, none below zero, passes the share; kept within the interval."""
    tidy = [max(0, count) for count in counts]
    wanted, before = share * sum(tidy), Fraction(0)
    for cell, count in enumerate(tidy, 1):
        if count and before + count >= wanted:
            return _kept(_rounded(_inside(cells, cell, (wanted - before) / count), low, high), low, _up_to(cells, high))
        before += count
    return None


def _inside(cells: Ranges, cell: int, share: Fraction) -> Bound | None:
    low, high = cells.ends(cell)
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        place = low + share * (high - low)
        if not cells.whole:
            return place
        return min(Fraction(place // 1), high if high == cells.high else high - 1)
    if isinstance(low, datetime) and isinstance(high, datetime):
        return (low + (high - low) * float(share)).replace(microsecond=0)
    if isinstance(low, date) and isinstance(high, date):
        return low + timedelta(days=min(int((high - low).days * share), max(0, (high - low).days - 1)))
    return low if high is None else high


def _rounded(value: Bound | None, low: Bound | None, high: Bound | None) -> Bound | None:
    """Leave out digits that say nothing: those far below the width of the interval."""
    if not isinstance(value, Fraction) or value.denominator == 1:
        return value
    bounded = isinstance(low, Fraction) and isinstance(high, Fraction) and low < high
    step = friendly_step(high - low if bounded else abs(value) or Fraction(1), _DIGITS)  # type: ignore[operator, arg-type]
    return round(value / step) * step


def _kept(value: Bound | None, low: Bound | None, high: Bound | None) -> Bound | None:
    if value is None:
        return None
    if low is not None and value < low:  # type: ignore[operator]
        return low
    return high if high is not None and value > high else value  # type: ignore[operator]
