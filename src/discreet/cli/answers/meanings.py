"""What an ε means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.privacy import Meaning

__all__ = ["BeliefAnswer", "DeploymentAnswer", "FoundShareAnswer", "MeaningAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundShareAnswer:
    """Which share of those in the data is found, at most, if this share of the others is wrongly accused."""

    false_alarms: float
    found: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefAnswer:
    """How sure somebody may become who was this sure before."""

    before: float
    after: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAnswer:
    """What somebody else has said about their ε, and the share of right guesses against it."""

    who: str
    what: str
    epsilon: float
    delta: float
    success: float
    source: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningAnswer:
    """How far the best attacker gets, rounded up. An ε of null means that there is none at this δ."""

    said: str
    epsilon: float | None
    delta: float
    success: float  # share of right guesses where a coin gets one half
    odds: float | None  # the factor by which odds may change, apart from a chance of δ
    found: list[FoundShareAnswer]
    beliefs: list[BeliefAnswer]
    deployments: list[DeploymentAnswer]
    text: str

    @classmethod
    def of(cls, found: Meaning) -> MeaningAnswer:
        """Read what was found."""
        plain = found.to_json()
        return cls(
            **{name: plain[name] for name in ("said", "epsilon", "delta", "success", "odds")},
            found=[FoundShareAnswer(**one) for one in plain["found"]],
            beliefs=[BeliefAnswer(**one) for one in plain["beliefs"]],
            deployments=[DeploymentAnswer(**one) for one in plain["deployments"]],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
