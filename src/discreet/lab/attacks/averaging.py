"""Averaging: whoever may ask again, and gets fresh noise each time, averages the noise away.

Against it stands memory: one answer is drawn, stored, and given again, as sessions store theirs with the ledger and
people their own randomised answers. [EPK14]
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.lab.attacks.populations import Floats
from discreet.lab.attacks.success_rates import Success
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.pages.progress import working
from discreet.privacy import Repeated, delta

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Asked", "Averaging", "AveragingCurve", "Interface", "averaging", "averaging_curve"]

# --- averaging_curve: How soon averaging knows a secret, exactly: by the law of the sum of so many fresh answers. ---


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

    __repr__ = __str__


def averaging_curve(mechanism: Asked, times: Sequence[int]) -> AveragingCurve:
    """Return the chance to know a yes or no after each number of answers: of a person, or whether one is counted.

    Theorem     The truth is on the right side of the middle if the sum of k noises is below k/2; on the middle a coin
                decides. For randomized response this vote is the best test there is, so it meets the ceiling. [NP33]

    Args:
        mechanism: `RandomizedResponse` for yes or no, or `Laplace` or `Gaussian` for a count.
        times: The numbers of answers.

    Returns:
        The chances, and the ceiling of each.

    Raises:
        InvalidParameter: If there are no numbers of answers, or answers are not yes or no.

    Examples:
        >>> curve = dp.attacks.averaging_curve(dp.mechanisms.RandomizedResponse.for_epsilon(1), [1, 3, 30])
        >>> [round(chance, 3) for chance in curve.chances]
        [0.731, 0.822, 0.996]
    """
    listed = sorted(set(times))
    if not listed or listed[0] < 1:
        raise InvalidParameter("times must be at least one number of answers, each at least 1")
    if isinstance(mechanism, RandomizedResponse) and mechanism.categories != 2:
        raise InvalidParameter("averaging_curve takes randomized response with two categories")
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
    return InvalidParameter(
        "the sum of so many noise values of this scale is too long to compute: take less noise, or fewer answers"
    )


def _check_unit(mechanism: Laplace | Gaussian) -> None:
    one = mechanism.sensitivity if isinstance(mechanism, Laplace) else mechanism.squared_sensitivity
    if one != 1:
        raise InvalidParameter("averaging_curve takes mechanisms of sensitivity 1: counts that one person changes by 1")


Interface: TypeAlias = Callable[[int], Callable[[], float]]  # of a secret, 0 or 1: what is asked again and again


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Averaging:
    """How often a secret bit is guessed right after so many answers, by asking and averaging."""

    times: int
    right: Success
    repeated: Success  # trials in which all answers were the same: they come from memory
    curve: AveragingCurve | None  # what fresh noise would lead to, if its mechanism is known

    @property
    def ceiling(self) -> float | None:
        """The share that no attacker exceeds after one answer: all that there is to see, if it is remembered."""
        return None if self.curve is None else self.curve.ceilings[0]

    def plot(self) -> alt.LayerChart:
        """Draw the share that was right beside that of a coin, and of fresh noise."""
        from discreet import plots

        low, high = self.right.interval()
        rows = [("guessed right", self.right.share, low, high), ("by tossing a coin", 0.5, 0.5, 0.5)]
        if self.curve is not None:
            new, kept = self.curve.chances[-1], self.curve.remembered
            rows += [("if noise were fresh", new, new, new), ("if it is remembered", kept, kept, kept)]
        labels, shares, lows, highs = (list(column) for column in zip(*rows, strict=True))
        title = f"One secret, asked {self.times:,} times"
        return plots.error_bars(labels, shares, lows, highs, across="share of secrets that are right", title=title)

    def to_json(self) -> str:
        """Write the figures."""
        return json.dumps(
            {
                "attack": "averaging",
                "times": self.times,
                "right": [self.right.hits, self.right.of],
                "repeated": [self.repeated.hits, self.repeated.of],
                "fresh": None if self.curve is None else self.curve.chances[-1],
                "remembered": None if self.curve is None else self.curve.remembered,
                "ceiling": self.ceiling,
            }
        )

    def __str__(self) -> str:
        low, high = self.right.interval()
        told: list[tuple[str, Any]] = [
            ("guessed right", f"{self.right}, between {100 * low:.0f} and {100 * high:.0f} %"),
            ("by tossing a coin", "50 %"),
            ("always the same answer", self.repeated),
        ]
        if self.curve is not None:
            told.append(("if noise were fresh", f"{100 * self.curve.chances[-1]:.1f} %"))
            told.append(("if it is remembered", f"{100 * self.curve.remembered:.1f} %"))
        width = max(len(label) for label, _ in told)
        lines = [f"one secret, a yes or no, asked {self.times:,} times"]
        return "\n".join(lines + [f"  {label:<{width}}  {value}" for label, value in told])

    __repr__ = __str__


@working("attacking", terminal=False)
def averaging(
    interface: Interface, *, times: int, trials: int = 200, middle: float = 0.5, mechanism: Asked | None = None
) -> Averaging:
    """Ask an interface about a secret of our own making, again and again, and guess it from the average.

    `interface(secret)` sets up the secret, 0 or 1, and returns what is called for each answer: a number that is about
    1 higher if the secret is 1. The guess is 1 if the average is above the `middle`. Secrets are fair coins, so that a
    coin is right half of the time. Nobody's data are in it: what is attacked is the interface.

    Args:
        interface: The function from a secret, 0 or 1, to what is called for each answer.
        times: How often an answer is asked for.
        trials: How many secrets are made up.
        middle: What the average is compared with.
        mechanism: The mechanism behind it, whose exact curve is then told beside.

    Returns:
        How often the guess was right, and how often all answers were the same.

    Raises:
        InvalidParameter: If there is nothing to ask, or nothing to guess.

    Examples:
        >>> coin = dp.mechanisms.RandomizedResponse.for_epsilon(1)
        >>> def remembering(secret):
        ...     respondent = dp.mechanisms.Respondent(coin)
        ...     return lambda: respondent.answer("did you ever …", secret)
        >>> print(dp.attacks.averaging(remembering, times=10, trials=20).repeated)
        20 of 20 (100 %)
    """
    if times < 1 or trials < 1:
        raise InvalidParameter("times and trials must be at least 1")
    right = same = 0
    for secret in noise.bernoulli("1/2", trials).tolist():
        answers = _asked(interface(secret), times)
        right += _guess(answers, middle) == secret
        same += len(set(answers)) == 1
    curve = None if mechanism is None else averaging_curve(mechanism, sorted({1, times}))
    return Averaging(times=times, right=Success(right, trials), repeated=Success(same, trials), curve=curve)


def _asked(ask: Callable[[], float], times: int) -> list[float]:
    return [float(ask()) for _ in range(times)]


def _guess(answers: Sequence[float], middle: float) -> int:
    """Guess from the average; on the middle itself, by a coin."""
    total = sum(answers) - middle * len(answers)
    return int(noise.bernoulli("1/2")) if total == 0 else int(total > 0)
