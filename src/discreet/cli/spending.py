"""What a command is about to spend, and the yes that it needs: on a terminal by an answer, elsewhere by a limit."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.cli.output import note, printable
from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive, up

if TYPE_CHECKING:
    from discreet.privacy import Event
    from discreet.query import Session

__all__ = ["PriceTag", "agree", "answer_to", "can_ask", "limit_of", "price_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTag:
    """A price in words, and as an epsilon, rounded up; None where nobody said at which delta. And the budget now."""

    words: str
    epsilon: float | None
    budget: str = ""


def price_of(event: Event, words: str, *, session: Session, at_delta: str | None) -> PriceTag:
    """Price an event: pure if it is, else at the delta of its budget, or at another one."""
    from discreet.privacy import epsilon

    budget, money = session.ledger.account.budget, session.money(like=event)
    relation = session.ledger.account.relation
    pure = epsilon(event, 0, relation=relation)
    delta = at_delta if at_delta is not None else budget.delta
    if math.isfinite(pure) or delta is None:
        return PriceTag(words=words, epsilon=pure if math.isfinite(pure) else None, budget=money)
    at = epsilon(event, delta, relation=relation)
    return PriceTag(words=words, epsilon=at if math.isfinite(at) else None, budget=money)


def limit_of(max_epsilon: str | None) -> Fraction | None:
    """Read what was agreed to."""
    return None if max_epsilon is None else positive(max_epsilon, name="--max-epsilon")


def agree(price: PriceTag, *, limit: Fraction | None, what: str) -> None:
    """Go on if whoever asks has agreed to the price; else refuse, and nothing is spent."""
    note(f"price: {price.words}")
    if price.budget:
        note(f"budget {price.budget}")
    if limit is not None:
        _check(price, limit)
    elif not can_ask():
        raise InvalidParameter(
            f"{what} spends {price.words}, and there is no terminal to ask on: say how much you agree to, with "
            "--max-epsilon. Nothing was spent"
        )
    elif answer_to(f"Spend it on {what}? It cannot be taken back. [y/N] ") not in ("y", "yes"):
        raise Refused("not confirmed; nothing was spent")


def _check(price: PriceTag, limit: Fraction) -> None:
    if price.epsilon is None:
        raise InvalidParameter(
            "this budget names no δ at which the price has an ε, so --max-epsilon needs one: say --at-delta, such as "
            "1e-6. Nothing was spent"
        )
    if price.epsilon > up(limit):  # Prices are rounded up to a float, so the limit is too: 0.3 does not exceed 0.3.
        digits = 6 if f"{price.epsilon:.6g}" != f"{float(limit):.6g}" else 17
        raise Refused(
            f"the price, ε = {price.epsilon:.{digits}g}, exceeds --max-epsilon, ε = {float(limit):.{digits}g}",
            reason="--max-epsilon is the largest price that is accepted; nothing was spent",
            way_out="spend less on the answer, or raise --max-epsilon",
        )


def can_ask() -> bool:
    """Tell whether somebody sits at a terminal who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def answer_to(question: str, *, fold: bool = True) -> str:
    """Ask on the terminal, and return what was typed; the end of the input is an empty answer."""
    sys.stderr.write(printable(question))
    sys.stderr.flush()
    typed = sys.stdin.readline().strip()
    return typed.casefold() if fold else typed
