"""How soon averaging knows a secret, exactly: by the law of the sum of so many fresh answers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from discreet.attacks.vectors import Floats
from discreet.errors import InvalidParameter
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.privacy import Repeated, delta

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Asked", "AveragingCurve", "averaging_curve"]

Asked: TypeAlias = RandomizedResponse | Laplace | Gaussian
_LONGEST = 1 << 24  # Points of a law of sums.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingCurve:
    """The chance to guess a yes or no right from the average of so many answers, each with fresh noise.

    With memory there is only one answer, and the chance stays that of `chances` at one.
    """

    times: tuple[int, ...]
    chances: tuple[float, ...]  # exact, to a dozen digits
    ceilings: tuple[float, ...]  # that no attacker exceeds, by what all answers spend together
    remembered: float  # the chance after any number of answers, if the first one is given again

    def known_after(self, chance: float) -> int | None:
        """The least number of answers listed after which the secret is known with this chance."""
        return next((k for k, reached in zip(self.times, self.chances, strict=True) if reached >= chance), None)

    def plot(self) -> alt.LayerChart:
        """Draw the chance against the number of answers: fresh, remembered, and the ceiling."""
        from discreet import plots

        curves = {
            "fresh noise": (self.times, self.chances),
            "no attacker exceeds": (self.times, self.ceilings),
            "remembered": (self.times, [self.remembered] * len(self.times)),
        }
        return plots.lines(
            curves, across="answers", up="chance to guess right", log_x=True, title="Asking again and averaging"
        )

    def to_json(self) -> str:
        """Write the curve."""
        return json.dumps(
            {
                "times": self.times,
                "chances": self.chances,
                "ceilings": self.ceilings,
                "remembered": self.remembered,
            }
        )

    def __str__(self) -> str:
        lines = ["answers  fresh noise  no attacker exceeds  remembered"]
        for k, chance, ceiling in zip(self.times, self.chances, self.ceilings, strict=True):
            lines.append(f"{k:>7,}  {chance:>11.4f}  {ceiling:>19.4f}  {self.remembered:>10.4f}")
        return "\n".join(lines)


def averaging_curve(mechanism: Asked, times: Sequence[int]) -> AveragingCurve:
    """Return the chance to know a yes or no after each number of answers: of a person, or whether one is counted.

    Theorem     The truth is on the right side of the middle if the sum of k noises is below k/2; on the middle a coin
                decides. For randomized response this vote is the best test there is, so it meets the ceiling. [NP33]
    """
    listed = sorted(set(times))
    if not listed or listed[0] < 1:
        raise InvalidParameter("times must be at least one number of answers, each at least 1")
    if isinstance(mechanism, RandomizedResponse) and mechanism.categories != 2:
        raise InvalidParameter("averaging is computed for answers that are yes or no")
    if not isinstance(mechanism, RandomizedResponse):
        _check_unit(mechanism)
    chances = tuple(_chance(mechanism, k) for k in listed)
    return AveragingCurve(
        times=tuple(listed),
        chances=chances,
        ceilings=tuple(_ceiling(mechanism, k) for k in listed),
        remembered=chances[0] if listed[0] == 1 else _chance(mechanism, 1),
    )


def _chance(mechanism: Asked, times: int) -> float:
    if isinstance(mechanism, RandomizedResponse):
        return _vote(float(mechanism.keep), times)
    # The secret is 0 and is taken for 1 if the sum of the noises is above times / 2; both sides are alike.
    law, reach = _sum_law(_pmf(mechanism), times)
    twice = 2 * np.arange(-reach, reach + 1) - times
    return float(law[twice < 0].sum() + law[twice == 0].sum() / 2)


def _vote(keep: float, times: int) -> float:
    """Return P(more than half are true), and half of P(just half)."""
    from scipy.special import bdtrc

    half = times // 2
    if times % 2:
        return float(bdtrc(half, times, keep))
    above = float(bdtrc(half, times, keep))
    return above + (float(bdtrc(half - 1, times, keep)) - above) / 2


def _pmf(mechanism: Laplace | Gaussian) -> Floats:
    """Return the chances of -r … r, beyond which there is nothing."""
    scale = float(mechanism.scale) if isinstance(mechanism, Laplace) else math.sqrt(mechanism.variance)
    reach = math.ceil(scale * (40 if isinstance(mechanism, Laplace) else 9)) + 1
    if reach > _LONGEST // 4:
        raise _too_long()
    points = np.arange(-reach, reach + 1)
    if isinstance(mechanism, Laplace):
        weights = np.exp(-np.abs(points) / scale)
        return np.asarray(weights / weights.sum())
    from scipy.special import ndtr

    below = ndtr((-np.abs(points) + 0.5) / scale)
    return np.asarray(below - ndtr((-np.abs(points) - 0.5) / scale))


def _sum_law(law: Floats, times: int) -> tuple[Floats, int]:
    """Return the law of a sum of independent draws, from -reach to reach, by Fourier transform."""
    one = len(law) // 2
    deviation = math.sqrt(float((law * (np.arange(len(law)) - one) ** 2).sum()))
    # Sums beyond twelve deviations wrap around: they are rarer than the rounding.
    reach = min(times * one, math.ceil(12 * deviation * math.sqrt(times)) + one)
    size = 1 << (2 * reach + 1).bit_length()
    if size > _LONGEST:
        raise _too_long()
    placed = np.zeros(size)
    np.add.at(placed, (np.arange(len(law)) - one) % size, law)
    summed = np.fft.irfft(np.fft.rfft(placed) ** times, size)
    return np.maximum(np.concatenate([summed[-reach:], summed[: reach + 1]]), 0.0), reach


def _ceiling(mechanism: Asked, times: int) -> float:
    """Return the largest chance of a right guess at even odds, by what all answers spend together: (1 + TV) / 2."""
    event: Any = mechanism.event if times == 1 else Repeated(mechanism.event, times)
    return (1 + delta(event, 0, relation=mechanism.relation)) / 2


def _too_long() -> InvalidParameter:
    return InvalidParameter("so much noise, so often, is more than can be computed: take less, or fewer answers")


def _check_unit(mechanism: Laplace | Gaussian) -> None:
    one = mechanism.sensitivity if isinstance(mechanism, Laplace) else mechanism.squared_sensitivity
    if one != 1:
        raise InvalidParameter("averaging is computed for counts that one person changes by 1")
