"""Compare what a mechanism claims with what all pairs of neighbours in a small world say."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.verify import hockey_stick, max_divergence, renyi
from discreet.verify.claim import Claim, Claimed, DivergenceMeasure, claims, renyi_claims
from discreet.verify.enclosure import Enclosure
from discreet.verify.laws import Lawful, OutputLaw, align, laws
from discreet.verify.report import Finding, Verification
from discreet.verify.small_worlds import World, Worlds, as_worlds, neighbours

__all__ = ["SLACK", "check", "check_renyi"]

SLACK = Fraction(1, 2**64)  # Less than anyone will see happen.
_BITS = (128, 256, 512)
_READ_BACKWARDS = 4  # Data sets.

AnyWorlds: TypeAlias = Worlds | Iterable[Sequence[Hashable]]
_Pairs: TypeAlias = Sequence[tuple[OutputLaw, OutputLaw]]
_EXAMINE: Mapping[DivergenceMeasure, Callable[[_Pairs, Claim, Fraction], Enclosure]] = {
    DivergenceMeasure.EPSILON: max_divergence.examine_max_divergence,
    DivergenceMeasure.DELTA: hockey_stick.examine_hockey_stick,
    DivergenceMeasure.RENYI: renyi.examine_renyi,
}


def check(
    mechanism: Lawful,
    worlds: AnyWorlds,
    *,
    relation: Relation | None = None,
    claim: Claimed | None = None,
    epsilons: Iterable[Number] | None = None,
    deltas: Iterable[Number] | None = None,
    query: Callable[[World], Any] | None = None,
    slack: Number = SLACK,
) -> Verification:
    """Compare (epsilon, delta) claims with all pairs of neighbours in a small world.

    The claim is the mechanism's `event`, or `claim`: another event, a pure epsilon, or a function of epsilon
    that returns delta. Pure claims are compared with the largest log-ratio; all others, and the profile of an
    event below its pure epsilon, with the hockey-stick divergence at `epsilons`, or at the epsilons that the
    event has for `deltas`. `query` turns a data set into what `distribution` takes, if that is another thing.
    """
    between = _relation(mechanism, relation, claim)
    asked = claims(_claim(mechanism, claim), relation=between, epsilons=epsilons, deltas=deltas)
    return _verify(mechanism, worlds, between, asked, query, positive(slack, name="slack"))


def check_renyi(
    mechanism: Lawful,
    worlds: AnyWorlds,
    *,
    orders: Iterable[Number],
    relation: Relation | None = None,
    claim: Event | Callable[[Fraction], Number] | None = None,
    query: Callable[[World], Any] | None = None,
    slack: Number = SLACK,
) -> Verification:
    """Compare Renyi claims with all pairs of neighbours; a `claim` may also be a function of the order."""
    between = _relation(mechanism, relation, claim)
    claimed = _claim(mechanism, claim)
    if not isinstance(claimed, Event) and not callable(claimed):
        raise InvalidParameter("a Renyi claim must be an event or a function of the order")
    asked = renyi_claims(claimed, orders=orders, relation=between)
    return _verify(mechanism, worlds, between, asked, query, positive(slack, name="slack"))


def _relation(mechanism: Lawful, asked: Relation | None, claim: object) -> Relation:
    """Take the relation of the caller or of the mechanism; a mechanism claims nothing under another one."""
    own = getattr(mechanism, "relation", None)
    relation = own if asked is None else asked
    if not isinstance(relation, Relation):
        raise InvalidParameter("say relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE")
    if claim is None and own is not None and own is not relation:
        raise InvalidParameter(f"this mechanism claims nothing under {relation.name}: say claim=… as well")
    return relation


def _claim(mechanism: Lawful, claim: Claimed | None) -> Claimed:
    claimed: Claimed | None = getattr(mechanism, "event", None) if claim is None else claim
    if claimed is None:
        raise InvalidParameter("this mechanism has no event: say claim=…")
    return claimed


def _verify(
    mechanism: Lawful,
    worlds: AnyWorlds,
    relation: Relation,
    asked: Sequence[Claim],
    query: Callable[[World], Any] | None,
    slack: Fraction,
) -> Verification:
    """Examine each claim, with more bits while one is neither within its bound nor broken."""
    found = as_worlds(worlds, symmetric=getattr(mechanism, "symmetric", None))
    pairs = neighbours(found, relation)
    ask: Callable[[World], Any] = (lambda world: world) if query is None else query
    if not found.ordered and not hasattr(mechanism, "symmetric"):
        _refuse_order(mechanism, found, ask)
    inputs = [ask(world) for world in found]
    done: dict[Claim, Finding] = {}
    for bits in _BITS:
        left = [claim for claim in asked if claim not in done or done[claim].verdict == "open"]
        if left:
            known, used = laws(mechanism, inputs, bits=bits), bits
            done |= {claim: _finding(claim, found, pairs, known, slack, bits) for claim in left}
    findings = tuple(done[claim] for claim in asked)
    return Verification(findings, relation, len(found), len(pairs), slack, used)


def _refuse_order(mechanism: Lawful, found: Worlds, ask: Callable[[World], Any]) -> None:
    """Refuse a mechanism that looks at the order of records; multisets would hide what it tells.

    A few data sets read backwards show it. It is a guard against a slip, not a search.
    """
    turned = [world for world in found if world[::-1] != world][-_READ_BACKWARDS:]
    for world in turned:
        known = laws(mechanism, [ask(world), ask(world[::-1])], bits=_BITS[0])
        with precision(_BITS[0]):
            if hockey_stick.sharp_hockey_stick(align(*known), ball(1)).lower > 0:
                raise InvalidParameter("this mechanism depends on the order of records: say ordered=True")


def _finding(
    claim: Claim,
    worlds: Worlds,
    pairs: Sequence[tuple[int, int]],
    known: Sequence[OutputLaw],
    slack: Fraction,
    bits: int,
) -> Finding:
    # Pairs of data sets with the same two laws say the same: the first of each kind is examined.
    kinds: dict[tuple[int, int], tuple[int, int]] = {}
    for one, other in pairs:
        kinds.setdefault((id(known[one]), id(known[other])), (one, other))
    examples = list(kinds.values())
    with precision(bits):
        result = _EXAMINE[claim.measure]([(known[one], known[other]) for one, other in examples], claim, slack)
    one, other = examples[result.pair]
    pair = worlds.data_sets[one], worlds.data_sets[other]
    return Finding(claim, result.lower, result.upper, pair, slack)
