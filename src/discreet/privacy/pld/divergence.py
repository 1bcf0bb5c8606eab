"""The hockey-stick divergence of a sum of losses, as a function of epsilon, bounded on both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from discreet.privacy.pld.pair import Floats

__all__ = ["Divergence", "exp"]

_ULP = 2.0**-53


@final
@dataclass(frozen=True, slots=True, eq=False)
class Divergence:
    """delta(eps) = E[(1 - e^(eps - S))_+] of a sum S on a grid whose law was tilted by e^(t S).

    With c_i the tilted masses of the grid points x_i and y = x_i - centre, the finite part of delta is `scale` times
    the sum over x_i > eps of c_i e^(-t y) - e^(eps - centre) c_i e^(-(t + 1) y).
    """

    step: float
    first: int  # the grid point of the first entry of `ahead` and `behind`
    ahead: Floats  # the sums of c_i e^(-t y) from each entry on
    behind: Floats  # the sums of c_i e^(-(t + 1) y) from each entry on
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
    drift: float  # by how much the grid raises the sum on average, at most
    slope: float  # a tilt, and
    moment: float  # log of the moment there: K(slope) - slope centre
    variance: float  # the sum is raised by more than drift + u with a chance of at most exp(-u^2 / (2 variance))

    def upper(self, epsilon: float) -> float:
        """Return at least delta."""
        if epsilon >= self.top:
            return min(1.0, self.infinite)
        at = epsilon - self.slip
        if at < self.first * self.step:
            return 1.0
        value, wrong = self._value(at)
        finite = self.scale * (1 + self.error) * (value + wrong + self.above * self._peak(at))
        return min(1.0, (self.infinite + self.lost + finite) * (1 + 8 * _ULP))

    def lower(self, epsilon: float) -> float:
        """Return at most the finite part of delta on the grid."""
        at = epsilon + self.slip
        if at - self.centre > 600 or self.error >= 1:
            return 0.0
        value, wrong = self._value(at)
        return max(0.0, self.scale * (1 - self.error) * (value - wrong - self.outside * self._peak(at)))

    @property
    def lowest(self) -> float:
        """The smallest epsilon whose `upper` says anything."""
        return (self.first + 1) * self.step + self.slip

    def _value(self, epsilon: float) -> tuple[float, float]:
        """Return the finite part of delta on the grid, without its scale, and by how much it may be wrong.

        The noise meets the weights w(y) = e^(-t y) (1 - e^-y) of y = x_i - eps > 0. Their squares rise and fall once,
        so they add up to at most their integral, divided by the step, and their largest one.
        """
        k = min(max(math.floor(epsilon / self.step) + 1 - self.first, 0), len(self.ahead) - 1)
        ahead, behind = float(self.ahead[k]), exp(epsilon - self.centre) * float(self.behind[k])
        t, points = 2 * self.tilt, len(self.ahead)
        largest = exp(-self.tilt * (epsilon - self.centre))
        integral = 2 / (t * (t + 1) * (t + 2)) if t > 1e-9 else math.inf
        noise = self.noise * largest * math.sqrt(min(integral / self.step + 1, points))
        # A sum of n terms is right to n ulp of the sum of their sizes, and they are positive up to the noise.
        sizes = abs(ahead) + abs(behind) + 4 * self.noise * largest * math.sqrt(points)
        return ahead - behind, noise + 4 * _ULP * points * sizes + 1e-100

    def _peak(self, epsilon: float) -> float:
        """Return the largest weight."""
        t = self.tilt
        return math.pow(t / (1 + t), t) / (1 + t) * exp(-t * (epsilon - self.centre))

    def shortfall(self, epsilon: float, small: float) -> tuple[float, float]:
        """Return a gap and an eta such that the true finite delta at epsilon - gap is at least lower(epsilon) - eta.

        Theorem     Given the true losses, the grid moves the sum S by an independent W, sub-Gaussian around at most
                    `drift` with the variance V. Since g = (1 - e^(eps - .))_+ grows by at most 1 per nat,
                    E g(S + W - gap) - E g(S) <= E integral over u > 0 of 1[W > gap + u] 1[S > eps - u]
                    <= integral of e^(-(G + u)^2 / 2V) e^(K(s) - s (eps - u)), where G = gap - drift: the first
                    factor by Hoeffding, the second by Chernoff, for any s. For G = s V + k sqrt(V) that is at
                    most e^(K(s) - s eps - G^2 / 2V) sqrt(V) / k: the smaller, the larger k. `small` will do.
        """
        if self.variance == 0:
            return self.drift, 0.0
        spread = math.sqrt(self.variance)
        base = self.moment - self.slope * (epsilon - self.drift - self.centre)
        base += self.slope**2 * self.variance / 2 + math.log(spread) + math.log1p(self.error)
        k = 0.5
        while k < 50 and base - k * k / 2 - math.log(k) > math.log(small):
            k *= 1.1
        gap = self.drift + self.slope * self.variance + k * spread
        return gap * (1 + 1e-9), exp(base - k * k / 2 - math.log(k)) * (1 + 1e-9)

    def epsilon_at(self, delta: float) -> float:
        """Return about the epsilon whose finite part of delta is `delta`: a guess, to be tested."""
        wanted = delta / self.scale if self.scale else math.inf
        k = self._first_at_most(wanted)
        ahead, behind = float(self.ahead[k]), float(self.behind[k])
        if k == 0 or ahead <= wanted or behind <= 0:
            return (self.first + k) * self.step
        return math.log((ahead - wanted) / behind) + self.centre

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
        at = exp((self.first + k) * self.step - self.centre)
        return float(self.ahead[k]) - at * float(self.behind[k])

    def chernoff(self, finite: float) -> float:
        """Return an epsilon at which the finite part of delta is surely at most `finite`, by the moment alone."""
        if self.slope == 0:
            return math.inf
        bound = (self.moment + math.log1p(self.error) - math.log(finite)) / self.slope
        return self.centre + bound + self.slip + 1e-12 * (abs(self.centre) + abs(bound))


def exp(x: float) -> float:
    """Return e^x, or e^700 where that is more."""
    return math.exp(min(x, 700.0))
