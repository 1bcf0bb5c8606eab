"""What noisy tables say of the effects of the true counts: one value and one precision for each.

The noise of a measured table is independent between its effects. So what several measurements say of one effect is
joined by a mean, weighted by precision, and

    sum over measured cells of (count - measured)^2 / (2 sigma^2)
        = sum over effects of precision (effect - value)^2 / 2  +  what no model can avoid,

for counts that sum to the total. [XHZK23]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.effects import Effects, effects_within
from discreet.synth.tables.graphical.linear import places
from discreet.synth.tables.graphical.measured import NoisyMarginal

__all__ = ["Knowledge"]


@dataclass(frozen=True, slots=True)
class _Uneven:
    """A column's effect whose cells are not equally well known: a matrix of precision, and its inverse."""

    span: slice
    precision: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The value of every effect and how precisely it is known; effects that were not measured have precision zero."""

    value: Floats
    precision: Floats
    variance: Floats
    uneven: tuple[_Uneven, ...]
    unavoidable: float

    @staticmethod
    def of(sizes: Sequence[int], effects: Effects, measured: Sequence[NoisyMarginal], total: float) -> Knowledge:
        """Join all measurements."""
        value, precision = np.zeros(effects.length), np.zeros(effects.length)
        matrices: dict[tuple[int, int], Floats] = {}
        for one in measured:
            _join(sizes, effects, one, total, value, precision, matrices)
        uneven = tuple(_matrix(slice(*span), weights, precision) for span, weights in matrices.items())
        for part in uneven:
            precision[part.span] = np.diag(part.precision)  # Only to say that it was measured, and about how well.
        variance = np.divide(1.0, precision, out=np.zeros_like(precision), where=precision > 0)
        value = effects.centred(value)
        known = Knowledge(value, precision, variance, uneven, 0.0)
        best = known.times_variance(value)
        rest = (math.fsum(_squares(one, total) for one in measured) - float(best @ value)) / 2
        return Knowledge(best, precision, variance, uneven, max(0.0, rest))

    def times_precision(self, vector: Floats) -> Floats:
        """Multiply by the precisions."""
        result = vector * self.precision
        for one in self.uneven:
            result[one.span] = one.precision @ vector[one.span]
        return result

    def times_variance(self, vector: Floats) -> Floats:
        """Divide by the precisions; what was not measured becomes zero."""
        result = vector * self.variance
        for one in self.uneven:
            result[one.span] = one.variance @ vector[one.span]
        return result

    def loss(self, counts: Floats) -> float:
        """Return half the squared residuals of all measurements, in deviations of their noise."""
        apart = counts - self.value
        return float(apart @ self.times_precision(apart)) / 2 + self.unavoidable


def _join(
    sizes: Sequence[int],
    effects: Effects,
    one: NoisyMarginal,
    total: float,
    value: Floats,
    precision: Floats,
    matrices: dict[tuple[int, int], Floats],
) -> None:
    """Add what one measurement says, as marginals times precision."""
    if isinstance(one.deviation, float):
        for effect in effects_within(one.clique):
            span = effects.spans[effect]
            entries = span.stop - span.start
            sums = np.bincount(places(sizes, one.clique, effect), weights=one.values.ravel(), minlength=entries)
            weight = one.deviation**-2 * entries / one.values.size
            value[span] += sums * weight
            precision[span] += weight
        return
    span, weights = effects.spans[one.clique], one.deviation**-2
    pull = weights * (one.values - total / one.values.size)
    value[span] += pull
    held = matrices.setdefault((span.start, span.stop), np.zeros(weights.size))
    held += weights


def _matrix(span: slice, weights: Floats, precision: Floats) -> _Uneven:
    """Restrict diagonal weights, and the even precision of the same effect, to what sums to zero; and invert that."""
    size = weights.size
    centred = np.eye(size) - 1 / size
    whole = centred @ (weights[:, None] * centred) + centred * precision[span.start]
    # The mean direction is null; with any weight there the matrix can be inverted, and the weight is taken out again.
    level = float(weights.mean())
    return _Uneven(span, whole, np.linalg.inv(whole + level / size) - 1 / (size * level))


def _squares(one: NoisyMarginal, total: float) -> float:
    return float(np.sum(((one.values - total / one.values.size) / np.asarray(one.deviation)) ** 2))
