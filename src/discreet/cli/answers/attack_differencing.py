"""What is told of people whom differences of tables single out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import Differencing
    from discreet.privacy import NotPrivate

__all__ = ["DifferencingAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DifferencingAnswer:
    """How often the attribute was guessed right, with the row and without it. Null where there is no noise."""

    attribute: str
    people: int
    named: Share
    without: Share
    commonest: Share
    fresh: Share | None
    fresh_without: Share | None
    ceiling: float | None
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Differencing]) -> DifferencingAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            attribute=result.attribute,
            people=result.people,
            named=Share.of_success(result.named),
            without=Share.of_success(result.without),
            commonest=Share.of_success(result.commonest),
            fresh=None if result.fresh is None else Share.of_success(result.fresh),
            fresh_without=None if result.fresh_without is None else Share.of_success(result.fresh_without),
            ceiling=result.ceiling,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
