"""The meaning of an epsilon as people read it. What is said to be at most so much is rounded up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.privacy.events import ApproxDP, PureDP

if TYPE_CHECKING:
    from discreet.privacy.meaning import Meaning

__all__ = ["chance", "compared_rows", "percent_up", "told"]

_RARE = 0.1  # Below this people think in "1 in so many".


def told(meaning: Meaning) -> str:
    """Tell a meaning in words and small tables."""
    lines = [f"{meaning.said}: how far the best attacker gets, whatever else they know", "", *sentences(meaning), ""]
    found = [(f"{float(100 * one.false_alarms):g} %", percent_up(one.found)) for one in meaning.found]
    lines += _table(("wrongly accused", "people found, at most"), found)
    if meaning.beliefs:
        beliefs = [(chance(float(one.before)), chance(one.after)) for one in meaning.beliefs]
        lines += ["", *_table(("belief before", "belief after, at most"), beliefs)]
    lines += ["", *_table(("who", "for what", "ε", "δ", "right guesses"), compared_rows(meaning))]
    source = meaning.compared[0][0].source
    return "\n".join([*lines, "", f"Public figures: {source}. They protect different things; see there."])


def sentences(meaning: Meaning) -> Iterator[str]:
    """Say the two things that matter most."""
    yield (
        "Is one person in the data or not? Whoever tosses a coin is right in 50 % of cases; whoever also sees what was "
        f"released, in at most {percent_up(meaning.success)}."
    )
    if isinstance(meaning.event, (PureDP, ApproxDP)):
        yield (
            "This is for ε and δ alone, whatever the noise. A release whose noise is known may allow less for the same "
            "ε: its report tells the bound of its own noise."
        )
    if meaning.odds is None:
        yield "There is no ε at this δ: say a δ above 0 to be told how far beliefs and odds may change."
        return
    apart = f", apart from a chance of {meaning.delta:.3g}" if meaning.delta else ""
    yield f"Odds change at most {_factor(meaning.odds)}-fold{apart}."
    rare = meaning.beliefs[0]
    yield f"Who thought it was {chance(float(rare.before))} thinks afterwards that it is at most {chance(rare.after)}."


def compared_rows(meaning: Meaning) -> list[tuple[str, ...]]:
    """List public deployments with this one among them, from the strongest to the weakest promise."""
    own = ("this one", "", _number(meaning.epsilon), _number(meaning.delta), percent_up(meaning.success))
    rows: list[tuple[float, tuple[str, ...]]] = [(meaning.success, own)]
    for line, success in meaning.compared:
        told_delta = _number(float(line.delta))
        rows.append((success, (line.who, line.what, _number(float(line.epsilon)), told_delta, percent_up(success))))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def percent_up(share: float) -> str:
    """Write a share as per cent, rounded up, with enough digits to tell it from 0 and from 100."""
    if share >= 1:
        return "100 %"
    if share <= 0:
        return "0 %"
    from_end = min(share, 1 - share) * 100
    digits = min(12, max(1, 1 - math.floor(math.log10(from_end))))
    rounded = Decimal(share * 100).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
    return f"{rounded.normalize():f} %"


def chance(share: float) -> str:
    """Write a small chance as 1 in so many, rounded up; another in per cent."""
    if not 0 < share < _RARE:
        return percent_up(share)
    return f"1 in {math.floor(1 / Fraction(share) + Fraction(1, 10**6)):,}"


def _factor(odds: float) -> str:
    digits = 2 if odds < 100 else 0 if odds < 1e6 else 1 - math.floor(math.log10(odds))
    rounded = Decimal(odds).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
    return f"{rounded:,f}" if odds < 1e6 else f"{rounded:.1e}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    return ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
