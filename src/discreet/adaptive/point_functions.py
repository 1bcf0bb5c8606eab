"""Learn which single point is different: the worked example of choosing by support.

A point function is 1 at one point and 0 everywhere else; the points may be anything, without number. Pure privacy
needs a sample that grows with the logarithm of the number of points; here it does not matter. [BNS16]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.adaptive.charging import charge
from discreet.adaptive.choosing import Choosing
from discreet.adaptive.keys import identity, shown
from discreet.adaptive.no_answer import NoAnswer
from discreet.exact import Number
from discreet.mechanisms.fields import settle
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["PointFunction", "PointFunctionLearner"]

Examples = Sequence[tuple[object, object]]


@final
@dataclass(frozen=True, slots=True)
class PointFunction:
    """1 at a point and 0 elsewhere; 0 everywhere without a point."""

    point: Any = None

    def __call__(self, value: object) -> int:
        return int(self.point is not None and identity(value) == identity(self.point))

    def __str__(self) -> str:
        return "0 everywhere" if self.point is None else f"1 at {self.point} only"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PointFunctionLearner:
    """Learn a point function from examples (point, label), of which those with label 1 tell something.

    Guarantee   (epsilon, delta).
    Theorem     An example supports one point, or none: the choosing mechanism with growth 1. Where it declines, the
                function that is 0 everywhere is returned, which is post-processing. [BNS16]
    Utility     if all labels come from one point function, `reliable_positives(c)` examples of its point make it
                known with probability c. A point that is rarer may be missed, and then hardly matters.
    """

    epsilon: Fraction
    delta: Fraction
    relation: Relation

    def __post_init__(self) -> None:
        settle(self, epsilon=self.choosing.epsilon, delta=self.choosing.delta)

    @property
    def choosing(self) -> Choosing:
        return Choosing(epsilon=self.epsilon, delta=self.delta, growth=1, relation=self.relation)

    @property
    def event(self) -> ApproxDP:
        return self.choosing.event

    def reliable_positives(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return how many examples of one point make it known with at least this probability. It is public."""
        return self.choosing.reliable_quality(confidence)

    def release(self, examples: Examples, *, session: Payer | None = None) -> Release[PointFunction]:
        """Learn from private examples."""
        charge(self, session, purpose="learning a point function")
        chosen = self.choosing.release(support(examples))
        return Release(
            value=learned(chosen.value),
            event=self.event,
            relation=self.relation,
            accuracy=chosen.accuracy,
            delta=self.delta,
        )

    def distribution(self, examples: Examples) -> Outcomes:
        return outcomes.map(self.choosing.distribution(support(examples)), learned)


def support(examples: Examples) -> dict[Any, int]:
    """Count how often each point was seen with label 1; this is private."""
    seen = Counter(identity(point) for point, label in examples if _is_one(label))
    return {key: count for key, count in seen.items() if key is not None}


def _is_one(label: object) -> bool:
    return identity(label) in (identity(1), identity(True))


def learned(chosen: Any) -> PointFunction:
    """Turn a choice into a function."""
    return PointFunction() if isinstance(chosen, NoAnswer) else PointFunction(shown(chosen))
