"""What a verification found, in numbers and in words that promise no more than was done."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import final

from discreet.privacy.relation import Relation
from discreet.verify.claim import Claim, DivergenceMeasure
from discreet.verify.enclosure import Real
from discreet.verify.small_worlds import World

__all__ = ["Finding", "Verification"]


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One claim, and what the worst pair of neighbours says about it."""

    claim: Claim
    lower: Real
    upper: Real  # but for outcomes of probability `slack` at most
    worst_pair: tuple[World, World]
    slack: Fraction

    @property
    def holds(self) -> bool:
        """Whether even the upper end is within the claim, up to the slack."""
        return not self.violated and self.upper <= self.claim.value + self.slack

    @property
    def violated(self) -> bool:
        """Whether the lower end is above the claim: the worst pair is a counterexample."""
        return self.lower > self.claim.value

    @property
    def verdict(self) -> str:
        """One word: holds, VIOLATED or open."""
        return "holds" if self.holds else "VIOLATED" if self.violated else "open"

    def __str__(self) -> str:
        found = f"{_short(self.lower)} to {_short(self.upper)}"
        return f"{self.claim}: claimed {_short(self.claim.value)}, found {found}: {self.verdict}"


@final
@dataclass(frozen=True, slots=True)
class Verification:
    """All claims about one mechanism on one set of small worlds. It is evidence, never a proof of privacy."""

    findings: tuple[Finding, ...]
    relation: Relation
    worlds: int  # data sets looked at
    pairs: int  # pairs of neighbours, in both orders
    slack: Fraction  # probability that outcomes not listed, and rounding, may add to a claim
    bits: int  # working precision that was needed

    @property
    def worst(self) -> Finding:
        """The finding that matters most: a violation, else one left open, else the pure or tightest claim."""
        return max(self.findings, key=_rank)

    @property
    def claimed(self) -> Fraction:
        """The claim of the worst finding."""
        return self.worst.claim.value

    @property
    def lower(self) -> Real:
        """What the worst pair reaches for sure."""
        return self.worst.lower

    @property
    def upper(self) -> Real:
        """What no pair of this world exceeds, up to the slack."""
        return self.worst.upper

    @property
    def worst_pair(self) -> tuple[World, World]:
        """The data sets that are easiest to tell apart."""
        return self.worst.worst_pair

    @property
    def holds(self) -> bool:
        """Whether every claim holds in this world."""
        return all(finding.holds for finding in self.findings)

    @property
    def violated(self) -> bool:
        """Whether some pair of neighbours contradicts a claim."""
        return any(finding.violated for finding in self.findings)

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        worst = self.worst
        reached = f"{worst.claim} >= {_short(worst.lower)} where {_short(worst.claim.value)} is claimed"
        if self.violated:
            return f"VIOLATED: {reached}, by the pair {worst.worst_pair[0]!r} and {worst.worst_pair[1]!r}"
        if self.holds:
            return f"no violation in this world, {reached}"
        return f"left open: {reached}; list more outcomes or allow a larger slack"

    @property
    def scope(self) -> str:
        """How much was looked at, and what was left out."""
        return (
            f"{self.worlds} data sets, {self.pairs} pairs of neighbours under {self.relation.name}, "
            f"slack {_short(self.slack)} for outcomes not listed"
        )

    def __str__(self) -> str:
        return "\n".join([self.headline, f"({self.scope})", *(f"  {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        rows = "".join(_row(finding) for finding in self.findings)
        head = "".join(f"<th>{name}</th>" for name in ("what", "claimed", "at least", "at most", "verdict"))
        words = f"<p><b>{escape(self.headline)}</b><br>{escape(self.scope)}</p>"
        return f"{words}<table><tr>{head}</tr>{rows}</table>"


def _rank(finding: Finding) -> tuple[bool, bool, bool, float]:
    """Violations first, then what is open; of equals the pure epsilon, which people know, then the tightest."""
    claimed = float(finding.claim.value)
    tightness = float(finding.lower) / claimed if claimed else 0.0
    pure = finding.claim.measure is DivergenceMeasure.EPSILON
    return finding.violated, not finding.holds, pure, tightness


def _row(finding: Finding) -> str:
    cells = (
        str(finding.claim),
        _short(finding.claim.value),
        _short(finding.lower),
        _short(finding.upper),
        finding.verdict,
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _short(value: Real) -> str:
    return "infinity" if math.isinf(value) else f"{float(value):.6g}"
