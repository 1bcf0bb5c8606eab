"""Look for an event that one law favours more than the claim admits. What is found here is tested on fresh samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.audit.claimed import ClaimedCurve
from discreet.audit.encoding import OutputEncoder, encoder_of
from discreet.audit.limits import MOST_EPSILON
from discreet.audit.outputs import Outputs
from discreet.audit.scorers import Scorer, Scores, scorers

__all__ = ["OutputEvent", "Suspicion", "suspicions"]

_SURE = 4.0  # Standard errors by which a probability is lowered or raised where the largest epsilon is looked for.


@final
@dataclass(frozen=True, slots=True)
class OutputEvent:
    """A set of outputs: those whose score is at least a threshold."""

    encoder: OutputEncoder
    scorer: Scorer
    threshold: float

    def count(self, outputs: Outputs) -> int:
        """Count the outputs in it."""
        return int(np.count_nonzero(self.scorer(self.encoder.sample(outputs)) >= self.threshold))

    @property
    def text(self) -> str:
        return self.scorer.text


@final
@dataclass(frozen=True, slots=True)
class Suspicion:
    """An event, the epsilon at which it seems to break the claim, and by how many standard errors."""

    event: OutputEvent
    epsilon: float
    delta: float
    strength: float


def suspicions(one: Outputs, other: Outputs, curve: ClaimedCurve) -> tuple[Suspicion, Suspicion]:
    """Return the event that most surely breaks the claim, and the one that shows the largest epsilon."""
    encoder = encoder_of(one, other)
    ones, others = encoder.sample(one), encoder.sample(other)
    tails = [_Tails.of(scorer, scorer(ones), scorer(others)) for scorer in scorers(encoder, ones, others)]
    broken = max((_breaking(encoder, tail, curve) for tail in tails), key=lambda found: found.strength)
    largest = max((_telling(encoder, tail, curve) for tail in tails), key=lambda found: found.strength)
    return broken, largest


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Tails:
    """How often each law reaches every threshold; the second is smoothed, so that no zero is believed."""

    scorer: Scorer
    thresholds: Scores
    p: Scores
    q: Scores
    runs: int

    @classmethod
    def of(cls, scorer: Scorer, ones: Scores, others: Scores) -> _Tails:
        thresholds, runs = np.unique(np.concatenate([ones, others])), len(ones)
        here = runs - np.searchsorted(np.sort(ones), thresholds, side="left")
        there = runs - np.searchsorted(np.sort(others), thresholds, side="left")
        return cls(
            scorer, thresholds, np.asarray(here / runs), np.asarray((there + 1.0) / (runs + 2.0), np.float64), runs
        )


def _breaking(encoder: OutputEncoder, tails: _Tails, curve: ClaimedCurve) -> Suspicion:
    """Try every threshold and every point of the claim, and count standard errors."""
    p, q, weights = tails.p, tails.q, np.exp(np.minimum(curve.epsilons, MOST_EPSILON))[:, None]
    excess = p - weights * q - curve.deltas[:, None]
    error = np.sqrt((p * (1 - p) + 1.0 / tails.runs + weights**2 * q * (1 - q)) / tails.runs)
    strength = excess / error
    point, place = np.unravel_index(int(np.argmax(strength)), strength.shape)
    event = OutputEvent(encoder, tails.scorer, float(tails.thresholds[place]))
    return Suspicion(event, float(curve.epsilons[point]), float(curve.deltas[point]), float(strength[point, place]))


def _telling(encoder: OutputEncoder, tails: _Tails, curve: ClaimedCurve) -> Suspicion:
    """Try every threshold for the largest epsilon at the delta that people quote."""
    epsilon, delta = curve.stated
    low = tails.p - _SURE * np.sqrt((tails.p * (1 - tails.p) + 1.0 / tails.runs) / tails.runs) - delta
    high = tails.q + _SURE * np.sqrt((tails.q * (1 - tails.q) + 1.0 / tails.runs) / tails.runs)
    ratio = np.log(np.maximum(low, 1e-300) / high)
    place = int(np.argmax(ratio))
    return Suspicion(
        OutputEvent(encoder, tails.scorer, float(tails.thresholds[place])), epsilon, delta, float(ratio[place])
    )
