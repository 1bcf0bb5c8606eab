"""What came of an attack on sticky noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import Sticky, StickyResult
    from discreet.privacy import NotPrivate

__all__ = ["MethodAnswer", "StickyAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodAnswer:
    """One way of attacking."""

    method: str
    right: Share
    questions: float  # for each victim, on average
    refused: float  # the share of questions that were not answered

    @classmethod
    def of(cls, one: StickyResult) -> MethodAnswer:
        """Read what was found."""
        right = Share.of_success(one.right)
        return cls(method=one.method, right=right, questions=one.questions, refused=one.refused)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StickyAnswer:
    """How often secrets, which were tossed, were guessed right."""

    system: str
    known: list[str]
    secret: str
    unique: Share
    exposed: Share
    baseline: float
    ceiling: float | None  # null if nothing is promised
    guessed: list[MethodAnswer]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Sticky]) -> StickyAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            system=result.system,
            known=list(result.known),
            secret=result.secret,
            unique=Share.of_success(result.unique),
            exposed=Share.of_success(result.exposed),
            baseline=result.baseline,
            ceiling=result.ceiling,
            guessed=[MethodAnswer.of(one) for one in result.guessed],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
