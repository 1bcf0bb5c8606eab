"""What a command is about to spend, and the yes that it needs: on a terminal by an answer, elsewhere by a limit."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.cli.output import note
from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive, up

if TYPE_CHECKING:
    from discreet.ledger import Budget
    from discreet.privacy import Event

__all__ = ["Price", "agree", "can_ask", "price_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A price in words, and as an epsilon, rounded up; None where nobody said at which delta."""

    words: str
    epsilon: float | None


def price_of(event: Event, words: str, *, budget: Budget, at_delta: str | None) -> Price:
    """Price an event at the delta of its budget, or at another one."""
    from discreet.privacy import Relation, epsilon

    delta = at_delta if at_delta is not None else 0 if budget.kind == "pure" else budget.delta
    return Price(words=words, epsilon=None if delta is None else epsilon(event, delta, relation=Relation.ADD_REMOVE))


def agree(price: Price, *, max_epsilon: str | None, what: str) -> None:
    """Go on if whoever asks has agreed to the price; else refuse, and nothing is spent."""
    note(f"price: {price.words}")
    if max_epsilon is not None:
        _check(price, max_epsilon)
    elif not can_ask():
        raise InvalidParameter(
            f"{what} spends {price.words}, and there is no terminal to ask on: say how much you agree to, with "
            "--max-epsilon. Nothing was spent"
        )
    elif not _says_yes(f"Spend it on {what}? It cannot be taken back. [y/N] "):
        raise Refused("not agreed; nothing was spent")


def _check(price: Price, limit: str) -> None:
    most = positive(limit, name="--max-epsilon")
    if price.epsilon is None:
        raise InvalidParameter(
            "this budget is in ρ and names no δ, so --max-epsilon needs one: say --at-delta, such as 1e-6"
        )
    if price.epsilon > up(most):
        raise Refused(
            f"the price, ε = {price.epsilon:.6g}, is above --max-epsilon {limit.strip()}",
            reason="whoever runs this has agreed to less; nothing was spent",
            way_out="offer less for the answer, or agree to more",
        )


def can_ask() -> bool:
    """Tell whether somebody sits at a terminal who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _says_yes(question: str) -> bool:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
