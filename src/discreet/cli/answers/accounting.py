"""What the accountant answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from discreet.cli.output import Block

__all__ = ["Calibrated", "ComposedTotal", "Converted"]


def _number(value: float | None) -> str:
    return "∞" if value is None else f"{value:.6g}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTotal:
    """The total of some events. An ε of null means that there is none at this δ."""

    epsilon: float | None  # rounded up
    lower: float | None  # the worst mechanism with these events has at least this ε
    delta: float
    best_true_positives: float | None  # of an attacker who wrongly accuses at most one in twenty

    def blocks(self) -> Iterator[Block]:
        yield f"ε = {_number(self.epsilon)} at δ = {_number(self.delta)}"
        if self.lower is not None and self.epsilon is not None:
            yield f"proven: the worst case is between {_number(self.lower)} and {_number(self.epsilon)}"
        if self.best_true_positives is not None:
            yield (
                "in words: whoever tries to tell if one person is in the data, and accuses 5 % of the others wrongly, "
                f"is right about at most {100 * self.best_true_positives:.3g} % of those who are"
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """One way of saying privacy in the others."""

    given: str
    epsilon: float | None  # at `delta`, rounded up; null if there is none
    delta: float
    rho: float | None  # rounded up; null if there is none

    def blocks(self) -> Iterator[Block]:
        yield f"{self.given}: ε = {_number(self.epsilon)} at δ = {_number(self.delta)}"
        if self.rho is not None:
            yield f"{self.given}: ρ = {_number(self.rho)}, zero-concentrated"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The least noise that keeps a promise."""

    noise: str
    noise_multiplier: float  # noise in units of the sensitivity, rounded up
    epsilon: float  # what is reached, rounded up
    delta: float
    steps: int
    sampling_rate: float

    def blocks(self) -> Iterator[Block]:
        name = "σ" if self.noise == "gaussian" else "scale"
        each = f"in each of {self.steps:,} releases" if self.steps > 1 else "in one release"
        yield f"{self.noise} noise of {name} = {self.noise_multiplier:.8g} times the sensitivity, {each}"
        yield f"reaches ε = {_number(self.epsilon)} at δ = {_number(self.delta)}"
