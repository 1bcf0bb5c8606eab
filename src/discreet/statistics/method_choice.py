"""Choose a mechanism by its name, or by what public facts predict. The data have no say in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np

from discreet.adaptive.bounded_memberships import UnitRows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number
from discreet.frames.column import Data
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_share
from discreet.mechanisms.quantile import QuantileAmong
from discreet.mechanisms.release import Release
from discreet.privacy.events import ApproxDP, Composed, Event, PureDP
from discreet.privacy.payer import Payer
from discreet.statistics.budget_and_payment import answer
from discreet.statistics.chooser_inputs import ChooserInputs, Predicted
from discreet.statistics.expected import Expected, Floats
from discreet.statistics.mean_methods import CheckedMean, ClampedMean, FoundBoundsMean, TrimmedMeanMethod
from discreet.statistics.rank_methods import CandidateQuantile, ExponentialQuantile, ProposedQuantile, SmoothQuantile

__all__ = [
    "AUTO",
    "PAID",
    "SHARE",
    "Method",
    "PaidChoice",
    "answer_by",
    "applicable",
    "best",
    "mean_methods",
    "method_for",
    "named",
    "rank_methods",
]

AUTO = "auto"


class Method(Protocol):
    """A way to answer a question: it makes a mechanism from public facts, and predicts what it is worth."""

    @property
    def name(self) -> str: ...

    @property
    def declines(self) -> bool:
        """Whether there may be no answer."""

    def margin(self, facts: ChooserInputs, /) -> float:
        """Return by how much its predicted error must be smaller to be taken, because a wrong guess is costly."""

    def refusal(self, facts: ChooserInputs, /) -> str | None:
        """Say why it cannot be used, if it cannot."""

    def is_doubtful(self, facts: ChooserInputs, /) -> bool:
        """Tell whether it may miss altogether if the data fill a small part of the bounds."""

    def make(self, facts: ChooserInputs, /) -> Any:
        """Make the mechanism."""

    def predict(self, facts: ChooserInputs, /) -> Predicted:
        """Predict its error if the data are as expected."""


class _NamedMethod(Protocol):
    @property
    def name(self) -> str: ...

    def refusal(self, facts: Any, /) -> str | None: ...


M = TypeVar("M", bound=_NamedMethod)


def rank_methods(q: Fraction) -> tuple[Method, ...]:
    """List the methods for a quantile; without any expectation the first one is taken."""
    return ExponentialQuantile(q), CandidateQuantile(q), SmoothQuantile(q), ProposedQuantile(q)


def mean_methods(count_share: Fraction = Fraction(1, 2)) -> tuple[Method, ...]:
    """List the methods for a mean; without any expectation the first one is taken."""
    return ClampedMean(count_share), FoundBoundsMean(), CheckedMean(), TrimmedMeanMethod()


def method_for(name: str, methods: Sequence[Method], facts: ChooserInputs) -> Method:
    """Return the method of a name; for "auto" the one that is predicted to be best among those that always answer."""
    return best(methods, facts) if name == AUTO else named(name, methods, facts)


def named(name: str, methods: Sequence[M], facts: Any) -> M:
    """Return the method of a name, or say why it cannot be."""
    for method in methods:
        if method.name == name:
            refusal = method.refusal(facts)
            if refusal is not None:
                raise InvalidParameter(f'method="{name}" cannot be used here: {refusal}')
            return method
    known = ", ".join(f'"{name}"' for name in (AUTO, *(method.name for method in methods)))
    raise InvalidParameter(f"method must be one of {known}")


def applicable(methods: Sequence[M], facts: Any) -> list[M]:
    """Return the methods that can be used."""
    return [method for method in methods if method.refusal(facts) is None]


def best(methods: Sequence[Method], facts: ChooserInputs) -> Method:
    """Return the best by prediction of those that always answer; if nothing is expected, the first that is sure."""
    usable = [method for method in applicable(methods, facts) if not method.declines]
    if not facts.can_predict:
        return next((method for method in usable if not method.is_doubtful(facts)), usable[0])
    careful = [method for method in usable if math.isfinite(method.margin(facts))]
    return min(careful, key=lambda method: _rank(method.predict(facts), method.margin(facts), facts))


def _rank(predicted: Predicted, margin: float, facts: ChooserInputs) -> tuple[float, float]:
    """Order by the usual error; of those that cannot be told apart on the grid, by the rare ones."""
    finest = float(facts.grid.step) / 2
    return max(predicted.typical * margin, finest), predicted.wide * margin


# --- answering: Answer by the method that was named, or by the one that public facts choose. ---


def answer_by(
    name: str,
    methods: Sequence[Method],
    facts: ChooserInputs,
    column: Any,
    *,
    session: Payer | None,
    purpose: str,
    choice_share: Number,
    whom: UnitRows | None = None,
) -> Release[Any]:
    """Choose, pay, read, release, and say how it was done. The epsilon of the facts is that of one row."""
    if name == PAID and whom is not None:
        raise Refused('method="paid" protects rows', way_out="with unit=… leave method out, or name another one")
    if name == PAID:
        return answer(PaidChoice(methods, facts, choice_share), column, session=session, purpose=purpose)
    method = method_for(name, methods, facts)
    found: Release[Any] = answer(method.make(facts), column, session=session, purpose=purpose, whom=whom)
    return replace(found, method=method.name)


# --- paid: Choose a mechanism by a first, private look at the data, for a part of the budget. ---


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
        facts = replace(self.rest, expected=_through(seen), rough=True)
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
