"""The hockey-stick divergence of a sum of losses, as a function of epsilon, bounded on both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import final

from discreet.privacy.pld.pairs import Floats

__all__ = ["Divergence", "exp"]

_ULP = 2.0**-53
_NODES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 36.0)  # in roots of V
_SPREAD = 2.2  # in roots of V


@final
@dataclass(frozen=True, slots=True, eq=False)
class Divergence:
    """delta(eps) = E[(1 - e^(eps - S))_+] of a sum S on a grid whose law was tilted by e^(t S).

    With c_i the tilted masses of the grid points x_i and v_i = c_i e^(-t (x_i - centre)), the finite part of delta is
    `scale` times the sum over x_i >= x_k of v_i - e^(eps - x_k) v_i e^(x_k - x_i), x_k being the first one above eps.
    """

    step: float
    first: int  # the grid point of the first entry of `ahead` and `behind`
    ahead: Floats  # the sum of v_i from each entry k on; ends with a 0
    behind: Floats  # the sum of v_i e^(x_k - x_i) from each entry k on; ends with a 0
    tilt: float
    centre: float
    scale: float  # e^(K(t) - t centre), K being the cumulant of the finite losses
    noise: float  # bounds the Euclidean norm of the error of all c_i
    above: float  # bounds the tilted mass above the window
    outside: float  # and on both sides of it
    error: float  # relative, of a product of masses
    slip: float  # absolute, of the sum
    infinite: float  # the mass of an infinite loss, from above
    infinite_surely: float  # and from below
    lost: float  # bounds the mass that was cut off
    top: float  # the largest loss there can be
    moments: tuple[tuple[float, float], ...]  # slopes s with K(s) - s centre
    variance: float  # V: the grid moves the sum at random, like independent intervals whose squares add up to 4 V

    def upper(self, epsilon: float) -> float:
        """Return at least delta."""
        if epsilon >= self.top:
            return min(1.0, self.infinite)
        return min(1.0, (self.infinite + self.lost + self.finite(epsilon)) * (1 + 8 * _ULP))

    def finite(self, epsilon: float) -> float:
        """Return at least the finite part of delta, apart from what was lost."""
        # The sum may be wrong by `slip`, and delta falls with epsilon: a smaller one is the safe side here.
        at = epsilon - self.slip
        bound = self._chernoff_delta(at)
        if at >= self.first * self.step:
            value, wrong = self._value(at)
            bound = min(bound, self.scale * (value + wrong + self.above * self._peak(at)))
        return bound * (1 + self.error)

    def lower(self, epsilon: float) -> float:
        """Return at most the finite part of delta on the grid."""
        at = epsilon + self.slip
        if self.error >= 1:
            return 0.0
        value, wrong = self._value(at)
        return max(0.0, self.scale * (1 - self.error) * (value - wrong - self.outside * self._peak(at)))

    def slope(self, epsilon: float) -> float:
        """Return about how fast log delta falls at epsilon, per nat."""
        ahead, behind = self._sums(epsilon)
        return behind / (ahead - behind) if ahead > behind else math.inf

    @property
    def lowest(self) -> float:
        """The smallest epsilon whose `upper` says anything."""
        return (self.first + 1) * self.step + self.slip

    def _value(self, epsilon: float) -> tuple[float, float]:
        """Return the finite part of delta on the grid, without its scale, and by how much it may be wrong.

        The noise meets the weights w(y) = e^(-t y) (1 - e^-y) of y = x_i - eps > 0. Their squares rise and fall once,
        so they add up to at most their integral, divided by the step, and their largest one.
        """
        ahead, behind = self._sums(epsilon)
        t, points = 2 * self.tilt, len(self.ahead)
        largest = exp(-self.tilt * (epsilon - self.centre))
        # The integral of w^2 over y > 0 is 1/t - 2/(t + 1) + 1/(t + 2), t being twice the tilt here.
        integral = 2 / (t * (t + 1) * (t + 2)) if t > 1e-9 else math.inf
        noise = self.noise * largest * math.sqrt(min(integral / self.step + 1, points))
        # A sum of n terms is right to n ulp of the sum of their sizes, and they are positive up to the noise. The
        # exponents of the weights reach 500, and are right to as many ulp.
        sizes = abs(ahead) + abs(behind) + 4 * self.noise * largest * math.sqrt(points)
        return ahead - behind, noise + (4 * _ULP * points + 1e-12) * sizes + 1e-100

    def _sums(self, epsilon: float) -> tuple[float, float]:
        """Return the two parts of delta on the grid, without its scale: P's mass above epsilon, and e^epsilon Q's."""
        point = math.floor(min(epsilon / self.step, 2.0**62))
        k = min(max(point + 1 - self.first, 0), len(self.ahead) - 1)
        # `behind` is discounted to the grid point x_k; this factor, e^(epsilon - x_k), discounts it to epsilon.
        nearer = exp(min(0.0, epsilon - (self.first + k) * self.step))
        return float(self.ahead[k]), nearer * float(self.behind[k])

    def _peak(self, epsilon: float) -> float:
        """Return the largest weight."""
        # x^t (1 - x), with x = e^-y, is largest at x = t / (1 + t).
        t = self.tilt
        return math.pow(t / (1 + t), t) / (1 + t) * exp(-t * (epsilon - self.centre))

    def surely(self, epsilon: float) -> float:
        """Return at most the true finite part of delta, off the grid."""
        return max(0.0, self.lower(epsilon) - self.surplus(epsilon)) * (1 - 1e-12)

    def shift(self, chance: float) -> float:
        """Return by how much the grid raises the sum, except with a chance of at most `chance`.

        It is all that is needed where epsilon is large: with the names of `surplus`, delta on the grid at eps + shift
        is at most the true one at eps, and `chance`. W has a mean of at most V/2 + (V + V^2/4)/8, and the tails of a
        normal variable of variance V.
        """
        v = self.variance
        return (v / 2 + (v + v * v / 4) / 8 + math.sqrt(-2 * v * math.log(min(chance, 1.0)))) * (1 + 1e-9)

    def surplus(self, epsilon: float) -> float:
        """Bound by how much the grid raises the finite part of delta.

        Theorem     Given the true losses, the grid moves their sum R by an independent W with E[e^-W] = 1, since it
                    keeps the masses under P and under Q. So 1 - e^(eps - S) is on average what it was, and delta is
                    raised only by sums that cross eps: by E[(W - y)_+] at most where R = eps - y, and by
                    E[(e^(-y - W) - 1)_+] where R = eps + y. The latter is at most E'[(-W - y)_+] under the law
                    with density e^-W. Under both laws W has a mean within V of 0, a variance of at most V (1 + V)
                    and the tails of a normal variable of variance V [Hoe63]; so both are at most `_overshoot(y)`,
                    which falls with y. It is summed in steps; R is near eps no more often than S, allowing for W.
        Conditions  V <= 1. For one step that is sampled after a composition W has a mean of at most V/2 + (V + V^2/4)/8
                    given either law of the unit, and a mixture of the two has those moments.
        """
        if self.variance == 0:
            return 0.0
        if not self.variance <= 1:
            return 1.0
        root = math.sqrt(self.variance)
        heights = [self._overshoot(node * root) for node in _NODES]
        reaches = [(node + _SPREAD) * root + self.variance for node in _NODES[1:]]
        steps = (high - low for high, low in pairwise(heights))
        near = sum(step * self._within(epsilon, reach) for step, reach in zip(steps, reaches, strict=True))
        return (near / (1 - 2 * math.exp(-(_SPREAD**2) / 2)) + heights[-1]) * (1 + 1e-9)

    def _overshoot(self, y: float) -> float:
        """Bound E[(X - y)_+] for X of mean V, by its variance [Sca58] and by the integral of its tail."""
        v, beyond = self.variance, y - self.variance
        by_variance = (math.sqrt(v * (1 + v) + beyond**2) - beyond) / 2
        by_tail = math.sqrt(v * math.pi / 2) * math.erfc(beyond / math.sqrt(2 * v)) if beyond > 0 else math.inf
        return min(by_variance, by_tail * (1 + 1e-9))

    def _within(self, epsilon: float, reach: float) -> float:
        """Bound the chance of a finite sum within `reach` of epsilon, from the tilted masses between two entries."""
        low, high = epsilon - reach - self.slip, epsilon + reach + self.slip
        if low < (self.first + 1) * self.step:
            return 1.0
        last = len(self.ahead) - 1
        i, j = (min(math.floor(end / self.step) - self.first, last) for end in (low, high + 2 * self.step))
        largest = exp(-self.tilt * ((self.first + i) * self.step - self.centre))
        ahead, points = float(self.ahead[i]), len(self.ahead)
        wrong = self.noise * largest * math.sqrt(j - i) + self.above * largest + 1e-100
        wrong += (4 * _ULP * points + 1e-12) * (abs(ahead) + 4 * self.noise * largest * math.sqrt(points))
        chance = self.scale * (ahead - float(self.ahead[j]) + wrong) * (1 + self.error) + self.lost
        return min(1.0, chance * (1 + 1e-9))

    def epsilon_at(self, delta: float) -> float:
        """Return about the epsilon whose finite part of delta is `delta`: a guess, to be tested."""
        wanted = delta / self.scale if self.scale else math.inf
        k = self._first_at_most(wanted)
        ahead, behind, at = float(self.ahead[k]), float(self.behind[k]), (self.first + k) * self.step
        if k == 0 or ahead <= wanted or behind <= 0:
            return at
        return at + math.log((ahead - wanted) / behind)

    def _first_at_most(self, wanted: float) -> int:
        """Return the first entry at which delta, without its scale, is not above `wanted`: gallop, then halve.

        The search starts at the centre since entries far to the left of it are nothing but noise.
        """
        last = len(self.ahead) - 1
        low = high = min(max(math.floor(self.centre / self.step) - self.first, 0), last)
        stride = 1
        while low > 0 and self._entry(low) <= wanted:
            low, stride = max(0, low - stride), 2 * stride
        while high < last and self._entry(high) > wanted:
            high, stride = min(last, high + stride), 2 * stride
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._entry(middle) > wanted else (low, middle)
        return high

    def _entry(self, k: int) -> float:
        return float(self.ahead[k]) - float(self.behind[k])

    def _chernoff_delta(self, epsilon: float) -> float:
        """Bound the finite part of delta by moments alone: (1 - e^-y)_+ <= e^(s y) for s >= 0."""
        return min(exp(moment - slope * (epsilon - self.centre)) for slope, moment in self.moments)

    def chernoff(self, finite: float) -> float:
        """Return an epsilon at which the finite part of delta is surely at most `finite`, by moments alone."""
        nats = math.log1p(self.error) - math.log(finite)
        above = min((moment + nats) / slope if slope else math.inf for slope, moment in self.moments)
        return self.centre + above + self.slip + 1e-12 * (abs(self.centre) + abs(above))


def exp(x: float) -> float:
    """Return e^x, or e^700 where that is more."""
    return math.exp(min(x, 700.0))
