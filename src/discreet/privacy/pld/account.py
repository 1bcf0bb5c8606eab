"""One composition in each of its directions: with the unit present, and with the unit absent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from discreet.privacy.pld.compose import compose, ever
from discreet.privacy.pld.cumulant import Cumulant
from discreet.privacy.pld.divergence import Divergence
from discreet.privacy.pld.grid import few, multiples, on_grid
from discreet.privacy.pld.pair import Pair, Ticks
from discreet.privacy.pld.plan import COARSE, Aim, Goal, Sketch
from discreet.privacy.pld.terms import Term, lattice

__all__ = ["aim_at_delta", "aim_at_epsilon", "divergences", "sketches"]


def sketches(terms: tuple[Term, ...], tail: float) -> list[Sketch]:
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
        )
        for pairs in _directions(terms, few, tail)
    ]


def aim_at_delta(sketch: Sketch, delta: float) -> Aim:
    """Aim at epsilon(delta): compose the sketch as it is, read epsilon off, and aim again until it stays."""
    left = max(delta - ever((pair.infinite, count) for pair, count in sketch.pairs), 1e-300)
    aim = sketch.near_delta(left)
    for _ in range(6):
        before, aim = aim, sketch.at_epsilon(_coarsely(aim).epsilon_at(left), left)
        if abs(aim.epsilon - before.epsilon) <= 0.1 * abs(aim.epsilon):
            break
    return aim


def aim_at_epsilon(sketch: Sketch, epsilon: float) -> Aim:
    """Aim at epsilon: compose the sketch as it is to see how small delta will be, and aim again."""
    first = sketch.at_epsilon(epsilon, 1e-300)
    return sketch.at_epsilon(epsilon, _coarsely(first).upper(epsilon))


def _coarsely(aim: Aim) -> Divergence:
    step = aim.step(COARSE)
    return compose([(on_grid(pair, step), count) for pair, count in aim.sketch.pairs], aim.plan(step))


def divergences(terms: tuple[Term, ...], aims: Sequence[Aim], tail: float, goal: Goal) -> list[Divergence]:
    """Compose the terms in each direction, all on the grid that suits the one with the largest losses."""
    step = max(aims, key=lambda aim: aim.epsilon).step(goal)
    return [
        compose([(on_grid(pair, step), count) for pair, count in pairs], aim.plan(step))
        for pairs, aim in zip(_directions(terms, multiples(step), tail), aims, strict=True)
    ]


def _directions(terms: tuple[Term, ...], ticks: Ticks, tail: float) -> list[list[tuple[Pair, int]]]:
    """Return the pairs of all terms in each direction. One that is its own mirror image serves in both."""
    found = [term.pairs(ticks, tail) for term in terms]
    return [
        [(pairs[min(direction, len(pairs) - 1)], term.count) for pairs, term in zip(found, terms, strict=True)]
        for direction in range(max(map(len, found)))
    ]


def _common(a: Fraction, b: Fraction) -> Fraction:
    """Return the largest number of which both are multiples."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)
