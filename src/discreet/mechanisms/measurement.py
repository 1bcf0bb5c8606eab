"""A measurement is a query plus the noise that pays for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.formatting import record
from discreet.mechanisms.additive_noise import Noise, Sensitivity
from discreet.mechanisms.parameters import settle
from discreet.mechanisms.quotient_intervals import MeasuredNoise
from discreet.mechanisms.release import NoiseAccuracy
from discreet.privacy import outcomes
from discreet.privacy.events import Composed, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation, read_relation

__all__ = ["BoundedQuery", "Measurement", "joint_distribution", "joint_event"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedQuery:
    """Whole numbers computed from data, with a proven bound on what one unit changes.

    Only the functions of this package that prove the bound make one; the answer itself is private.

    Args:
        evaluate: The function from private data to whole numbers.
        sensitivity: How far one unit moves the numbers, proven by whoever made the query.
        relation: The neighbouring relation.

    Examples:
        >>> noise = dp.mechanisms.LaplaceNoise(epsilon=1)
        >>> query = dp.mechanisms.Count(relation=dp.Relation.ADD_REMOVE, noise=noise).measurements[0].query
        >>> query.sensitivity.l1
        1
    """

    evaluate: Callable[[Any], tuple[int, ...]]
    sensitivity: Sensitivity
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Noisy whole numbers.

    A single number with very wide noise is first rounded to a multiple of a public unit, for which its sensitivity
    is rounded up: samplers have a limit, and 2^38 units to one scale lose nothing.

    Args:
        query: What is computed from the data, with its proven sensitivity.
        noise: The noise, which fits itself to the sensitivity.

    Examples:
        >>> noise = dp.mechanisms.LaplaceNoise(epsilon=1)
        >>> measurement = dp.mechanisms.Count(relation=dp.Relation.ADD_REMOVE, noise=noise).measurements[0]
        >>> measurement.event == dp.privacy.DiscreteLaplace(scale=1, sensitivity=1)
        True
    """

    query: BoundedQuery
    noise: Noise

    __repr__ = record

    @property
    def unit(self) -> int:
        """The distance of possible values, in grid steps."""
        return self.noise.unit(self.query.sensitivity) if self.query.sensitivity.dimension == 1 else 1

    @property
    def sensitivity(self) -> Sensitivity:
        """What one unit of privacy changes, in units of the measurement."""
        return self.query.sensitivity.coarser(self.unit)

    @property
    def event(self) -> Event:
        return self.noise.event(self.sensitivity)

    def accuracy(self, step: Fraction = Fraction(1)) -> NoiseAccuracy:
        """Tell how far each number is from the exact one, where the query counts in `step`."""
        slack = Fraction(self.unit, 2) if self.unit > 1 else Fraction(0)
        return NoiseAccuracy(noise=self.noise.law(self.sensitivity), step=step * self.unit, slack=step * slack)

    @property
    def noise_in_units(self) -> MeasuredNoise:
        """The noise of each number, for intervals of what is computed from several."""
        return MeasuredNoise(self.noise.law(self.sensitivity), self.unit)

    def measure(self, data: Any) -> tuple[int, ...]:
        """Evaluate, add noise, and return grid steps."""
        drawn = self.noise.draw(self.sensitivity)
        return tuple(self.unit * (exact + extra) for exact, extra in zip(self._exact(data), drawn, strict=True))

    def distribution(self, data: Any) -> Outcomes:
        """List the law of what `measure` returns."""
        law, unit = self.noise.law(self.sensitivity), self.unit
        cells = [outcomes.from_law(law, exact) for exact in self._exact(data)]
        return outcomes.map(outcomes.product(*cells), lambda row: tuple(unit * value for value in row))

    def _exact(self, data: Any) -> tuple[int, ...]:
        exact, unit = self.query.evaluate(data), self.unit
        # Half a unit is rounded up, always: half to even would move two values by one unit more than they are apart.
        return exact if unit == 1 else tuple((2 * value + unit) // (2 * unit) for value in exact)


def joint_event(measurements: Sequence[Measurement]) -> Event:
    """Return what all measurements spend together."""
    events = [measurement.event for measurement in measurements]
    return events[0] if len(events) == 1 else Composed(events)


def joint_distribution(measurements: Sequence[Measurement], data: Any) -> Outcomes:
    """List the law of all measurements together, one flat tuple an outcome."""
    parts = [measurement.distribution(data) for measurement in measurements]
    return outcomes.map(outcomes.product(*parts), lambda rows: tuple(value for row in rows for value in row))
