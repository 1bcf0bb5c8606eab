"""Confidence limits of an audit: how often something happens, at most and at least, against a claimed curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative, probability, up
from discreet.lab.audit.output_features import (
    OutputEncoder,
    Sample,
    Scorer,
    Scores,
    alike,
    encoder_of,
    outputs_of,
    scorers,
)
from discreet.privacy import guarantee
from discreet.privacy.events import ApproxDP, Event, PureDP
from discreet.privacy.relation import Relation

__all__ = [
    "MOST_EPSILON",
    "Claimed",
    "ClaimedCurve",
    "at_least",
    "at_most",
    "hockey_stick_at_least",
    "read_claim",
    "renyi_at_least",
]

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
        raise InvalidParameter("`runs` must be at least 1, and `seen` between 0 and `runs`")
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


# --- divergence_tests ---
# Two more ways to bound a divergence from below: by a classifier's accuracy, and by a function of outputs.
#
# Both learn on one half of the samples and are tested on the other.


_CAPS = (0.25, 0.5, 1.0, 2.0, 3.0)


def hockey_stick_at_least(one: Sequence[Any], other: Sequence[Any], *, epsilon: float, error: float) -> float:
    """Return a delta at `epsilon` that the pair exceeds, but for a chance of `error`.

    Theorem     For any set S that was chosen beforehand, δ(ε) is at least P(S) - e^ε Q(S). Shares of N samples are off
                by more than √(ln(1/error) / 2N) with probability `error` at most (Hoeffding). [KMRS24]

    Args:
        one: Independent outputs on one data set, at least four.
        other: As many independent outputs on a neighbour of it.
        epsilon: The epsilon of the divergence.
        error: The chance at most with which the returned number is too large.

    Returns:
        The delta; below 0 where nothing is shown.

    Raises:
        InvalidParameter: If there are too few outputs, or not as many of each.

    Examples:
        >>> shown = dp.audit.hockey_stick_at_least([0] * 1000, [1] * 1000, epsilon=1, error=1e-3)
        >>> 0.5 < shown < 1
        True
    """
    test = _Test.learnt(one, other)
    cut = _cut(test.learnt_scores[0], test.learnt_scores[1], epsilon)
    here, there = test.fresh_scores
    slack = _slack(len(here), error)
    first, second = float(np.mean(here >= cut)) - slack, float(np.mean(there >= cut)) + slack
    return first - exp(min(epsilon, MOST_EPSILON)) * second


def renyi_at_least(one: Sequence[Any], other: Sequence[Any], *, order: float, error: float) -> float:
    """Return a Renyi divergence of an order that the pair exceeds, but for a chance of `error`.

    Theorem     For any function h of outputs with |h| at most c, the divergence is at least
                order/(order-1) ln E_P e^((order-1) h) - ln E_Q e^(order h). Means of N numbers from e^-b to e^b are off
                by more than (e^b - e^-b) √(ln(1/error) / 2N) with probability `error` at most. [BDKBW21]

    Args:
        one: Independent outputs on one data set, at least four.
        other: As many independent outputs on a neighbour of it.
        order: The order of the divergence, above 1.
        error: The chance at most with which the returned number is too large.

    Returns:
        The divergence.

    Raises:
        InvalidParameter: If the order is not above 1, or there are too few outputs, or not as many of each.

    Examples:
        >>> dp.audit.renyi_at_least([0] * 1000, [1] * 1000, order=2, error=1e-3) > 1
        True
    """
    if not order > 1:
        raise InvalidParameter("order must be above 1")
    test = _Test.learnt(one, other)
    known = test.learnt_scores
    middle = float(np.median(np.concatenate(known)))

    def shown(scores: tuple[Scores, Scores], cap: float) -> float:
        here, there = (_witness(part, middle, cap) for part in scores)
        return _renyi(here, there, order, cap, error)

    cap = max(_CAPS, key=lambda cap: shown(known, cap))
    return shown(test.fresh_scores, cap)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Test:
    """The scores of both halves, by the scorer that the first half taught."""

    learnt_scores: tuple[Scores, Scores]
    fresh_scores: tuple[Scores, Scores]

    @classmethod
    def learnt(cls, one: Sequence[Any], other: Sequence[Any]) -> _Test:
        if len(one) != len(other) or len(one) < 4:
            raise InvalidParameter("there must be two samples of the same size, of at least four outputs")
        half, read = len(one) // 2, alike(outputs_of(one), outputs_of(other))
        encoder = encoder_of(*(sample[:half] for sample in read))
        learnt, fresh = ([encoder.sample(sample[part]) for sample in read] for part in _halves(half))
        scorer = _best_scorer(encoder, *learnt)
        return cls((scorer(learnt[0]), scorer(learnt[1])), (scorer(fresh[0]), scorer(fresh[1])))


def _slack(size: int, error: float) -> float:
    """Return how far a share of so many outputs is off, at most, but for a chance.

    There are two shares; and whether outputs are rows or listed, all of them decide, also those that test.
    """
    if not 0 < error < 1:
        raise InvalidParameter("error must be a probability between 0 and 1")
    return sqrt(log(4 / error) / (2 * size))


def _halves(half: int) -> tuple[slice, slice]:
    return slice(half), slice(half, None)


def _renyi(here: Scores, there: Scores, order: float, cap: float, error: float) -> float:
    up, down = (order - 1) * cap, order * cap
    slack = _slack(len(here), error)
    first = float(np.mean(np.exp((order - 1) * here))) - (exp(up) - exp(-up)) * slack
    second = float(np.mean(np.exp(order * there))) + (exp(down) - exp(-down)) * slack
    return order / (order - 1) * log(first) - log(second) if first > 0 else 0.0


def _witness(scores: Scores, middle: float, cap: float) -> Scores:
    """Turn a score into a bounded witness: its sign against the middle, times the cap."""
    return np.sign(scores - middle) * cap


def _best_scorer(encoder: OutputEncoder, ones: Sample, others: Sample) -> Scorer:
    """Return the scorer whose ranks tell the learnt halves apart best."""
    return max(scorers(encoder, ones, others), key=lambda scorer: _area(scorer(ones), scorer(others)))


def _area(ones: Scores, others: Scores) -> float:
    """The chance that an output of the first law scores above one of the second, ties halved."""
    ordered = np.sort(others)
    below, reached = np.searchsorted(ordered, ones, "left"), np.searchsorted(ordered, ones, "right")
    return float(np.mean(below + reached)) / (2 * len(ordered))


def _cut(ones: Scores, others: Scores, epsilon: float) -> float:
    """Return the threshold that shows the largest hockey-stick divergence in the learnt half."""
    thresholds = np.unique(np.concatenate([ones, others]))
    here = len(ones) - np.searchsorted(np.sort(ones), thresholds, "left")
    there = len(others) - np.searchsorted(np.sort(others), thresholds, "left")
    return float(thresholds[int(np.argmax(here / len(ones) - exp(min(epsilon, MOST_EPSILON)) * there / len(others)))])
