"""From an error that is wanted to the least epsilon that reaches it, from public facts only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from discreet.errors import Refused
from discreet.query.planning.draft import Counted, Draft
from discreet.query.planning.predicted import needs_rows, predicted
from discreet.query.planning.priced import rewrite
from discreet.query.planning.spend import MOST_EPSILON, Spend
from discreet.query.question import Answer, Output

__all__ = ["spend_for"]

_DIGITS = 100  # Epsilon has three significant digits: 1.00, 1.01, …
_LEAST_POWER, _MOST_POWER = -9, 2


def spend_for(draft: Draft) -> Draft:
    """Replace an error by the smallest epsilon of three digits for which every column errs no more than that."""
    spend = draft.spend
    if spend.error is None:
        return draft

    def reaches(epsilon: Fraction) -> bool:
        tried = _spending(spend, epsilon)
        return _worst(rewrite(replace(draft, spend=tried)), spend) <= (spend.error or 0)

    return replace(draft, spend=_spending(spend, _least(reaches)))


def _spending(spend: Spend, epsilon: Fraction) -> Spend:
    return replace(spend, epsilon=epsilon, error=None, relative=False)


def _least(reaches: Callable[[Fraction], bool]) -> Fraction:
    """Search the sorted list of all numbers of three digits; errors fall as epsilon grows."""
    low, high = 0, 9 * _DIGITS * (_MOST_POWER - _LEAST_POWER)
    if not reaches(_candidate(high)):
        raise Refused(f"no epsilon up to {MOST_EPSILON} reaches this error: ask for less, or for fewer columns")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(_candidate(middle)) else (middle + 1, high)
    return _candidate(low)


def _candidate(place: int) -> Fraction:
    power, digit = divmod(place, 9 * _DIGITS)
    return Fraction(_DIGITS + digit, _DIGITS) * Fraction(10) ** (power + _LEAST_POWER)


def _worst(draft: Draft, asked: Spend) -> Fraction:
    """Return the largest error of any column that has one, relative to its expected value where that was asked for."""
    errors = [error for output in draft.question.outputs if (error := _error(draft, output, asked)) is not None]
    if not errors:
        raise Refused("no column of this answer has an error that follows from public facts: say epsilon")
    return max(errors)


def _error(draft: Draft, output: Output, asked: Spend) -> Fraction | None:
    off = predicted(draft, output, asked.expected)
    if off is None:
        if needs_rows(draft, output):
            raise Refused("the error of a mean or variance depends on how many rows a group has: say expected=…")
        return None
    return off / _size(draft, output, asked) if asked.relative else off


def _size(draft: Draft, output: Output, asked: Spend) -> Fraction:
    """Return the expected value of a column: as an earlier answer had it, or for counts the expected rows."""
    assert isinstance(output.value, Answer)
    if output.name in asked.sizes:
        return asked.sizes[output.name]
    if isinstance(draft.recipes[output.value.measure], Counted) and asked.expected is not None:
        return Fraction(asked.expected)
    raise Refused(
        "a relative error needs an expected size: say expected= the rows of a typical group, or give sizes by column, "
        "as an earlier release has them"
    )
