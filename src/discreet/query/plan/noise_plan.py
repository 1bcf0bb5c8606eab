"""The noise of a plan: of every number, of the choice of groups, and of choices within groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.events import ApproxDP, BoundedRange, Composed, DiscreteLaplace, Event, Gaussian, PureDP, Repeated

if TYPE_CHECKING:
    from discreet.adaptive.truncated_histogram import TruncatedHistogram

__all__ = ["Bundle", "Chooser", "Noising", "NumberNoise", "together"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NumberNoise:
    """The noise of one number in every group.

    A number whose noise is very wide is first rounded to a multiple of a public `unit`, half up; then the most that one
    unit of privacy changes is rounded up. Samplers have a limit, and 2^38 units to the noise lose nothing.
    """

    law: DiscreteLaplaceLaw | RoundedGaussianLaw  # in units
    change: int  # by one unit of privacy in one group, in units
    unit: int = 1  # in grid steps

    def reach(self, confidence: Fraction) -> Fraction:
        """Return the least half width, in grid steps, that encloses the exact number with this probability."""
        return self.unit * half_width(self.law, confidence) + self.slack

    @property
    def slack(self) -> Fraction:
        """How far rounding to the unit moves a number, in grid steps."""
        return Fraction(self.unit, 2) if self.unit > 1 else Fraction(0)

    def rounded(self, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count exact numbers in units."""
        return exact if self.unit == 1 else (2 * exact + self.unit) // (2 * self.unit)

    def draw(self, groups: int) -> NDArray[np.int64]:
        """Draw fresh noise for every group, in units."""
        if isinstance(self.law, DiscreteLaplaceLaw):
            return noise.discrete_laplace(self.law.scale, groups)
        return noise.rounded_gaussian(size=groups, variance=self.law.variance)


@lru_cache(1024)
def half_width(law: DiscreteLaplaceLaw | RoundedGaussianLaw, confidence: Fraction) -> int:
    """Remember what a law says: all groups ask the same."""
    return law.half_width(confidence)


@final
@dataclass(frozen=True, slots=True)
class Bundle:
    """Numbers of which each row moves one at most: together they are paid like the dearest of them."""

    noises: tuple[NumberNoise, ...]

    def pure(self, max_groups: int) -> Event:
        """Return what Laplace noise spends.

        With one scale for all, the numbers are one vector whose l1 sensitivity is that of the dearest.
        """
        scales = {one.law.scale for one in self.noises if isinstance(one.law, DiscreteLaplaceLaw)}
        most = max_groups * max(one.change for one in self.noises)
        if len(scales) == 1:
            return DiscreteLaplace(scale=next(iter(scales)), sensitivity=most)
        losses = (max_groups * one.change / one.law.scale for one in self.noises)  # type: ignore[union-attr]
        return PureDP(max(losses))

    def mu_squared(self, max_groups: int) -> Fraction:
        """Return what Gaussian noise spends."""
        return max(Fraction(max_groups * one.change**2) / one.law.variance for one in self.noises)  # type: ignore[union-attr]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """How one value is chosen in every group: exponentially, or by permute-and-flip where only epsilon counts."""

    epsilon: Fraction  # in one group, for one unit
    flips: bool = False

    def event(self, max_groups: int) -> Event:
        spent = PureDP(self.epsilon) if self.flips else BoundedRange(self.epsilon)
        return spent if max_groups == 1 else Repeated(spent, max_groups)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Noising:
    """All noise that is added, and what it spends."""

    gaussian: bool
    numbers: tuple[NumberNoise, ...]
    bundles: tuple[Bundle, ...]
    selection: TruncatedHistogram | None  # what shows groups whose keys are not public
    max_groups: int

    @property
    def events(self) -> list[Event]:
        """What is spent, one event for all Gaussian noise: it is one vector, scaled coordinate by coordinate."""
        shown = [] if self.selection is None else [ApproxDP(0, self.selection.delta)]
        if not self.gaussian:
            chosen = [] if self.selection is None else [self.selection.event.events[0]]
            return [*chosen, *shown, *(bundle.pure(self.max_groups) for bundle in self.bundles)]
        total = sum((bundle.mu_squared(self.max_groups) for bundle in self.bundles), Fraction(0))
        if self.selection is not None:
            first = self.selection.event.events[0]
            assert isinstance(first, Gaussian)
            total += first.mu_squared
        return [*([Gaussian(variance=1, squared_sensitivity=total)] if total else []), *shown]


def together(events: list[Event]) -> Event:
    """Return one event for all."""
    return events[0] if len(events) == 1 else Composed(events)
