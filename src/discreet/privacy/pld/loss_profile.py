"""The privacy profile of a composition: epsilon(delta) and delta(epsilon), in both directions of neighbours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import chain
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import down, nonnegative, probability, up
from discreet.privacy.events import Event
from discreet.privacy.pld.convolution import COARSE, LOWER, UPPER, Aim, Cumulant, Goal, Sketch, compose, ever
from discreet.privacy.pld.divergence_bounds import Divergence
from discreet.privacy.pld.losses import GridLoss, all_on_grid, multiples
from discreet.privacy.pld.pairs import DominatingPair, Ticks, few
from discreet.privacy.pld.sampled_pairs import Term, has_lower_bound, lattice, pairs_of, tells_all, terms
from discreet.privacy.relation import Relation

__all__ = ["LossProfile", "at_delta", "at_epsilon", "follow", "profile"]

# --- privacy_profile ---
# The privacy profile of a composition: epsilon(delta) and delta(epsilon), each from above and from below.


_SLACKS = (1e-8, 1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.9)
_GIVEN = (1e-3, 0.03, 0.3)  # of delta


def profile(leaves: Counter[Event], relation: Relation | None) -> LossProfile:
    """Return the profile of a composition of counted leaves under `relation`.

    An event without a known dominating pair raises `UnsupportedEvent`.
    """
    if not leaves or any(count < 1 for count in leaves.values()):
        raise InvalidParameter("leaves must name at least one event, each at least once")
    return LossProfile(terms(leaves, relation))


@final
@dataclass(frozen=True, slots=True)
class LossProfile:
    """Bounds on the hockey-stick divergence of composed dominating pairs.

    Guarantee   No neighbours are easier to tell apart than the upper bounds say.
    Theorem     Domination composes, adaptively [ZDW22]; the grid dominates [DGKKM22]; the rest is in `compose`
                and `divergence`. The lower bounds hold for the dominating pairs. Some neighbours attain those, except
                for `BoundedRange`, and for noise vectors where no neighbours differ in one coordinate only.
    """

    terms: tuple[Term, ...]

    def epsilon_upper(self, delta: Fraction) -> float:
        """Return at least the smallest epsilon that goes with `delta`; infinity if there is none."""
        limit = down(probability(delta, name="delta"))
        if limit == 1 or self._tells_all:
            return 0.0 if limit == 1 else math.inf
        return max(_epsilon_upper(found, limit) for found in at_delta(self.terms, limit, UPPER))

    def epsilon_lower(self, delta: Fraction) -> float:
        """Return at most the smallest epsilon that goes with `delta`; 0 where none is known."""
        limit = up(probability(delta, name="delta"))
        if limit == 1 or self._tells_all:
            return 0.0 if limit == 1 else math.inf
        if not all(map(has_lower_bound, self.terms)):
            return 0.0
        # What holds for a larger delta holds here. It helps where delta is too small for a bound of its own.
        for larger in dict.fromkeys((limit, max(limit, 1e-9), max(limit, 1e-6))):
            epsilon = max(_epsilon_lower(found, larger) for found in at_delta(self.terms, larger, LOWER))
            if epsilon > 0:
                return epsilon
        return 0.0

    def delta_upper(self, epsilon: Fraction) -> float:
        """Return at least the smallest delta that goes with `epsilon`."""
        return self.deltas_upper([epsilon])[0]

    def deltas_upper(self, epsilons: Sequence[Fraction]) -> list[float]:
        """Return `delta_upper` of each epsilon, much faster than one by one if they are in order."""
        points = [min(down(nonnegative(epsilon, name="epsilon")), 1e300) for epsilon in epsilons]
        if self._tells_all:
            return [1.0] * len(points)
        found = zip(points, follow(self.terms, points), strict=True)
        return [max(divergence.upper(at) for divergence in divergences) for at, divergences in found]

    def delta_lower(self, epsilon: Fraction) -> float:
        """Return at most the smallest delta that goes with `epsilon`; 0 where none is known."""
        at = up(nonnegative(epsilon, name="epsilon"))
        if self._tells_all or not all(map(has_lower_bound, self.terms)):
            return 1.0 if self._tells_all else 0.0
        return max(_delta_lower(found, at) for found in at_epsilon(self.terms, min(at, 1e300), LOWER))

    @property
    def _tells_all(self) -> bool:
        return any(tells_all(term) for term in self.terms)


def _epsilon_upper(found: Divergence, delta: float) -> float:
    """Guess and test: what is returned has a proven delta, or is the largest loss there can be."""
    highest = found.top if found.infinite <= delta else math.inf
    left = delta - found.infinite - found.lost
    if left <= 0:
        return highest
    guesses = (found.epsilon_at(left * (1 - slack)) for slack in _SLACKS)
    for guess in chain(guesses, [found.lowest]):
        epsilon = max(0.0, guess)
        if found.upper(epsilon) <= delta:
            return min(epsilon, highest)
    return min(found.chernoff(left * (1 - 1e-12)), highest)


def _epsilon_lower(found: Divergence, delta: float) -> float:
    """Guess and test: what is returned has a delta that is proven to be above `delta`."""
    left = delta - found.infinite_surely
    if left < 0 or delta == 0:
        return math.inf if left < 0 else found.top * (1 - 1e-13)
    if left == 0:
        return 0.0
    given = found.surplus(found.epsilon_at(left))
    near = (_surely_above(found, left, (left + given) * (1 + slack)) for slack in _SLACKS)
    return max(*near, *(_shifted(found, left, share) for share in _GIVEN))


def _surely_above(found: Divergence, left: float, target: float) -> float:
    """Return about where delta on the grid is `target` if its true finite part is above `left` there, else 0."""
    guess = found.epsilon_at(target)
    return max(0.0, guess) if found.surely(guess) > left * (1 + 1e-12) else 0.0


def _shifted(found: Divergence, left: float, share: float) -> float:
    """Return an epsilon at which the true finite part of delta is above `left`, giving `share` of it away; else 0."""
    guess = found.epsilon_at(left * (1 + 2 * share))
    is_above = found.lower(guess) > left * (1 + share + 1e-12)
    return max(0.0, guess - found.shift(left * share)) if is_above else 0.0


def _delta_lower(found: Divergence, epsilon: float) -> float:
    """Take the better of two lower bounds."""
    small = found.lower(epsilon) * _GIVEN[0]
    far = found.lower(epsilon + found.shift(small)) - small if small else 0.0
    return min(1.0, found.infinite_surely + max(found.surely(epsilon), far * (1 - 1e-12)))


# --- account: One composition in each of its directions: with the unit present, and with the unit absent. ---


_CUT = 1e-7  # of delta, may be cut off in all steps together
_LEAST = 1e-290  # A tail below it is no float.


def at_delta(terms: tuple[Term, ...], delta: float, goal: Goal) -> list[Divergence]:
    """Compose the terms around epsilon(delta), with another aim if the first one was not good enough."""
    tail = max(delta * _CUT / sum(term.count for term in terms), _LEAST)
    aims = [_aim_at_delta(sketch, delta) for sketch in _sketches(terms, tail)]
    found = _divergences(terms, aims, tail, UPPER)
    for care in (10.0, 1000.0):
        aim, divergence = max(zip(aims, found, strict=True), key=lambda both: both[0].epsilon)
        if _hits(aim, divergence):
            break
        aims = [_again(aim, found.epsilon_at(aim.delta), care) for aim, found in zip(aims, found, strict=True)]
        found = _divergences(terms, aims, tail, UPPER)
    # An epsilon of 0 needs no finer grid to be told from one below it.
    if all(divergence.upper(0.0) <= delta for divergence in found):
        return found
    at = [divergence.epsilon_at(aim.delta) for aim, divergence in zip(aims, found, strict=True)]
    return _finely(terms, aims, found, at, tail, goal)


def _hits(aim: Aim, found: Divergence) -> bool:
    """Whether epsilon is about what it was aimed at, and delta stands out from the rounding of the transform."""
    epsilon = found.epsilon_at(aim.delta)
    near = abs(epsilon - aim.epsilon) <= 0.1 * abs(epsilon) or max(epsilon, aim.epsilon) <= 0
    return epsilon >= aim.sketch.top or (near and found.finite(epsilon) <= 1.03 * aim.delta)


def at_epsilon(terms: tuple[Term, ...], epsilon: float, goal: Goal) -> list[Divergence]:
    """Compose the terms around epsilon, with another aim if delta is far from what the first one took it for."""
    # How much may be cut off follows from delta, which a first look tells well enough.
    delta = max(_aim_at_epsilon(sketch, epsilon).delta for sketch in _sketches(terms, 1e-40))
    tail = max(delta * _CUT / sum(term.count for term in terms), _LEAST)
    aims = [_aim_at_epsilon(sketch, epsilon) for sketch in _sketches(terms, tail)]
    found = _divergences(terms, aims, tail, UPPER)
    for care in (10.0, 1000.0):
        deltas = [divergence.finite(epsilon) for divergence in found]
        worst = max(range(len(aims)), key=deltas.__getitem__)
        if found[worst].lower(epsilon) >= 0.97 * deltas[worst] or deltas[worst] < 1e-290:
            break
        aims = [aim.sketch.at_epsilon(epsilon, delta, care) for aim, delta in zip(aims, deltas, strict=True)]
        found = _divergences(terms, aims, tail, UPPER)
    return _finely(terms, aims, found, [epsilon] * len(aims), tail, goal)


def _finely(
    terms: tuple[Term, ...],
    aims: Sequence[Aim],
    found: list[Divergence],
    at: Sequence[float],
    tail: float,
    goal: Goal,
) -> list[Divergence]:
    """Compose once more if the grid was too coarse at the epsilons `at`, which only the composition itself tells."""
    lead = max(range(len(aims)), key=lambda i: (at[i], found[i].finite(at[i])))
    slope = found[lead].slope(at[lead])
    if _is_fine(found[lead], at[lead], goal) or not math.isfinite(slope):
        return found
    step = replace(aims[lead], slope=max(aims[lead].slope, slope)).step(goal)
    # Where delta falls steeply, at the end of all losses, it will do that the sum of roundings stays small.
    step = max(step, found[lead].step * goal.enough * at[lead] / _strayed(found[lead], at[lead]))
    return _on_step(terms, aims, tail, goal, step) if step < 0.7 * found[lead].step else found


def _is_fine(found: Divergence, epsilon: float, goal: Goal) -> bool:
    """Whether the grid moves epsilon, or delta, no more than the goal asks for.

    With t the slope of log delta, rounding moves epsilon by about (1 + t) V / 3: see `Aim`. A lower bound gives away
    what it cannot tell from that. Neither is more than by what the sum may have strayed.
    """
    slope = found.slope(epsilon)
    moved = (1 + slope) * found.variance / 3
    if goal is LOWER:
        moved = found.surplus(epsilon) / (slope * found.finite(epsilon) + 1e-290)
    moved = min(moved, _strayed(found, epsilon))
    return moved <= goal.enough * epsilon or moved * slope <= goal.enough


def _strayed(found: Divergence, epsilon: float) -> float:
    return found.shift(1e-3 * max(found.finite(epsilon), 1e-290))


def follow(terms: tuple[Term, ...], epsilons: Iterable[float]) -> Iterator[list[Divergence]]:
    """Yield a composition for each epsilon; one serves as long as it is about as good as one of its own would be."""
    found: list[Divergence] = []
    for epsilon in epsilons:
        if not found or not _serves(found, epsilon):
            found = at_epsilon(terms, epsilon, UPPER)
        yield found


def _serves(found: Sequence[Divergence], epsilon: float) -> bool:
    """Whether the grid is fine enough there, too, and delta stands out from the rounding of the transform."""
    worst = max(found, key=lambda divergence: divergence.finite(epsilon))
    return _is_fine(worst, epsilon, UPPER) and worst.lower(epsilon) >= 0.99 * worst.finite(epsilon)


def _again(aim: Aim, epsilon: float, care: float = 1.0) -> Aim:
    return aim.sketch.at_epsilon(epsilon, aim.delta, care) if epsilon < aim.sketch.top else aim


def _aim_at_delta(sketch: Sketch, delta: float) -> Aim:
    """Aim at epsilon(delta): compose the sketch as it is, read epsilon off, and aim again until it stays.

    A normal sum needs no second look. So many steps that a coarse grid would blur their sum make it normal, too.
    """
    left = max(delta - ever((pair.infinite, count) for pair, count in sketch.pairs), 1e-300)
    aim = sketch.near_delta(left)
    for _ in range(0 if sketch.is_normal(aim.slope) else 6):
        before = aim
        if aim.reaches(COARSE):
            aim = _again(aim, _coarsely(aim).epsilon_at(left))
        if abs(aim.epsilon - before.epsilon) <= 0.1 * abs(aim.epsilon):
            break
    return aim


def _aim_at_epsilon(sketch: Sketch, epsilon: float) -> Aim:
    """Aim at epsilon: compose the sketch as it is to see how small delta will be, and aim again."""
    slope = sketch.at_epsilon(epsilon, 1.0).slope
    first = sketch.at_epsilon(epsilon, math.exp(min(0.0, max(-700.0, sketch.log_delta(slope)))))
    return sketch.at_epsilon(epsilon, _coarsely(first).finite(epsilon)) if first.reaches(COARSE) else first


def _coarsely(aim: Aim) -> Divergence:
    step = aim.step(COARSE)
    return compose(_placed(aim.sketch.pairs, step), aim.plan(step, COARSE))


def _divergences(terms: tuple[Term, ...], aims: Sequence[Aim], tail: float, goal: Goal) -> list[Divergence]:
    """Compose the terms in each direction, all on the grid that suits the one with the largest losses."""
    return _on_step(terms, aims, tail, goal, max(aims, key=lambda aim: aim.epsilon).step(goal))


def _on_step(terms: tuple[Term, ...], aims: Sequence[Aim], tail: float, goal: Goal, step: float) -> list[Divergence]:
    return [
        compose(_placed(pairs, step), aim.plan(step, goal))
        for pairs, aim in zip(_directions(terms, multiples(step), tail), aims, strict=True)
    ]


def _placed(pairs: Sequence[tuple[DominatingPair, int]], step: float) -> list[tuple[GridLoss, int]]:
    placed = all_on_grid([pair for pair, _ in pairs], step)
    return [(loss, count) for loss, (_, count) in zip(placed, pairs, strict=True)]


def _sketches(terms: tuple[Term, ...], tail: float) -> list[Sketch]:
    """Look at the losses coarsely, in each direction, losing at most the mass `tail` in each step."""
    spacings = [lattice(term) for term in terms]
    common = reduce(_common, (spacing for spacing in spacings if spacing is not None), Fraction(0))
    loose = sum(term.count for term, spacing in zip(terms, spacings, strict=True) if spacing is None)
    return [
        Sketch(
            pairs=pairs,
            cumulant=Cumulant((pair.loss[pair.p > 0], pair.p[pair.p > 0], count) for pair, count in pairs),
            steps=sum(term.count for term in terms),
            loose=loose,
            lattice=common,
            span=max(float(pair.loss.max() - pair.loss.min()) for pair, _ in pairs),
            top=sum(count * float(pair.loss.max()) for pair, count in pairs),
        )
        for pairs in _directions(terms, few, tail)
    ]


def _directions(terms: tuple[Term, ...], ticks: Ticks, tail: float) -> list[list[tuple[DominatingPair, int]]]:
    """Return the pairs of all terms in each direction. One that is its own mirror image serves in both."""
    found = pairs_of(terms, ticks, tail)
    return [
        [(pairs[min(direction, len(pairs) - 1)], term.count) for pairs, term in zip(found, terms, strict=True)]
        for direction in range(max(map(len, found)))
    ]


def _common(a: Fraction, b: Fraction) -> Fraction:
    """Return the largest number of which both are multiples."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
