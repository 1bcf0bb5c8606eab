"""Place values on a public grid in SQL: the index is clamp(rint(x / step), first, last), half to even; NULL stays NULL.

In IEEE doubles x / step is x times 1 / step if that is a whole number. Whole numbers on whole steps are exact.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.query.engines.writing import Writer, real
from discreet.query.facts import ExpressionFacts, Kind

__all__ = ["number", "place"]

_NARROW = 1 << 31
_LARGEST = 1 << 63
_FAR = 1 << 48


def number(value: str, kind: Kind) -> str:
    """Write a time or a truth value as the number it stands for."""
    if kind is Kind.BOOLEAN:
        return f"CAST({value} AS BIGINT)"
    if kind is Kind.DATE:
        return f"({value} - DATE '1970-01-01')"
    if kind is Kind.TIMESTAMP:
        return f"epoch_us({value})"
    return value


def place(value: str, facts: ExpressionFacts, step: Fraction, first: int, last: int, writer: Writer) -> str:
    """Write the index of a value of some facts on the grid of `step`, from `first` to `last`."""
    narrow = "INTEGER" if first > -_NARROW and last < _NARROW else "BIGINT"
    if facts.kind is Kind.REAL:
        return _real(value, facts, step, (first, last), narrow, writer)
    whole = f"CAST({number(value, facts.kind)} AS BIGINT)"
    if step.numerator == 1:
        return _fine(whole, step.denominator, (first, last), narrow, writer)
    if step.denominator == 1:
        return _coarse(whole, step.numerator, (first, last), narrow, writer)
    return _real(f"CAST({whole} AS DOUBLE)", ExpressionFacts(kind=Kind.REAL), step, (first, last), narrow, writer)


def _real(
    value: str, facts: ExpressionFacts, step: Fraction, ends: tuple[int, int], narrow: str, writer: Writer
) -> str:
    ratio = f"{value} * {real(1 / step)}" if step.numerator == 1 else f"{value} / {real(step)}"
    if _is_inside(facts, step, ends):
        return f"TRY_CAST({ratio} AS {narrow})"
    return writer.let(
        f"({ratio})", lambda x: _clamped(x, f"TRY_CAST({x} AS {narrow})", (real(ends[0]), real(ends[1])), ends)
    )


def _is_inside(facts: ExpressionFacts, step: Fraction, ends: tuple[int, int]) -> bool:
    """Whether no value can be placed beyond an end.

    Bound, step and quotient are rounded once each, by 2^-53 of themselves: below 2^48 steps that is no half step.
    """
    if facts.low is None or facts.high is None or max(-ends[0], ends[1]) > _FAR:
        return False
    return ends[0] * step <= facts.low and facts.high <= ends[1] * step


def _fine(value: str, per_unit: int, ends: tuple[int, int], narrow: str, writer: Writer) -> str:
    """Place a whole number on a grid of which one is a multiple: no rounding."""
    scale = "" if per_unit == 1 else f" * {per_unit}"
    # Outside of these the index is beyond the end; inside the product is no larger than the ends.
    low, high = -(-ends[0] // per_unit), ends[1] // per_unit
    return writer.let(value, lambda x: _clamped(x, f"CAST({x}{scale} AS {narrow})", (str(low), str(high)), ends))


def _coarse(value: str, step: int, ends: tuple[int, int], narrow: str, writer: Writer) -> str:
    """Round a whole number to a multiple of a whole step, half to even."""

    def body(x: str) -> str:
        # Shifted by a multiple of two steps everything is above zero, where division rounds down.
        shift = -ends[0] + (ends[0] % 2)
        # Whatever of a sum does not fit 64 bits would fail for that row.
        fits = max(ends[1] + shift, shift) * step < _LARGEST
        moved = f"({x if fits else f'CAST({x} AS HUGEINT)'} + {shift * step})"
        whole, rest = f"({moved} // {step})", f"({moved} % {step})"
        up = f"{rest} * 2 > {step} OR ({rest} * 2 = {step} AND {whole} % 2 = 1)"
        index = f"CAST({whole} - {shift} + CASE WHEN {up} THEN 1 ELSE 0 END AS {narrow})"
        return _clamped(x, index, (str(ends[0] * step), str(ends[1] * step)), ends)

    return writer.let(value, body)


def _clamped(value: str, index: str, bounds: tuple[str, str], ends: tuple[int, int]) -> str:
    low, high = bounds
    return f"(CASE WHEN {value} > {high} THEN {ends[1]} WHEN {value} < {low} THEN {ends[0]} ELSE {index} END)"
