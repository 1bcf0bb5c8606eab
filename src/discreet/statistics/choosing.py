"""Choose a mechanism by its name, or by what public facts predict. The data have no say in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from discreet.errors import InvalidParameter
from discreet.statistics.facts import ChooserInputs
from discreet.statistics.mean_methods import ClampedMean, FoundBoundsMean, TrimmedMeanMethod
from discreet.statistics.predicted import Predicted
from discreet.statistics.rank_methods import CandidateQuantile, ExponentialQuantile, ProposedQuantile, SmoothQuantile

__all__ = ["AUTO", "Method", "applicable", "best", "mean_methods", "method_for", "named", "rank_methods"]

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
    return ClampedMean(count_share), FoundBoundsMean(), TrimmedMeanMethod()


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
