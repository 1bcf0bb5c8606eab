"""What an analyst offers for an answer: a budget, or an error from which the budget follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, positive_integer
from discreet.mechanisms.parameters import read_confidence, read_flag, settle, small_delta

__all__ = ["MOST_EPSILON", "MOST_RHO", "Spend"]

# Above these an answer protects nobody: the chance of anything may change by a factor of e^100 with one person.
MOST_EPSILON = Fraction(100)
MOST_RHO = Fraction(50)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Exactly one of `epsilon`, `rho` and `error`. There is no default: how much to spend is the analyst's word.

    `delta` is for what needs one: groups whose keys are not public, and Gaussian noise by (epsilon, delta). `error` is
    the largest ± that is wanted, or, if `relative`, the largest ± as a part of the expected value; it is reached by the
    least epsilon, or, if `concentrated`, by the least rho.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    error: Fraction | None = None
    relative: bool = False
    concentrated: bool = False
    expected: int | None = None  # rows of a typical group, as the analyst believes; never read from data
    sizes: Mapping[str, Fraction] = field(default_factory=dict)  # expected values by column, as an earlier answer has
    confidence: Fraction = Fraction(95, 100)

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.epsilon, self.rho, self.error)) != 1:
            raise InvalidParameter("say exactly one of epsilon, rho and error: there is no default")
        settle(
            self,
            epsilon=_read(self.epsilon, "epsilon", MOST_EPSILON),
            rho=_read(self.rho, "rho", MOST_RHO),
            error=None if self.error is None else positive(self.error, name="error"),
            delta=None if self.delta is None else small_delta(self.delta, public_rows=None),
            relative=read_flag(self.relative, name="relative"),
            concentrated=read_flag(self.concentrated, name="concentrated"),
            expected=None if self.expected is None else positive_integer(self.expected, name="expected"),
            sizes={name: positive(size, name="an expected size") for name, size in dict(self.sizes).items()},
            confidence=read_confidence(self.confidence),
        )
        if (self.relative or self.concentrated) and self.error is None:
            raise InvalidParameter("relative and concentrated say what error means: give an error")

    def __hash__(self) -> int:
        return hash((self.epsilon, self.delta, self.rho, self.error, self.relative, self.expected, self.confidence))


def _read(value: Number | None, name: str, most: Fraction) -> Fraction | None:
    if value is None:
        return None
    spent = positive(value, name=name)
    if spent > most:
        raise InvalidParameter(
            f"{name} must be at most {most}: beyond it nobody is protected, and noise would still be drawn; for exact "
            "numbers ask whoever holds the data"
        )
    return spent
