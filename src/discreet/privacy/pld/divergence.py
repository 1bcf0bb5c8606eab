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
    drift: float  # by how much the grid raises the sum on average, at most
    moments: tuple[tuple[float, float], ...]  # slopes s with K(s) - s centre
    variance: float  # the sum is raised by more than drift + u with a chance of at most exp(-u^2 / (2 variance))

    def upper(self, epsilon: float) -> float:
        """Return at least delta."""
        if epsilon >= self.top:
            return min(1.0, self.infinite)
        return min(1.0, (self.infinite + self.lost + self.finite(epsilon)) * (1 + 8 * _ULP))

    def finite(self, epsilon: float) -> float:
        """Return at least the finite part of delta, apart from what was lost."""
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
        nearer = exp(min(0.0, epsilon - (self.first + k) * self.step))
        return float(self.ahead[k]), nearer * float(self.behind[k])

    def _peak(self, epsilon: float) -> float:
        """Return the largest weight."""
        t = self.tilt
        return math.pow(t / (1 + t), t) / (1 + t) * exp(-t * (epsilon - self.centre))

    def shortfall(self, epsilon: float, small: float) -> tuple[float, float]:
        """Return a gap and an eta such that the true finite delta at epsilon - gap is at least lower(epsilon) - eta.

        Theorem     Given the true losses, the grid moves their sum S by an independent W: at most `drift` on average,
                    and more than drift + u with a chance of at most exp(-u^2 / 2V) [Hoe63]. As (1 - e^-y)_+ grows by
                    at most 1 per nat, eta may be the integral over u > 0 of P[W > gap + u] P[S > e - u], where
                    e = epsilon - gap. It is summed in steps of r = sqrt(V), for gap = drift + k r. It falls with k;
                    the first k with eta <= `small` will do.
        """
        if self.variance == 0:
            return self.drift, 0.0
        r, k = math.sqrt(self.variance), 0.5
        further = min((r * 4**power for power in range(6)), key=lambda c: self._chance(epsilon, c))
        while True:
            gap = (self.drift + k * r) * (1 + 1e-9)
            eta = sum(
                math.exp(-((k + j) ** 2) / 2) * self._chance(epsilon - gap - (j + 1) * r, further) for j in range(30)
            )
            # Beyond 30 steps all that is known of S is that its chances are at most 1.
            eta = (eta + math.exp(-((k + 30) ** 2) / 2)) * r * (1 + 1e-9)
            if eta <= small or k > 12:
                return gap, eta
            k *= 1.1

    def _chance(self, s: float, c: float) -> float:
        """Bound P[s < S < infinity]: it is at most delta(s - c) / (1 - e^-c), for any c > 0."""
        return min(1.0, (self.finite(s - c) + self.lost) / -math.expm1(-c))

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
