"""Averaging: whoever may ask again, and gets fresh noise each time, averages the noise away.

Against it stands memory: one answer is drawn, stored, and given again, as sessions store theirs with the ledger and
people their own randomised answers. [EPK14]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

from discreet import noise
from discreet.attacks.averaging_curve import Asked, AveragingCurve, averaging_curve
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Averaging", "Interface", "averaging"]

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


def averaging(
    interface: Interface, *, times: int, trials: int = 200, middle: float = 0.5, mechanism: Asked | None = None
) -> Averaging:
    """Ask an interface about a secret of our own making, again and again, and guess it from the average.

    `interface(secret)` sets up the secret, 0 or 1, and returns what is called for each answer: a number that is about
    1 higher if the secret is 1. The guess is 1 if the average is above the `middle`. Secrets are fair coins, so that a
    coin is right half of the time. Nobody's data are in it: what is attacked is the interface.
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
