"""What an audit found: a claim, what was measured, and words that promise no more than was done."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, final

from discreet.audit.limits import MOST_EPSILON, at_least, at_most

__all__ = ["Audit", "AuditFinding"]


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
