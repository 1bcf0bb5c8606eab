"""Noise for a private bound on the local sensitivity: the bound is paid for, and so may be known.

Both mechanisms first release a noisy number that is below the local sensitivity with probability delta at most, and
then add Laplace noise for that number. As it is public, the answer has an interval. [Vad17]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, final

from discreet import noise
from discreet.adaptive.charging import charge
from discreet.adaptive.smooth_query import SmoothQuery
from discreet.adaptive.thresholds import least_excess
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms.accuracy import NoiseAccuracy
from discreet.mechanisms.fields import check_noise_scale, read_relation, read_share, settle, small_delta
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["BoundedLocalSensitivity", "BoundedSmoothSensitivity", "LocalQuery"]

_BITS = 192
_FINENESS = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQuery:
    """A whole number with its local sensitivity, and how far one unit moves the latter; all in grid steps.

    `verify.sensitivity` looks for a counterexample to `change` in small worlds.
    """

    value: Callable[[Any], int]
    local_sensitivity: Callable[[Any], int]
    change: int  # of the local sensitivity, for one unit
    grid: Grid  # the exact value lies between its bounds
    relation: Relation

    def __post_init__(self) -> None:
        settle(self, change=positive_integer(self.change, name="change"))
        read_relation(self.relation)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLocalSensitivity:
    """Bound the local sensitivity by adding to it, then add noise for the bound.

    Guarantee   (epsilon, delta).
    Theorem     B = L + X + t with noise X for the change g of L, and the least t with P[X < -t] <= delta. B is
                private, and not below L but with probability delta; then noise of scale B covers what one unit
                changes. For real Laplace noise t = (g / epsilon_1) ln(1 / (2 delta)). [Vad17]
    Utility     B exceeds L by about t, and never the whole range; good where L itself is stable.
    """

    query: LocalQuery
    epsilon: Fraction
    delta: Fraction
    bound_share: Fraction = Fraction(1, 2)  # of epsilon

    def __post_init__(self) -> None:
        _settle(self)
        _check_scales(self)

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the local sensitivity."""
        return DiscreteLaplaceLaw(self.query.change / (self.epsilon * self.bound_share))

    @property
    def margin(self) -> int:
        """What is added to the noisy local sensitivity, in grid steps."""
        return least_excess(self.law, self.delta)

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Fraction]:
        """Bound, then answer."""
        charge(self, session, purpose="an answer with a private bound on its sensitivity")
        bound = self._bound(self.query.local_sensitivity(data), noise.discrete_laplace(self.law.scale))
        return _answer(self, bound, self.query.value(data), self.query.grid)

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the bound and the answer, in grid steps."""
        local = self.query.local_sensitivity(data)
        bound = outcomes.map(outcomes.from_law(self.law), lambda extra: self._bound(local, extra))
        return _both(self, bound, self.query.value(data))

    def _bound(self, local: int, extra: int) -> int:
        return min(max(local + extra + self.margin, 1), self.query.grid.width)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSmoothSensitivity:
    """Bound a smooth bound on the local sensitivity by multiplying it, then add noise for the product.

    Guarantee   (epsilon, delta).
    Theorem     The logarithm of a beta-smooth bound S moves by at most beta. It is rounded up to a multiple of
                beta / k, so it moves by at most k + 1 of these; noise for that and a margin are added, as for a
                local sensitivity. For real noise S grows by exp((beta / epsilon_1) (X + ln(1 / (2 delta)))). [Vad17]
    Utility     the typical factor is `inflation`, whatever the data; a small beta makes it small but S large.
    """

    query: SmoothQuery
    beta: Fraction
    epsilon: Fraction
    delta: Fraction
    bound_share: Fraction = Fraction(1, 2)  # of epsilon
    fineness: int = _FINENESS  # parts of beta to which the logarithm is rounded

    def __post_init__(self) -> None:
        _settle(self)
        settle(
            self,
            beta=positive(self.beta, name="beta"),
            fineness=positive_integer(self.fineness, name="fineness"),
        )
        if 2 * self.query.relative_error >= self.beta:
            raise InvalidParameter("beta must be above twice the relative error of the query's bound")
        _check_scales(self)

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def event(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the logarithm, in parts of beta."""
        return DiscreteLaplaceLaw((self.fineness + 1) / (self.epsilon * self.bound_share))

    @property
    def margin(self) -> int:
        """What is added to the noisy logarithm, in parts of beta."""
        return least_excess(self.law, self.delta)

    @property
    def inflation(self) -> float:
        """The factor by which the bound is typically enlarged, for display. It is public."""
        with precision(_BITS):
            return float(ball(self._part * self.margin).exp())

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Fraction]:
        """Bound, then answer."""
        charge(self, session, purpose="an answer with a private bound on its sensitivity")
        bound = self._bound(self._logarithm(data), noise.discrete_laplace(self.law.scale))
        return _answer(self, bound, _whole(self.query.value(data)), self.query.grid)

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the bound and the answer, in grid steps."""
        logarithm = self._logarithm(data)
        bound = outcomes.map(outcomes.from_law(self.law), lambda extra: self._bound(logarithm, extra))
        return _both(self, bound, _whole(self.query.value(data)))

    def _logarithm(self, data: Any) -> int:
        """Return the logarithm of the smooth bound in parts of beta, rounded up; at least one step counts.

        The upper end of the ball may push it to the next whole number, which is why one unit moves it by up to
        fineness + 1, and not by fineness.
        """
        # A bound that is off by a factor 1 + h is raised by it, and is still smooth if h is taken off beta twice.
        error = self.query.relative_error
        beta = self.beta - 2 * error
        bound = self.query.smooth_bound(data, beta)
        with precision(_BITS):
            return ceil(bounds(self._log(bound.enclose(beta) * ball(1 + error)) / ball(self._part))[1])

    @staticmethod
    def _log(bound: arb) -> arb:
        return bound.max(ball(1)).log()

    @property
    def _part(self) -> Fraction:
        return self.beta / self.fineness

    def _bound(self, logarithm: int, extra: int) -> int:
        """Return the bound that the released logarithm stands for: whole steps, at most the range of the grid."""
        parts = max(0, logarithm + extra + self.margin)
        width = self.query.grid.width
        with precision(_BITS):
            if ball(self._part * parts) > ball(width).log():
                return width
            steps = bounds(ball(self._part * parts).exp())[1] + 2 * self.query.value_error
        # Rounding two values to whole steps moves them apart by less than one: up to the next whole number.
        return min(ceil(steps), width)


_Mechanism = BoundedLocalSensitivity | BoundedSmoothSensitivity


def _settle(mechanism: _Mechanism) -> None:
    settle(
        mechanism,
        epsilon=positive(mechanism.epsilon, name="epsilon"),
        delta=small_delta(mechanism.delta, population=None),
        bound_share=read_share(mechanism.bound_share, name="bound_share"),
    )


def _check_scales(mechanism: _Mechanism) -> None:
    """Refuse noise that no sampler takes, while nothing is spent yet."""
    for scale in (mechanism.law.scale, *(_noise(mechanism, bound).scale for bound in (1, mechanism.query.grid.width))):
        check_noise_scale(scale)


def _whole(value: Fraction) -> int:
    # Half a step is rounded up, always: half to even would move two values farther apart.
    return (2 * value + 1).__floor__() // 2


def _noise(mechanism: _Mechanism, bound: int) -> DiscreteLaplaceLaw:
    return DiscreteLaplaceLaw(bound / (mechanism.epsilon * (1 - mechanism.bound_share)))


def _answer(mechanism: _Mechanism, bound: int, value: int, grid: Grid) -> Release[Fraction]:
    law = _noise(mechanism, bound)
    return Release(
        value=(value + noise.discrete_laplace(law.scale)) * grid.step,
        event=mechanism.event,
        relation=mechanism.relation,
        accuracy=NoiseAccuracy(noise=law, step=grid.step),
        limits=(grid.low, grid.high),
        delta=mechanism.delta,
    )


def _both(mechanism: _Mechanism, bound: Outcomes, value: int) -> Outcomes:
    """List the bound together with the answer whose noise it sets."""

    def answers(known: int) -> Outcomes:
        return outcomes.map(outcomes.from_law(_noise(mechanism, known), value), lambda noisy: (known, noisy))

    parts = ((mass, answers(known)) for known, mass in bound.masses.items())
    return outcomes.mixture(parts, rest=bound.tail)
