"""What the last digits of a noise function tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import FloatingPoint

__all__ = ["FloatingPointAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingPointAnswer:
    """Whether a claim is refuted. An `epsilon_at_least` of null means that no ε holds."""

    inputs: list[float]
    samples: int
    epsilon: float
    delta: float
    error: float  # the chance that a correct function is called broken
    broken: bool
    epsilon_at_least: float | None
    telling: str
    seen: list[Share]
    baseline: float  # the share of such outputs that the claim allows
    unreachable: list[Share] | None  # null if the law is unknown
    text: str

    @classmethod
    def of(cls, found: FloatingPoint) -> FloatingPointAnswer:
        """Read what was found."""
        plain = found.to_json()
        exact = None if found.unreachable is None else [Share.of_success(one) for one in found.unreachable]
        names = ("inputs", "samples", "epsilon", "delta", "error", "broken", "epsilon_at_least", "telling", "baseline")
        return cls(
            **{name: plain[name] for name in names},
            seen=[Share.of_success(one) for one in found.seen],
            unreachable=exact,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
