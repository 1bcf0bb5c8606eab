"""Compare a claim with all pairs of neighbours of a small world: hockey-stick, max and Renyi divergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, ball_down, ball_up, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, down, positive
from discreet.lab.verify.claim import Claim, Claimed, DivergenceMeasure, Finding, Verification, claims, renyi_claims
from discreet.lab.verify.laws import (
    Aligned,
    Enclosure,
    Lawful,
    OutputLaw,
    Real,
    above,
    align,
    below,
    laws,
    log_above,
    log_below,
    total,
    worst,
)
from discreet.lab.verify.small_worlds import World, Worlds, as_worlds, neighbours
from discreet.pages.progress import working
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation, read_relation_if_any

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "SLACK",
    "check",
    "check_renyi",
    "examine_hockey_stick",
    "examine_max_divergence",
    "examine_renyi",
    "sharp_hockey_stick",
    "sharp_renyi",
]

# --- max_divergence ---
# The max divergence: the least epsilon for which a pair of laws is epsilon close, with no delta. [DMNS06]
#
# Ratios of probabilities that a listing leaves out cannot be compared. So the upper end says: all ratios are at
# most e^upper but for outcomes of probability `slack` at most; the lower end is free of that.


_UP, _DOWN = 1 + 2.0**-50, 1 - 2.0**-50  # Cover the rounding of one division.


class _Ratio(NamedTuple):
    lower: float
    upper: float  # over the outcomes that both list
    apart: float  # the probability of all others, rounded up
    pair: int


def examine_max_divergence(pairs: Sequence[tuple[OutputLaw, OutputLaw]], claim: Claim, slack: Fraction) -> Enclosure:
    """Enclose the largest log-ratio of all pairs."""
    ratios = [_quick(align(*pair), index) for index, pair in enumerate(pairs)]
    top = max(ratios, key=lambda one: one.lower)
    lower = log_below(_sharp_lower(align(*pairs[top.pair]), top.lower))
    if lower > claim.value:
        return Enclosure(lower, max(lower, _upper(ratios, slack)), top.pair)
    factor = ball(claim.value).exp()
    limit, most = ball_down(factor), down(slack)
    doubtful = [one for one in ratios if one.upper > limit or one.apart > most]
    failing = [one for one in doubtful if sharp_hockey_stick(align(*pairs[one.pair]), factor).upper > slack]
    # A divergence of at most `slack` at the claimed epsilon is the claim up to the slack, whatever ratios
    # that are equal to e^epsilon look like once rounded.
    upper = _upper(failing, slack) if failing else min(claim.value, _upper(ratios, slack))
    return Enclosure(lower, max(lower, upper), top.pair)


def _upper(ratios: Sequence[_Ratio], slack: Fraction) -> Real:
    if any(one.apart > down(slack) for one in ratios):
        return float("inf")
    return log_above(max(one.upper for one in ratios))


def _quick(pair: Aligned, index: int) -> _Ratio:
    """Enclose the largest ratio in floats."""
    first, shared = pair.first, pair.shared
    upper = _largest(first.upper[shared], pair.lower[shared]) * _UP
    lower = _largest(first.lower[shared], pair.upper[shared]) * _DOWN
    alone = float(np.sum(first.lower, where=~shared))
    if alone > 0:
        lower = max(lower, alone / pair.second.tail * (1 - 2.0**-30) if pair.second.tail else float("inf"))
    apart = float(np.sum(first.upper, where=~shared)) + first.tail
    return _Ratio(lower, upper, apart * (1 + 2.0**-30), index)


def _largest(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> float:
    if not len(numerator):
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return float(np.max(np.where(numerator > 0, numerator / denominator, 0.0)))


def _sharp_lower(pair: Aligned, rough: float) -> Real:
    """Return a lower bound on the largest ratio: the most telling outcome in balls, or what is not shared."""
    shared = pair.shared
    if not shared.any():
        return _alone(pair)
    likely = np.divide(pair.first.lower, pair.upper, out=np.zeros(len(shared)), where=shared)
    here = int(np.argmax(likely))
    ratio = pair.first.masses[here] / pair.second.masses[pair.place[here]]
    return max(rough, _alone(pair), below(ratio))


def _alone(pair: Aligned) -> Real:
    """Outcomes that only the first law lists have, in the second, its tail at most, all together."""
    listed = below(total(pair.of_first(~pair.shared)))
    if listed <= 0:
        return Fraction(0)
    tail = pair.second.outcomes.tail
    return Fraction(listed) / tail if tail else float("inf")


# --- hockey_stick ---
# The hockey-stick divergence: the least delta for which a pair of laws is (epsilon, delta) close. [BBG18]
#
# H(P, Q) = sum over outcomes of max(P - e^epsilon Q, 0). What a listing leaves out of P counts in full above
# and not at all below; what Q leaves out may be anything up to its tail.


_ROUNDING = 2.0**-51  # Per outcome: two roundings of a term and one of the sum, of numbers that sum to 1.
_CLEAR = 1 - 2.0**-40  # Terms that differ by more in floats differ.


def examine_hockey_stick(pairs: Sequence[tuple[OutputLaw, OutputLaw]], claim: Claim, slack: Fraction) -> Enclosure:
    """Enclose the largest divergence of all pairs; balls are used only where floats leave the claim open."""
    factor = ball(claim.at).exp()
    ends = ball_down(factor), ball_up(factor)
    rough = [_hockey_stick_quick(align(*pair), *ends, index) for index, pair in enumerate(pairs)]
    top = worst(rough)
    if top.lower > claim.value:
        return _sharper(top, sharp_hockey_stick(align(*pairs[top.pair]), factor, top.pair))
    top = max(rough, key=lambda one: one.upper)
    doubtful = {one.pair for one in rough if one.upper > claim.value + slack} | {top.pair}
    exact = [sharp_hockey_stick(align(*pairs[index]), factor, index) for index in doubtful]
    return worst([*exact, *(one for one in rough if one.pair not in doubtful)])


def _sharper(rough: Enclosure, exact: Enclosure) -> Enclosure:
    return Enclosure(max(rough.lower, exact.lower), rough.upper, rough.pair)


def _hockey_stick_quick(pair: Aligned, least: float, most: float, index: int) -> Enclosure:
    """Enclose the divergence in floats, with the rounding of all sums added outwards."""
    margin = (len(pair.shared) + 8) * _ROUNDING
    gaps = pair.first.upper - least * pair.lower
    upper = float(np.sum(gaps, where=gaps > 0)) + pair.first.tail + margin
    gaps = pair.first.lower - most * pair.upper
    certain = float(np.sum(gaps, where=pair.shared & (gaps > 0)))
    alone = float(np.sum(pair.first.lower, where=~pair.shared)) - most * pair.second.tail
    return Enclosure(max(0.0, certain + max(0.0, alone) - margin), min(1.0, upper), index)


def sharp_hockey_stick(pair: Aligned, factor: arb, index: int = 0) -> Enclosure:
    """Enclose the divergence in balls; only terms whose sign floats leave open are looked at one by one."""
    first, second = pair.first, pair.second
    above_zero = pair.shared & (first.lower * _CLEAR > ball_up(factor) * pair.upper)
    below_zero = pair.shared & (first.upper < ball_down(factor) * pair.lower * _CLEAR)
    certain = total(pair.of_first(above_zero)) - factor * total(pair.of_second(above_zero))
    open_gaps = pair.shared & ~above_zero & ~below_zero
    doubtful = ball(0)
    for one, other in zip(pair.of_first(open_gaps), pair.of_second(open_gaps), strict=True):
        gap = one - factor * other
        if gap > 0:
            certain += gap
        else:
            doubtful += gap.max(ball(0))
    alone = total(pair.of_first(~pair.shared))
    unseen = Fraction(below(alone - factor * ball(second.outcomes.tail)))
    lower = Fraction(below(certain)) + max(Fraction(0), unseen)
    upper = Fraction(above(certain + doubtful + alone)) + first.outcomes.tail
    return Enclosure(max(Fraction(0), lower), min(Fraction(1), upper), index)


# --- renyi: The Renyi divergence of order a: log(sum of P^a Q^(1-a)) / (a - 1). [Mir17] ---
#
# As with ratios, what a listing leaves out cannot be compared: the upper end holds but for outcomes of
# probability `slack` at most; the lower end is free of that.


def examine_renyi(pairs: Sequence[tuple[OutputLaw, OutputLaw]], claim: Claim, slack: Fraction) -> Enclosure:
    """Enclose the largest divergence of all pairs."""
    return worst(sharp_renyi(align(*pair), claim.at, slack, index) for index, pair in enumerate(pairs))


def sharp_renyi(pair: Aligned, order: Fraction, slack: Fraction, index: int = 0) -> Enclosure:
    """Enclose the divergence of one pair in balls."""
    first = pair.first
    comparable = pair.shared & (first.lower > 0) & (pair.lower > 0)
    rest = ball(order - 1)
    known = ball(0)
    for p, q in zip(pair.of_first(comparable), pair.of_second(comparable), strict=True):
        known += (p / q) ** rest * p
    apart = total(pair.of_first(~comparable)) + ball(first.outcomes.tail)
    upper = log_above(above(known)) / (order - 1) if above(apart) <= slack else math.inf
    lower = log_below(_least(pair, known, rest)) / (order - 1)
    return Enclosure(lower, max(lower, upper), index)


def _least(pair: Aligned, known: arb, rest: arb) -> Real:
    """Bound the sum from below: outcomes that only the first lists are one, as likely as the tail."""
    alone = below(total(pair.of_first(~pair.shared)))
    if alone <= 0:
        return below(known)
    tail = pair.second.outcomes.tail
    if tail == 0:
        return math.inf
    merged = ball(Fraction(alone))
    return below(known + (merged / ball(tail)) ** rest * merged)


# --- checking: Compare what a mechanism claims with what all pairs of neighbours in a small world say. ---


SLACK = Fraction(1, 2**64)  # Less than anyone will see happen.
_BITS = (128, 256, 512)
_READ_BACKWARDS = 4  # Data sets.

AnyWorlds: TypeAlias = Worlds | Iterable[Sequence[Hashable]]
_Pairs: TypeAlias = Sequence[tuple[OutputLaw, OutputLaw]]
_EXAMINE: Mapping[DivergenceMeasure, Callable[[_Pairs, Claim, Fraction], Enclosure]] = {
    DivergenceMeasure.EPSILON: examine_max_divergence,
    DivergenceMeasure.DELTA: examine_hockey_stick,
    DivergenceMeasure.RENYI: examine_renyi,
}


@working("checking", terminal=False)
def check(
    mechanism: Lawful,
    worlds: AnyWorlds,
    *,
    relation: Relation | str | None = None,
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

    Args:
        mechanism: Anything with a method `distribution(data)` that returns `Outcomes`.
        worlds: The data sets to compare, such as `worlds(…)` lists them.
        relation: The neighbouring relation, if the mechanism has none of its own.
        claim: What is claimed, if not the event of the mechanism.
        epsilons: Where deltas are compared.
        deltas: For which epsilons are computed, where deltas are then compared.
        query: Turns a data set into what `distribution` takes.
        slack: By how much what was found may exceed the claim.

    Returns:
        What was found for every claim, from below and from above, with `holds`, `violated` and the worst pair.

    Raises:
        InvalidParameter: If nothing says what is claimed or which data sets are neighbours.

    Examples:
        >>> noise = dp.mechanisms.LaplaceNoise(epsilon="0.5")
        >>> count = dp.mechanisms.Count(relation=dp.Relation.ADD_REMOVE, noise=noise)
        >>> small = dp.verify.worlds([False, True], sizes=range(4))
        >>> dp.verify.check(count, small).holds
        True
        >>> dp.verify.check(count, small, claim="0.4").violated
        True
    """
    relation = read_relation_if_any(relation)
    between = _relation(mechanism, relation, claim)
    asked = claims(_claim(mechanism, claim), relation=between, epsilons=epsilons, deltas=deltas)
    return _verify(mechanism, worlds, between, asked, query, positive(slack, name="slack"))


@working("checking", terminal=False)
def check_renyi(
    mechanism: Lawful,
    worlds: AnyWorlds,
    *,
    orders: Iterable[Number],
    relation: Relation | str | None = None,
    claim: Event | Callable[[Fraction], Number] | None = None,
    query: Callable[[World], Any] | None = None,
    slack: Number = SLACK,
) -> Verification:
    """Compare Renyi claims with all pairs of neighbours; a `claim` may also be a function of the order.

    Args:
        mechanism: Anything with a method `distribution(data)` that returns `Outcomes`.
        worlds: The data sets to compare, such as `worlds(…)` lists them.
        orders: The orders at which divergences are compared.
        relation: The neighbouring relation, if the mechanism has none of its own.
        claim: What is claimed, if not the event of the mechanism.
        query: Turns a data set into what `distribution` takes.
        slack: By how much what was found may exceed the claim.

    Returns:
        What was found for every order, from below and from above, with `holds`, `violated` and the worst pair.

    Raises:
        InvalidParameter: If the claim is neither an event nor a function, or no relation is known.

    Examples:
        >>> count = dp.mechanisms.Count(relation=dp.Relation.ADD_REMOVE, noise=dp.mechanisms.GaussianNoise.for_rho(0.5))
        >>> dp.verify.check_renyi(count, dp.verify.worlds([False, True], sizes=range(3)), orders=[2, 4]).holds
        True
    """
    relation = read_relation_if_any(relation)
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
            if sharp_hockey_stick(align(*known), ball(1)).lower > 0:
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
