"""What came of guessing an attribute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import Attributes
    from discreet.privacy import NotPrivate

__all__ = ["AttributesAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttributesAnswer:
    """How often the guess was right, and how much of that was learnt from the person's row; limits are at 95 %."""

    secret: str
    right: Share
    without: Share
    commonest: Share
    advantage: float
    advantage_low: float
    advantage_high: float
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Attributes]) -> AttributesAnswer:
        """Read what was found."""
        result = found.value
        low, high = result.advantage_limits()
        return cls(
            secret=result.secret,
            right=Share.of_success(result.right),
            without=Share.of_success(result.without),
            commonest=Share.of_success(result.commonest),
            advantage=result.advantage,
            advantage_low=low,
            advantage_high=high,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
