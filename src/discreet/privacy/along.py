"""A privacy curve at many epsilons: what was composed for one of them serves for the ones near it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch

from discreet.errors import UnsupportedEvent
from discreet.privacy.curves import Best, Group, Numerical, PrivacyCurve, Split, Worst
from discreet.privacy.substituted import Substituted

__all__ = ["deltas"]


@singledispatch
def deltas(known: PrivacyCurve, epsilons: Sequence[Fraction]) -> list[float]:
    """Return `known.delta` of each epsilon, or another bound about as good; fastest if they are in order."""
    return [known.delta(epsilon) for epsilon in epsilons]


@deltas.register
def _(known: Numerical, epsilons: Sequence[Fraction]) -> list[float]:
    try:
        found = known.profile.deltas_upper(epsilons)
    except UnsupportedEvent:
        return deltas(known.otherwise, epsilons)
    return [delta if delta < 1 else known.otherwise.delta(at) for delta, at in zip(found, epsilons, strict=True)]


@deltas.register
def _(known: Best, epsilons: Sequence[Fraction]) -> list[float]:
    return [min(each) for each in zip(*(deltas(curve, epsilons) for curve in known.curves), strict=True)]


@deltas.register
def _(known: Worst, epsilons: Sequence[Fraction]) -> list[float]:
    return [max(each) for each in zip(*(deltas(case, epsilons) for case in known.cases), strict=True)]


@deltas.register
def _(known: Substituted, epsilons: Sequence[Fraction]) -> list[float]:
    choices = [deltas(choice, epsilons) for choice in known.choices()]
    return [min(each) for each in zip([1.0] * len(epsilons), *choices, strict=True)]


@deltas.register
def _(known: Group, epsilons: Sequence[Fraction]) -> list[float]:
    found = []
    for shares in zip(*map(known.shares, epsilons), strict=True):
        found.append([known.together(*each) for each in zip(shares, deltas(known.curve, shares), strict=True)])
    return [min(each) for each in zip(*found, strict=True)]


@deltas.register
def _(known: Split, epsilons: Sequence[Fraction]) -> list[float]:
    return deltas(known.above, epsilons)
