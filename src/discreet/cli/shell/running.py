"""A sitting from its beginning to its end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.cli.asking import TypedOffer
from discreet.cli.exits import Code
from discreet.cli.output import note
from discreet.cli.shell.lines import statements
from discreet.cli.shell.sitting import COMMANDS, Sitting
from discreet.cli.shell.terminal import prepare_terminal

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = ["sit"]


def sit(
    session: Session,
    epsilon: str | None,
    delta: str | None,
    *,
    principal: str,
    max_epsilon: str | None,
    at_delta: str | None,
) -> Code:
    """Hear every statement. On a terminal a mistake ends nothing; elsewhere the first one's code is the exit code."""
    offer = TypedOffer(epsilon=epsilon, delta=delta)
    sitting = Sitting(session, offer, principal=principal, max_epsilon=max_epsilon, at_delta=at_delta)
    at_terminal = sys.stdin.isatty()
    if at_terminal:
        prepare_terminal([*COMMANDS, *_names(session)])
        note(r"A question is one SELECT and ends with ; — \help for more, \quit to leave.")
    codes = [sitting.hear(statement) for statement in statements()]
    return Code.OK if at_terminal else next((code for code in codes if code), Code.OK)


def _names(session: Session) -> Iterator[str]:
    for table in session.catalogue.tables.values():
        yield table.name
        yield from table.columns
