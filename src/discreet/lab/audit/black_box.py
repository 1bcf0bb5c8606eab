"""Black-box audit: run a mechanism on neighbours, search an event that tells them apart, test it afresh.

Theorem     If outputs S have P(S) > e^ε Q(S) + δ for two neighbours, no (ε, δ) claim holds. The event is chosen on one
            half of the runs and tested on the other, with exact binomial limits, each wrong with probability at most
            level / tests: a claim that holds is refuted with probability `level` at most, over all tests together.
            [CP34]
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.lab.audit.confidence_limits import MOST_EPSILON, Claimed, ClaimedCurve, at_least, at_most, read_claim
from discreet.lab.audit.output_features import (
    OutputEncoder,
    Outputs,
    Scorer,
    Scores,
    alike,
    encoder_of,
    outputs_of,
    scorers,
)
from discreet.lab.verify.small_worlds import Worlds, neighbours
from discreet.pages.progress import working
from discreet.privacy.relation import Relation, read_relation_if_any

__all__ = ["Audit", "AuditFinding", "Mechanism", "OutputEvent", "Suspicion", "audit", "suspicions"]

Mechanism: TypeAlias = Callable[..., Any]  # of a data set; or, with many=True, of a data set and a number of runs
Pair: TypeAlias = tuple[Any, Any]
Run: TypeAlias = Callable[[Any, int], Outputs]
_PILOT = 0.1  # Part of the runs with which a pair is tried, before the kept ones are chosen;
_SEARCH = 5  # of many pairs less, so that the search takes about so many times the runs of a pair.
_LEAST_RUNS = 40


@working("auditing", terminal=False)
def audit(
    mechanism: Mechanism,
    pairs: Worlds | Iterable[Pair],
    *,
    claim: Claimed,
    relation: Relation | str | None = None,
    runs: int = 20_000,
    kept: int = 2,
    level: float = 1e-3,
    many: bool = False,
) -> Audit:
    """Look for a pair of neighbours and an event that break a claim, with `runs` runs for each data set of a kept pair.

    `pairs` may be a small world (`verify.worlds`), which stands for all its neighbours under `relation`. A few runs of
    every pair, in both orders, choose the `kept` ones; half of their own runs choose the event, the other half tests
    it. With `many`, the mechanism takes a number of runs as well, and returns as many independent outputs: much
    quicker, and the caller's promise.

    Args:
        mechanism: The function from a data set to an output; with `many`, from a data set and a number to outputs.
        pairs: The pairs of neighbours to try, made up: the report names the worst; or a small world.
        claim: What is claimed: a pure epsilon, a pair (epsilon, delta), an event, or a function from epsilon to delta.
        relation: The neighbouring relation, for a small world and for an event that needs one.
        runs: How often the mechanism is run on each data set of a kept pair.
        kept: How many pairs are looked at closely.
        level: The chance at most with which a claim that holds is refuted.
        many: Whether the mechanism makes many outputs at once.

    Returns:
        What was shown, with `refuted`, the worst pair and the event; it prints as a report.

    Raises:
        InvalidParameter: If there are no pairs, or a number is out of range.

    Examples:
        >>> result = dp.audit.audit(len, [((), (1,)), ((1,), (1, 1))], claim=1, runs=1000)
        >>> result.refuted  # The exact length is not private.
        True
    """
    relation = read_relation_if_any(relation)
    begun = time.perf_counter()
    listed = _listed(pairs, relation)
    _check(listed, runs, kept, level)
    curve = read_claim(claim, relation)
    run = _runner(mechanism, many)
    chosen = _promising(run, listed, curve, _pilot(runs, len(listed)), kept)
    # Two orders, two events each; and whether outputs are rows or listed, all of them decide, also those that test.
    error = level / (8 * len(chosen))
    findings = [finding for pair in chosen for finding in _tested(run, pair, curve, runs, error)]
    return Audit(
        claim=curve.text,
        stated=curve.stated,
        findings=tuple(findings),
        pairs_searched=len(listed),
        level=level,
        seconds=time.perf_counter() - begun,
    )


def _listed(pairs: Worlds | Iterable[Pair], relation: Relation | None) -> list[Any]:
    """List pairs of neighbours, each in one order: the other one is tried as well."""
    if not isinstance(pairs, Worlds):
        return [tuple(pair) for pair in pairs]
    if relation is None:
        raise InvalidParameter(
            "say relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE: it decides which data sets are neighbours"
        )
    places = neighbours(pairs, relation)
    return [(pairs.data_sets[one], pairs.data_sets[other]) for one, other in places if one < other]


def _pilot(runs: int, pairs: int) -> int:
    return max(_LEAST_RUNS, min(int(_PILOT * runs), _SEARCH * runs // max(1, pairs)))


def _check(pairs: Sequence[Any], runs: int, kept: int, level: float) -> None:
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidParameter("pairs must be at least one pair of neighbouring data sets")
    if runs < 2 * _LEAST_RUNS:
        raise InvalidParameter(f"runs must be at least {2 * _LEAST_RUNS}: fewer show nothing")
    if kept < 1:
        raise InvalidParameter("`kept`, the number of pairs that are tested, must be at least 1")
    if not 0 < level < 1:
        raise InvalidParameter("level must be a probability between 0 and 1")


def _promising(run: Run, pairs: Sequence[Any], curve: ClaimedCurve, runs: int, kept: int) -> list[Any]:
    """Return the pairs that a few runs tell apart best, in either order."""
    if len(pairs) <= kept:
        return list(pairs)
    ranked = sorted(pairs, key=lambda pair: -_strength(run, pair, curve, runs))
    return ranked[:kept]


def _strength(run: Run, pair: Pair, curve: ClaimedCurve, runs: int) -> float:
    one, other = alike(*(run(data, runs) for data in pair))
    return max(suspicions(one, other, curve)[0].strength, suspicions(other, one, curve)[0].strength)


def _tested(run: Run, pair: Pair, curve: ClaimedCurve, runs: int, error: float) -> Iterable[AuditFinding]:
    """Choose an event for each order of a pair on one half, and test it on the other."""
    one, other = pair
    half = runs // 2
    first, second, fresh_first, fresh_second = alike(
        *(run(data, half) for data in pair), *(run(data, runs - half) for data in pair)
    )
    for suspicion in suspicions(first, second, curve):
        yield _finding((one, other), suspicion, fresh_first, fresh_second, error)
    for suspicion in suspicions(second, first, curve):
        yield _finding((other, one), suspicion, fresh_second, fresh_first, error)


def _finding(pair: Pair, suspicion: Suspicion, first: Outputs, second: Outputs, error: float) -> AuditFinding:
    return AuditFinding(
        pair=pair,
        event=suspicion.event.text,
        epsilon=suspicion.epsilon,
        delta=suspicion.delta,
        hits=suspicion.event.count(first),
        misses=suspicion.event.count(second),
        runs=len(first),
        error=error,
    )


def _runner(mechanism: Mechanism, many: bool) -> Run:
    def run(data: Any, runs: int) -> Outputs:
        outputs = outputs_of(mechanism(data, runs) if many else [mechanism(data) for _ in range(runs)])
        if len(outputs) != runs:
            raise InvalidParameter("with many=True a mechanism returns as many outputs as it was asked for")
        return outputs

    return run


# --- search ---
# Look for an event that one law favours more than the claim admits. What is found here is tested on fresh samples.


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
    tails = [_AuditTails.of(scorer, scorer(ones), scorer(others)) for scorer in scorers(encoder, ones, others)]
    broken = max((_breaking(encoder, tail, curve) for tail in tails), key=lambda found: found.strength)
    largest = max((_telling(encoder, tail, curve) for tail in tails), key=lambda found: found.strength)
    return broken, largest


@final
@dataclass(frozen=True, slots=True, eq=False)
class _AuditTails:
    """How often each law reaches every threshold; the second is smoothed, so that no zero is believed."""

    scorer: Scorer
    thresholds: Scores
    p: Scores
    q: Scores
    runs: int

    @classmethod
    def of(cls, scorer: Scorer, ones: Scores, others: Scores) -> _AuditTails:
        thresholds, runs = np.unique(np.concatenate([ones, others])), len(ones)
        here = runs - np.searchsorted(np.sort(ones), thresholds, side="left")
        there = runs - np.searchsorted(np.sort(others), thresholds, side="left")
        return cls(
            scorer, thresholds, np.asarray(here / runs), np.asarray((there + 1.0) / (runs + 2.0), np.float64), runs
        )


def _breaking(encoder: OutputEncoder, tails: _AuditTails, curve: ClaimedCurve) -> Suspicion:
    """Try every threshold and every point of the claim, and count standard errors."""
    p, q, weights = tails.p, tails.q, np.exp(np.minimum(curve.epsilons, MOST_EPSILON))[:, None]
    excess = p - weights * q - curve.deltas[:, None]
    error = np.sqrt((p * (1 - p) + 1.0 / tails.runs + weights**2 * q * (1 - q)) / tails.runs)
    strength = excess / error
    point, place = np.unravel_index(int(np.argmax(strength)), strength.shape)
    event = OutputEvent(encoder, tails.scorer, float(tails.thresholds[place]))
    return Suspicion(event, float(curve.epsilons[point]), float(curve.deltas[point]), float(strength[point, place]))


def _telling(encoder: OutputEncoder, tails: _AuditTails, curve: ClaimedCurve) -> Suspicion:
    """Try every threshold for the largest epsilon at the delta that people quote."""
    epsilon, delta = curve.stated
    low = tails.p - _SURE * np.sqrt((tails.p * (1 - tails.p) + 1.0 / tails.runs) / tails.runs) - delta
    high = tails.q + _SURE * np.sqrt((tails.q * (1 - tails.q) + 1.0 / tails.runs) / tails.runs)
    ratio = np.log(np.maximum(low, 1e-300) / high)
    place = int(np.argmax(ratio))
    return Suspicion(
        OutputEvent(encoder, tails.scorer, float(tails.thresholds[place])), epsilon, delta, float(ratio[place])
    )


# --- findings: What an audit found: a claim, what was measured, and words that promise no more than was done. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One event on one ordered pair of neighbours: how often each law hits it, on samples that did not choose it."""

    pair: tuple[Any, Any]
    event: str
    epsilon: float  # the point of the claim that was tested
    delta: float
    hits: int  # of the first data set
    misses: int  # hits of the second data set
    runs: int  # of each
    error: float  # the probability with which these limits may be wrong

    @property
    def p_at_least(self) -> float:
        return at_least(self.hits, self.runs, self.error / 2)

    @property
    def q_at_most(self) -> float:
        return at_most(self.misses, self.runs, self.error / 2)

    @property
    def delta_at_least(self) -> float:
        """How large delta is at the tested epsilon, at least."""
        return self.p_at_least - math.exp(min(self.epsilon, MOST_EPSILON)) * self.q_at_most

    def epsilon_at_least(self, delta: float) -> float:
        """How large epsilon is at a delta, at least; 0 if nothing follows."""
        above = self.p_at_least - delta
        return max(0.0, math.log(above / self.q_at_most)) if above > 0 else 0.0

    @property
    def refutes(self) -> bool:
        """Whether this event breaks the claim."""
        return self.delta_at_least > self.delta


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an audit. It can refute a claim; it can never prove one."""

    claim: str
    stated: tuple[float, float]  # epsilon and delta, as people quote the claim
    findings: tuple[AuditFinding, ...]
    pairs_searched: int
    level: float  # the probability of refuting a claim that holds, over all comparisons of this audit
    seconds: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong, but for a chance of `level`."""
        return any(finding.refutes for finding in self.findings)

    @property
    def worst(self) -> AuditFinding:
        """The finding that breaks the claim most; or, if none does, the one that shows the largest epsilon."""
        if self.refuted:
            return max(self.findings, key=lambda one: one.delta_at_least - one.delta)
        return max(self.findings, key=lambda one: one.epsilon_at_least(self.stated[1]))

    @property
    def epsilon_at_least(self) -> float:
        """The largest epsilon that was shown, at the delta of the stated claim."""
        return max(finding.epsilon_at_least(self.stated[1]) for finding in self.findings)

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        epsilon, delta = self.stated
        said = f"ε = {epsilon:.4g}" + (f", δ = {delta:.2g}" if delta else "")
        shown = f"ε ≥ {self.epsilon_at_least:.3g} shown"
        return f"REFUTED: {shown}, {said} claimed" if self.refuted else f"not refuted: {shown}, {said} claimed"

    def __str__(self) -> str:
        worst, runs = self.worst, sum(2 * finding.runs for finding in self.findings)
        lines = [
            self.headline,
            f"  worst pair: {worst.pair[0]!r} and {worst.pair[1]!r}, by {worst.event}",
            f"  seen {worst.hits} and {worst.misses} times in {worst.runs} runs each",
            f"  {self.pairs_searched} pairs searched, {runs} test runs, {self.seconds:.1f} s; a claim that holds is "
            f"refuted with probability {self.level:.0e} at most",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        worst = self.worst
        document = {
            "claim": self.claim,
            "epsilon": self.stated[0],
            "delta": self.stated[1],
            "refuted": self.refuted,
            "epsilon_at_least": self.epsilon_at_least,
            "worst_pair": [repr(data) for data in worst.pair],
            "event": worst.event,
            "runs": worst.runs,
            "hits": [worst.hits, worst.misses],
            "pairs_searched": self.pairs_searched,
            "level": self.level,
            "seconds": self.seconds,
        }
        return json.dumps(document, ensure_ascii=False)
