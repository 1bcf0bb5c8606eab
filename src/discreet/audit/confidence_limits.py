"""Confidence limits of an audit: how often something happens, at most and at least, against a claimed curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative, probability, up
from discreet.privacy import guarantee
from discreet.privacy.events import ApproxDP, Event, PureDP
from discreet.privacy.relation import Relation

__all__ = ["MOST_EPSILON", "Claimed", "ClaimedCurve", "at_least", "at_most", "read_claim"]

# --- limits: How often something happens, at most and at least, from how often it was seen to happen. ---


MOST_EPSILON = 300.0  # Its square is still a float; and nothing rarer than one in e^300 is ever seen.


def at_least(seen: int, runs: int, error: float) -> float:
    """Return the lower Clopper-Pearson limit: it is above the truth with probability `error` at most. [CP34]"""
    from scipy.special import betaincinv

    _check(seen, runs, error)
    return 0.0 if seen == 0 else float(betaincinv(seen, runs - seen + 1, error))


def at_most(seen: int, runs: int, error: float) -> float:
    """Return the upper Clopper-Pearson limit: it is below the truth with probability `error` at most. [CP34]"""
    from scipy.special import betainccinv

    _check(seen, runs, error)
    return 1.0 if seen == runs else float(betainccinv(seen + 1, runs - seen, error))


def _check(seen: int, runs: int, error: float) -> None:
    if not 0 <= seen <= runs or runs < 1:
        raise InvalidParameter("what was seen must be between nothing and all of at least one run")
    if not 0 < error < 1:
        raise InvalidParameter("error must be a probability between 0 and 1")


# --- claimed: What is claimed, as a curve: for each epsilon the largest delta that the claim admits, rounded up. ---


Claimed: TypeAlias = Event | Number | tuple[Number, Number] | Callable[[float], float]
_DELTAS = (Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000), Fraction(1, 10**4), Fraction(1, 10**6))
_PARTS = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClaimedCurve:
    """Points of a privacy profile. An audit looks for an event that breaks any of them."""

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]
    text: str

    @property
    def stated(self) -> tuple[float, float]:
        """The point that people would quote: the one of the smallest delta."""
        place = int(np.lexsort((self.epsilons, self.deltas))[0])
        return float(self.epsilons[place]), float(self.deltas[place])


def read_claim(claim: Claimed, relation: Relation | None) -> ClaimedCurve:
    """Read an event, a pure epsilon, a pair of epsilon and delta, or a function from epsilon to delta."""
    if isinstance(claim, tuple):
        epsilon, delta = claim
        return _points(ApproxDP(exact(epsilon, name="epsilon"), probability(delta, name="delta")), relation)
    if isinstance(claim, Event):
        return _points(claim, relation)
    if callable(claim):
        return _called(claim)
    return _points(PureDP(nonnegative(claim, name="epsilon")), relation)


def _points(event: Event, relation: Relation | None) -> ClaimedCurve:
    """Take the epsilons of some deltas, and parts of the largest of them."""
    epsilons, own = {Fraction(0)}, getattr(event, "delta", Fraction(0))
    for delta in {Fraction(0), own, *_DELTAS}:
        found = guarantee.epsilon(event, delta, relation=relation)
        if np.isfinite(found):
            epsilons.update(part * Fraction(found) for part in _PARTS)
    listed = sorted(epsilons)
    deltas = [guarantee.delta(event, epsilon, relation=relation) for epsilon in listed]
    return ClaimedCurve(np.array([up(one) for one in listed]), np.array(deltas), repr(event))


def _called(claim: Callable[[float], float]) -> ClaimedCurve:
    epsilons = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
    deltas = np.array([float(claim(float(epsilon))) for epsilon in epsilons])
    if not np.all((deltas >= 0) & (deltas <= 1)):
        raise InvalidParameter("a claim must return a delta between 0 and 1 for every epsilon")
    return ClaimedCurve(epsilons, deltas, "a function of epsilon")
