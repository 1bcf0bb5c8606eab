"""What is told of people who are alone with their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block

if TYPE_CHECKING:
    from discreet.attacks import SingledOut, Uniqueness
    from discreet.privacy import NotPrivate

__all__ = ["CombinationAnswer", "SingledOutAnswer", "UniquenessAnswer"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CombinationAnswer:
    """Some columns, the share of people who are alone, and people by the size of their crowd."""

    columns: list[str]
    unique: float
    crowds: dict[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniquenessAnswer:
    """Every combination, the worst first."""

    columns: list[str]
    size: int
    rows: int
    people: int
    combinations: list[CombinationAnswer]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Uniqueness]) -> UniquenessAnswer:
        """Read what was found."""
        from discreet.attacks.uniqueness import CROWDS

        result = found.value
        combinations = [
            CombinationAnswer(
                columns=list(one.columns),
                unique=one.unique.share,
                crowds=dict(zip(CROWDS, one.profile, strict=True)),
            )
            for one in result.combinations
        ]
        return cls(
            columns=list(result.columns),
            size=result.size,
            rows=result.rows,
            people=result.people,
            combinations=combinations,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SingledOutAnswer:
    """How many fit one record, by each fact and by all, and the fewest facts that fit one person only."""

    columns: list[str]
    size: int
    people: int
    fits: int
    combinations: list[list[str]]
    crowds: dict[str, int]
    text: str

    @classmethod
    def of(cls, found: NotPrivate[SingledOut]) -> SingledOutAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            columns=list(result.columns),
            size=result.size,
            people=result.people,
            fits=result.fits,
            combinations=[list(columns) for columns in result.combinations],
            crowds=dict(result.crowds),
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
