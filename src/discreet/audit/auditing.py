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

from discreet.audit.claimed import Claimed, ClaimedCurve, read_claim
from discreet.audit.findings import Audit, AuditFinding
from discreet.audit.outputs import Outputs, alike, outputs_of
from discreet.audit.search import Suspicion, suspicions
from discreet.errors import InvalidParameter
from discreet.privacy.relation import Relation
from discreet.verify.small_worlds import Worlds, neighbours

__all__ = ["Mechanism", "audit"]

Mechanism: TypeAlias = Callable[..., Any]  # of a data set; or, with many=True, of a data set and a number of runs
Pair: TypeAlias = tuple[Any, Any]
Run: TypeAlias = Callable[[Any, int], Outputs]
_PILOT = 0.1  # Part of the runs with which a pair is tried, before the kept ones are chosen;
_SEARCH = 5  # of many pairs less, so that the search takes about so many times the runs of a pair.
_LEAST_RUNS = 40


def audit(
    mechanism: Mechanism,
    pairs: Worlds | Iterable[Pair],
    *,
    claim: Claimed,
    relation: Relation | None = None,
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
    """
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
        raise InvalidParameter("say relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE: a world has neighbours by it")
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
        raise InvalidParameter("kept must be 1 or more: so many pairs are tested")
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
