"""From an error that is wanted to the least epsilon, or the least rho, that reaches it; from public facts only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from discreet.errors import Refused
from discreet.formatting import exponent
from discreet.query.ast import OutputColumn, ReleasedMeasure
from discreet.query.plan.answers import needs_rows, predicted
from discreet.query.plan.draft import CountTerm, PlanDraft
from discreet.query.plan.priced_query import rewrite
from discreet.query.plan.spend import MOST_EPSILON, MOST_RHO, Spend

__all__ = ["errors_of", "relative_errors_of", "spend_for"]

_DIGITS = 100  # Numbers have three significant digits: 1.00, 1.01, …
_LEAST_EPSILON, _LEAST_RHO = Fraction(1, 10**9), Fraction(1, 10**15)


def spend_for(draft: PlanDraft) -> PlanDraft:
    """Replace an error by the smallest price of three digits for which every column errs no more than that."""
    spend = draft.spend
    if spend.error is None:
        return draft

    def reaches(price: Fraction) -> bool:
        tried = _spending(spend, price)
        return _worst(rewrite(replace(draft, spend=tried)), spend) <= (spend.error or 0)

    return replace(draft, spend=_spending(spend, _least(reaches, concentrated=spend.concentrated)))


def errors_of(draft: PlanDraft) -> Mapping[str, Fraction]:
    """Return the ± of each column for which it follows from public facts and from what is expected."""
    found = {output.name: predicted(draft, output, draft.spend.expected) for output in draft.question.outputs}
    return {name: error for name, error in found.items() if error is not None}


def relative_errors_of(draft: PlanDraft) -> Mapping[str, Fraction]:
    """Return the ± of each column as a part of its expected value, where one is declared."""
    errors = errors_of(draft)
    sizes = {output.name: _size(draft, output, draft.spend) for output in draft.question.outputs}
    return {name: error / size for name, error in errors.items() if (size := sizes[name]) is not None}


def _spending(spend: Spend, price: Fraction) -> Spend:
    if spend.concentrated:
        return replace(spend, rho=price, error=None, relative=False, concentrated=False)
    return replace(spend, epsilon=price, error=None, relative=False)


def _least(reaches: Callable[[Fraction], bool], *, concentrated: bool) -> Fraction:
    """Search the sorted list of all numbers of three digits; errors fall as the price grows."""
    name, least, most = ("rho", _LEAST_RHO, MOST_RHO) if concentrated else ("epsilon", _LEAST_EPSILON, MOST_EPSILON)
    if not reaches(most):
        raise Refused(f"no {name} up to {most} reaches this error: ask for less, or for fewer columns")
    low, high = _place(least), _place(most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(_candidate(middle)) else (middle + 1, high)
    return _candidate(low)


def _candidate(place: int) -> Fraction:
    power, digit = divmod(place, 9 * _DIGITS)
    return Fraction(_DIGITS + digit, _DIGITS) * Fraction(10) ** power


def _place(number: Fraction) -> int:
    """Return the place of a number among all of three digits; 1 is at the place 0."""
    power = exponent(number)
    return 9 * _DIGITS * power + int(number * _DIGITS / Fraction(10) ** power) - _DIGITS


def _worst(draft: PlanDraft, asked: Spend) -> Fraction:
    """Return the largest error of any column that has one, relative to its expected value where that was asked for."""
    errors = [error for output in draft.question.outputs if (error := _error(draft, output, asked)) is not None]
    if not errors:
        raise Refused("no column of this answer has an error that follows from public facts: say epsilon")
    return max(errors)


def _error(draft: PlanDraft, output: OutputColumn, asked: Spend) -> Fraction | None:
    off = predicted(draft, output, asked.expected)
    if off is None:
        if needs_rows(draft, output):
            raise Refused("the error of a mean or variance depends on how many rows a group has: say expected=…")
        return None
    if not asked.relative:
        return off
    size = _size(draft, output, asked)
    if size is None:
        raise Refused(
            f"a relative error needs an expected size of {output.name}: say expected= the rows of a typical group, or "
            "give sizes by column, as an earlier release has them"
        )
    return off / size


def _size(draft: PlanDraft, output: OutputColumn, asked: Spend) -> Fraction | None:
    """Return the expected value of a column: as an earlier answer had it, or for counts the expected rows."""
    if output.name in asked.sizes:
        return asked.sizes[output.name]
    recipe = draft.recipes[output.value.measure] if isinstance(output.value, ReleasedMeasure) else None
    return Fraction(asked.expected) if isinstance(recipe, CountTerm) and asked.expected is not None else None
