"""`discreet backup`: what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block, Styled

if TYPE_CHECKING:
    from discreet.server.watch.backup import StateFacts

__all__ = ["CheckedCopy", "RestoredState"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCopy:
    """A state of a server, or a copy of it, whose log is as it was written."""

    name: str
    format: int
    decisions: int
    last: str | None
    people: int
    jobs: int

    @classmethod
    def of(cls, facts: StateFacts) -> CheckedCopy:
        """Say what was found."""
        last = None if facts.last is None else datetime.fromtimestamp(facts.last, UTC).isoformat(timespec="seconds")
        return cls(
            name=facts.name,
            format=facts.format,
            decisions=facts.decisions,
            last=last,
            people=facts.people,
            jobs=facts.jobs,
        )

    def blocks(self) -> Iterator[Block]:
        until = "" if self.last is None else f", the last of {self.last}"
        yield Styled(f"{self.name} holds: {self.decisions} decisions{until}", "bold")
        yield f"format {self.format}, {self.people} accounts, {self.jobs} releases"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredState:
    """A state that was put back: all tokens, invitations, passwords and visits are void, and caps are used up."""

    state: CheckedCopy
    invitations: dict[str, str]

    def blocks(self) -> Iterator[Block]:
        yield from self.state.blocks()
        yield "void: all tokens, invitations, passwords and visits; caps of tokens are used up"
        yield "look at grants and disabled accounts: those of the copy count again (`discreet user list`)"
        for name, secret in self.invitations.items():
            yield f"invitation of {name}, shown this once:"
            yield Styled(secret, "bold")
