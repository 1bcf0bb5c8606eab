"""What came of linking a table with a list of names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.answers.attacks import Share
from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import Linkage
    from discreet.privacy import NotPrivate

__all__ = ["LinkageAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageAnswer:
    """Who was named. The text and the sample are about real people."""

    on: list[str]
    named: Share
    people: Share | None  # null if no column tells whose records are whose
    unique: Share
    listed: Share
    ambiguous: int
    by_chance: int
    right: float
    sample: list[dict[str, str | None]]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Linkage]) -> LinkageAnswer:
        """Read what was found."""
        linked = found.value
        return cls(
            on=list(linked.on),
            named=Share.of_success(linked.named),
            people=None if linked.people is None else Share.of_success(linked.people),
            unique=Share.of_success(linked.unique),
            listed=Share.of_success(linked.listed),
            ambiguous=linked.ambiguous,
            by_chance=linked.by_chance,
            right=linked.right,
            sample=[{name: None if cell is None else str(cell) for name, cell in row.items()} for row in linked.sample],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
