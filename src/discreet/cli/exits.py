"""Which error ends a command with which exit code: the one place where this is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import final

import typer
from typer.exceptions import TyperException

from discreet.cli.output import Block
from discreet.errors import (
    AnswerFailed,
    BudgetExceeded,
    DiscreetError,
    InvalidParameter,
    LedgerDamaged,
    LedgerUnavailable,
    MissingLibrary,
    NoiseOverflow,
    NotAuthorised,
    Refused,
    UnsupportedEvent,
)

__all__ = ["EXITS", "KINDS", "MEANINGS", "Code", "Failure", "Reason", "code_of", "kind_of"]


@final
class Code(IntEnum):
    """How a command ended."""

    OK = 0
    USAGE = 2
    REFUSED = 3
    EXHAUSTED = 4
    NOT_AUTHORISED = 5
    NOT_CHECKED = 6
    BUG = 70
    INTERRUPTED = 130

    @property
    def word(self) -> str:
        """How people call it."""
        return _WORDS[self]


# Shown before messages, and as the kind of an error that is not ours, in JSON: these words never change.
_WORDS: Mapping[Code, str] = {
    Code.OK: "ok",
    Code.USAGE: "usage",
    Code.REFUSED: "refused",
    Code.EXHAUSTED: "exhausted",
    Code.NOT_AUTHORISED: "not authorised",
    Code.NOT_CHECKED: "not checked",
    Code.BUG: "bug",
    Code.INTERRUPTED: "interrupted",
}

MEANINGS: Mapping[Code, str] = {
    Code.OK: "done",
    Code.USAGE: "invalid command, file or parameter; nothing was spent",
    Code.REFUSED: "refused, not confirmed, or a check failed",
    Code.EXHAUSTED: "the price exceeds the budget or a quota; nothing was spent",
    Code.NOT_AUTHORISED: "this user is not authorised; nothing was spent",
    Code.NOT_CHECKED: "nothing was found wrong, but not everything could be verified",
    Code.BUG: "an internal error of discreet",
    Code.INTERRUPTED: "stopped by Ctrl-C; what was charged until then stays charged",
}

EXITS: Mapping[type[BaseException], Code] = {
    InvalidParameter: Code.USAGE,
    MissingLibrary: Code.USAGE,
    TyperException: Code.USAGE,
    FileNotFoundError: Code.USAGE,
    FileExistsError: Code.USAGE,
    IsADirectoryError: Code.USAGE,
    NotADirectoryError: Code.USAGE,
    Refused: Code.REFUSED,
    UnsupportedEvent: Code.REFUSED,
    AnswerFailed: Code.REFUSED,
    NoiseOverflow: Code.REFUSED,
    LedgerDamaged: Code.REFUSED,
    LedgerUnavailable: Code.REFUSED,
    DiscreetError: Code.REFUSED,
    typer.Abort: Code.REFUSED,
    OSError: Code.REFUSED,
    BudgetExceeded: Code.EXHAUSTED,
    NotAuthorised: Code.NOT_AUTHORISED,
    PermissionError: Code.NOT_AUTHORISED,
    KeyboardInterrupt: Code.INTERRUPTED,
}


def code_of(error: BaseException) -> Code:
    """Return the exit code of an error: that of the nearest class which has one; anything unknown is a bug."""
    return next((EXITS[kind] for kind in type(error).__mro__ if kind in EXITS), Code.BUG)


# The kind of an error of ours in JSON, which scripts compare: these words never change.
KINDS: Mapping[type[BaseException], str] = {
    DiscreetError: "DiscreetError",
    InvalidParameter: "InvalidParameter",
    UnsupportedEvent: "UnsupportedEvent",
    MissingLibrary: "MissingLibrary",
    Refused: "Refused",
    BudgetExceeded: "BudgetExceeded",
    AnswerFailed: "AnswerFailed",
    LedgerDamaged: "LedgerDamaged",
    LedgerUnavailable: "LedgerUnavailable",
    NotAuthorised: "NotAuthorised",
    NoiseOverflow: "NoiseOverflow",
}


def kind_of(error: BaseException) -> str:
    """Return what an error is called in JSON: its nearest class of ours, or the word of its exit code."""
    return next((KINDS[kind] for kind in type(error).__mro__ if kind in KINDS), code_of(error).word)


# --- failures: What is told of a command that failed. ---


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
