"""Choose a mechanism by a first, private look at the data, for a part of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.exact import Number
from discreet.mechanisms.column import Data
from discreet.mechanisms.fields import read_share
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.quantile_among import QuantileAmong
from discreet.mechanisms.release import Release
from discreet.privacy.events import ApproxDP, Composed, Event, PureDP
from discreet.statistics.choosing import Method, best
from discreet.statistics.expected import Expected, Floats
from discreet.statistics.facts import ChooserInputs

__all__ = ["PAID", "SHARE", "PaidChoice"]

PAID = "paid"
SHARE = Fraction(1, 10)  # Of epsilon, for the look.
_COARSE = 512  # Points to look at.
_ROWS = 1000  # Where neither the number of rows nor a guess of it is public.
_LOOKS = tuple(map(Fraction, ("1/4", "1/2", "3/4")))


class PaidChoice:
    """Ask for the quartiles with a share of epsilon, take what they say as expected, and choose by that.

    Guarantee   the whole of epsilon, and delta, whichever method is chosen: each of them spends no more than what the
                look has left, and what was chosen by a private answer is post-processing of it. [DMNS06]
    """

    def __init__(self, methods: Sequence[Method], facts: ChooserInputs, share: Number) -> None:
        part = read_share(share, name="choice_share")
        self.methods = methods
        self.rest = replace(facts, epsilon=facts.epsilon * (1 - part), expected_size=facts.rows or _ROWS)
        self.looks = [
            QuantileAmong(
                candidates=_places(facts.grid),
                quantile=q,
                epsilon=facts.epsilon * part / len(_LOOKS),
                grid=facts.grid,
                relation=facts.relation,
            )
            for q in _LOOKS
        ]

    @property
    def relation(self) -> Any:
        return self.rest.relation

    @property
    def event(self) -> Event:
        delta = self.rest.delta
        then = PureDP(self.rest.epsilon) if delta is None else ApproxDP(self.rest.epsilon, delta)
        return Composed([*(look.event for look in self.looks), then])

    def release(self, data: Data) -> Release[Any]:
        """Look, choose, answer."""
        seen = np.maximum.accumulate([float(look.release(data).value) for look in self.looks])
        facts = replace(self.rest, expected=_through(seen))
        method = best(self.methods, facts)
        answer: Release[Any] = method.make(facts).release(data)
        return replace(answer, event=self.event, method=method.name, delta=self.rest.delta)


def _places(grid: Grid) -> tuple[int, ...]:
    """Return grid points at even distances: few of them are told apart by a small epsilon."""
    return tuple(np.unique(np.linspace(grid.first, grid.last, _COARSE).astype(np.int64)).tolist())


def _through(seen: Floats) -> Expected:
    """Return a law through three quartiles; beyond the outer ones it falls off as it does just inside of them."""
    shares = np.array([float(q) for q in _LOOKS])

    def quantiles(asked: Floats) -> Floats:
        found = np.interp(asked, shares, seen)
        below, above = asked < shares[0], asked > shares[-1]
        found[below] -= (seen[1] - seen[0]) * np.log2(shares[0] / asked[below])
        found[above] += (seen[-1] - seen[-2]) * np.log2(shares[0] / (1 - asked[above]))
        return found

    return Expected("what a private look at it suggests", quantiles)
