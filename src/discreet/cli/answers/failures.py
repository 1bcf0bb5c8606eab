"""What is told of a command that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from discreet.cli.output import Block

__all__ = ["Failure", "Reason"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a command failed: our class of error, or a word for it; where, in the text of a question."""

    kind: str
    code: int
    message: str
    line: int | None
    column: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A command that failed. With `--json` this goes to stderr."""

    error: Reason

    def blocks(self) -> Iterator[Block]:
        yield f"{self.error.kind}: {self.error.message}"
