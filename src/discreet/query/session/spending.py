"""What an analyst offers for an answer, in any of the words they may say it in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, positive
from discreet.ledger.budget import Budget
from discreet.query.planning.spend import Spend
from discreet.query.reading.options import PrivacyOptions
from discreet.query.results import ReleaseTable

__all__ = ["Expectation", "Offer"]

Expectation: TypeAlias = int | Mapping[str, Number] | ReleaseTable
_ROWS = "*"  # In a dictionary of expected values: the rows of a typical group, as in COUNT(*).
_WORDS = ("epsilon", "rho", "share", "error", "relative_error")
_USUAL = Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Exactly one of epsilon, rho, a share of the lifetime budget, a largest ±, or a largest ± relative to `expected`.

    `expected` is what the analyst believes: how many rows a typical group has; or the value of each column by name,
    with the rows under "*"; or an earlier answer, of which the middle of each column is taken. It is never read from
    the data.
    """

    epsilon: Number | None = None
    rho: Number | None = None
    share: Number | None = None
    error: Number | None = None
    relative_error: Number | None = None
    expected: Expectation | None = None
    delta: Number | None = None
    confidence: Number = _USUAL

    def with_clause(self, options: PrivacyOptions) -> Offer:
        """Take what the clause of the query says; where both are said, the smaller: a clause may only tighten."""
        return replace(
            self,
            epsilon=_smaller(exact_or_none(self.epsilon, name="epsilon"), options.epsilon),
            delta=None if options.delta == 0 else _smaller(exact_or_none(self.delta, name="delta"), options.delta),
        )

    def _check(self) -> None:
        said = [name for name in _WORDS if getattr(self, name) is not None]
        if len(said) != 1:
            raise InvalidParameter(
                f"say exactly one of {', '.join(_WORDS)}"
                + (f", not {' and '.join(said)}" if said else ": how much to spend has no default")
            )
        if self.relative_error is not None and self.expected is None:
            raise InvalidParameter(
                "relative_error needs to know relative to what, and that is never read from the data: say expected=… "
                '(how many rows a typical group has, or {"*": rows, "column": value}), or give an absolute error='
            )

    def spend(self, budget: Budget) -> Spend:
        """Read the offer, with a share turned into what it is a share of."""
        self._check()
        epsilon, rho = self.epsilon, self.rho
        if self.share is not None:
            epsilon, rho = _shared(_read_share(self.share), budget)
        rows, sizes = _expectation(self.expected)
        wanted = self.error if self.relative_error is None else self.relative_error
        return Spend(
            epsilon=exact_or_none(epsilon, name="epsilon"),
            rho=exact_or_none(rho, name="rho"),
            error=exact_or_none(wanted, name="error" if self.relative_error is None else "relative_error"),
            relative=self.relative_error is not None,
            expected=rows,
            sizes=sizes,
            delta=exact_or_none(self.delta, name="delta"),
            confidence=exact(self.confidence, name="confidence"),
        )


def _smaller(said: Fraction | None, also: Fraction | None) -> Fraction | None:
    return min((value for value in (said, also) if value is not None), default=None)


def _read_share(share: Number) -> Fraction:
    part = positive(share, name="share")
    if part > 1:
        raise InvalidParameter("share must be at most 1: it is a part of the lifetime budget")
    return part


def _shared(part: Fraction, budget: Budget) -> tuple[Fraction | None, Fraction | None]:
    if budget.rho is not None:
        return None, part * budget.rho
    if budget.epsilon is None:
        raise InvalidParameter("share is a part of the lifetime budget, and there is none here: say epsilon= or rho=")
    return part * budget.epsilon, None


def _expectation(expected: Expectation | None) -> tuple[int | None, Mapping[str, Fraction]]:
    if isinstance(expected, ReleaseTable):
        return None, dict(_released_sizes(expected))
    if isinstance(expected, Mapping):
        sizes = {name: positive(size, name="an expected value") for name, size in expected.items()}
        rows = sizes.pop(_ROWS, None)
        return None if rows is None else max(1, round(rows)), sizes
    return expected, {}


def _released_sizes(table: ReleaseTable) -> Iterator[tuple[str, Fraction]]:
    """Return the middle size of each measured column; one of which nothing but zeros was released says nothing."""
    for column in table.columns:
        cells = (column[row].value for row in range(len(column)))
        sizes = sorted(abs(Fraction(value)) for value in cells if isinstance(value, (int, Fraction)))
        if column.measured and sizes and sizes[len(sizes) // 2] > 0:
            yield column.name, sizes[len(sizes) // 2]
