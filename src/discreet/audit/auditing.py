"""Try to prove a claim wrong: run a mechanism on neighbours, look for an event that tells them apart, test it afresh.

Theorem     If outputs S have P(S) > e^ε Q(S) + δ for two neighbours, no (ε, δ) claim holds. The event is chosen on one
            half of the runs and tested on the other, with exact binomial limits, each wrong with probability at most
            level / tests: a claim that holds is refuted with probability `level` at most, over all tests together.
            [CP34]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from discreet.audit.claimed import Claimed, Curve, read_claim
from discreet.audit.findings import Audit, Finding
from discreet.audit.outputs import Outputs, alike, outputs_of
from discreet.audit.search import Suspicion, suspicions
from discreet.errors import InvalidParameter
from discreet.privacy.relation import Relation

__all__ = ["Mechanism", "audit"]

Mechanism: TypeAlias = Callable[..., Any]  # of a data set; or, with many=True, of a data set and a number of runs
Pair: TypeAlias = tuple[Any, Any]
Run: TypeAlias = Callable[[Any, int], Outputs]
_PILOT = 0.1  # Part of the runs that goes into the search for the pair, and as much again into the choice of the event.
_LEAST_RUNS = 40


def audit(
    mechanism: Mechanism,
    pairs: Iterable[Pair],
    *,
    claim: Claimed,
    relation: Relation | None = None,
    runs: int = 20_000,
    kept: int = 2,
    level: float = 1e-3,
    many: bool = False,
) -> Audit:
    """Look for a pair of neighbours and an event that break a claim, with `runs` runs for each data set of a kept pair.

    Each pair is tried in both orders. A few runs of every pair choose the `kept` ones; half of what is left chooses the
    event, and the other half tests it. With `many`, the mechanism takes a number of runs as well, and returns as many
    independent outputs: much quicker, and the caller's promise.
    """
    begun = time.perf_counter()
    listed = [tuple(pair) for pair in pairs]
    _check(listed, runs, level)
    curve = read_claim(claim, relation)
    run = _runner(mechanism, many)
    chosen = _promising(run, listed, curve, max(_LEAST_RUNS, int(_PILOT * runs)), kept)
    error = level / (4 * len(chosen))  # Two orders, two events each.
    findings = [finding for pair in chosen for finding in _tested(run, pair, curve, runs, error)]
    return Audit(
        claim=curve.text,
        stated=curve.stated,
        findings=tuple(findings),
        pairs_searched=len(listed),
        level=level,
        seconds=time.perf_counter() - begun,
    )


def _check(pairs: Sequence[Any], runs: int, level: float) -> None:
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidParameter("pairs must be at least one pair of neighbouring data sets")
    if runs < 2 * _LEAST_RUNS:
        raise InvalidParameter(f"runs must be at least {2 * _LEAST_RUNS}: fewer show nothing")
    if not 0 < level < 1:
        raise InvalidParameter("level must be a probability between 0 and 1")


def _promising(run: Run, pairs: Sequence[Any], curve: Curve, runs: int, kept: int) -> list[Any]:
    """Return the pairs that a few runs tell apart best, in either order."""
    if len(pairs) <= kept:
        return list(pairs)
    ranked = sorted(pairs, key=lambda pair: -_strength(run, pair, curve, runs))
    return ranked[:kept]


def _strength(run: Run, pair: Pair, curve: Curve, runs: int) -> float:
    one, other = alike(*(run(data, runs) for data in pair))
    return max(suspicions(one, other, curve)[0].strength, suspicions(other, one, curve)[0].strength)


def _tested(run: Run, pair: Pair, curve: Curve, runs: int, error: float) -> Iterable[Finding]:
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


def _finding(pair: Pair, suspicion: Suspicion, first: Outputs, second: Outputs, error: float) -> Finding:
    return Finding(
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
