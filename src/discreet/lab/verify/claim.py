"""What is to be verified, and what a verification found: one number, claimed for all pairs of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative, probability
from discreet.lab.verify.laws import Real
from discreet.lab.verify.small_worlds import World
from discreet.pages.kit import grid, words
from discreet.privacy.events import ApproxDP, Event
from discreet.privacy.relation import Relation

__all__ = ["Claim", "Claimed", "DivergenceMeasure", "Finding", "Verification", "claims", "renyi_claims"]

# --- claim: What is to be verified: one number, claimed for all pairs of neighbours. ---


Claimed: TypeAlias = Event | Number | Callable[[Fraction], Number]

_USUAL = tuple(Fraction(n, 4) for n in (0, 1, 2, 4, 8, 16, 32))  # epsilons, where none follows from the claim
_LARGEST = 700  # epsilon; beyond it e^epsilon is no longer a float and no promise either


class DivergenceMeasure(Enum):
    """How far apart two laws are."""

    EPSILON = "epsilon"  # the max divergence
    DELTA = "delta"  # the hockey-stick divergence at one epsilon
    RENYI = "Renyi divergence"  # at one order


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """A divergence of no pair of neighbours exceeds `value`."""

    measure: DivergenceMeasure
    at: Fraction  # the epsilon of a delta, the order of a Renyi divergence; else 0
    value: Fraction

    def __str__(self) -> str:
        place = {DivergenceMeasure.DELTA: " at epsilon ", DivergenceMeasure.RENYI: " of order "}.get(self.measure)
        return self.measure.value if place is None else f"{self.measure.value}{place}{float(self.at):g}"

    __repr__ = __str__


def claims(
    claimed: Claimed,
    *,
    relation: Relation,
    epsilons: Iterable[Number] | None,
    deltas: Iterable[Number] | None,
) -> list[Claim]:
    """Spell out an event, a pure epsilon or a function delta(epsilon) as single claims."""
    asked = None if epsilons is None else [_epsilon(value) for value in epsilons]
    if isinstance(claimed, Event):
        found = _of_event(claimed, relation, asked, deltas)
    elif deltas is not None:
        raise InvalidParameter("deltas ask an event for its epsilon: name an event, or say epsilons instead")
    elif callable(claimed):
        points = _USUAL if asked is None else asked
        found = [Claim(DivergenceMeasure.DELTA, at, probability(claimed(at), name="claim")) for at in points]
    else:
        found = [Claim(DivergenceMeasure.EPSILON, Fraction(0), _epsilon(claimed))]
    if not found:
        raise InvalidParameter("nothing is claimed here: name epsilons, deltas or another claim")
    return found


def _of_event(
    event: Event, relation: Relation, asked: list[Fraction] | None, deltas: Iterable[Number] | None
) -> list[Claim]:
    from discreet.privacy import delta, epsilon

    pure = epsilon(event, 0, relation=relation)
    found = [] if math.isinf(pure) else [Claim(DivergenceMeasure.EPSILON, Fraction(0), _epsilon(Fraction(pure)))]
    points = asked
    if points is None and deltas is None:
        points = _epsilons_of(event, pure)
    for at in points or ():
        found.append(Claim(DivergenceMeasure.DELTA, at, Fraction(delta(event, at, relation=relation))))
    for chance in deltas or ():
        value = probability(chance, name="delta")
        least = epsilon(event, value, relation=relation)
        if not math.isinf(least):
            found.append(Claim(DivergenceMeasure.DELTA, _epsilon(Fraction(least)), value))
    return found


def _epsilons_of(event: Event, pure: float) -> list[Fraction]:
    """Choose where to look at the profile: below a pure epsilon, at the epsilon named, or as usual."""
    if not math.isinf(pure):
        return [Fraction(pure) * part for part in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))]
    return [event.epsilon] if isinstance(event, ApproxDP) else list(_USUAL)


def renyi_claims(
    claimed: Event | Callable[[Fraction], Number], *, orders: Iterable[Number], relation: Relation
) -> list[Claim]:
    """Spell out an event, or a function of the order, as one claim per order."""
    asked = [_order(value) for value in orders]
    if not asked:
        raise InvalidParameter("orders must name at least one order above 1")
    if not isinstance(claimed, Event):
        return [Claim(DivergenceMeasure.RENYI, at, nonnegative(claimed(at), name="claim")) for at in asked]
    from discreet.privacy import renyi

    values = [(at, renyi(claimed, at, relation=relation)) for at in asked]
    found = [Claim(DivergenceMeasure.RENYI, at, Fraction(value)) for at, value in values if not math.isinf(value)]
    if not found:
        raise InvalidParameter("this event claims no finite Renyi divergence at these orders")
    return found


def _epsilon(value: Number) -> Fraction:
    number = nonnegative(value, name="epsilon")
    if number > _LARGEST:
        raise InvalidParameter(f"an epsilon above {_LARGEST} claims nothing")
    return number


def _order(value: Number) -> Fraction:
    number = exact(value, name="order")
    if number <= 1:
        raise InvalidParameter("an order must be above 1")
    return number


# --- report: What a verification found, in numbers and in words that promise no more than was done. ---


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

    __repr__ = __str__


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

    __repr__ = __str__

    def _repr_html_(self) -> str:
        told = f"<p><b>{words(self.headline)}</b><br>{words(self.scope)}</p>"
        heads = ("what", "claimed", "at least", "at most", "verdict")
        return told + grid(map(_row, self.findings), heads, right=(False, True, True, True, False))


def _rank(finding: Finding) -> tuple[bool, bool, bool, float]:
    """Violations first, then what is open; of equals the pure epsilon, which people know, then the tightest."""
    claimed = float(finding.claim.value)
    tightness = float(finding.lower) / claimed if claimed else 0.0
    pure = finding.claim.measure is DivergenceMeasure.EPSILON
    return finding.violated, not finding.holds, pure, tightness


def _row(finding: Finding) -> tuple[str, ...]:
    return (
        str(finding.claim),
        _short(finding.claim.value),
        _short(finding.lower),
        _short(finding.upper),
        finding.verdict,
    )


def _short(value: Real) -> str:
    return "infinity" if math.isinf(value) else f"{float(value):.6g}"
