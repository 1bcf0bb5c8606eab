"""One question on the command line: from words to an offer, from a plan to an answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from discreet.cli.answers.tables import Explained, TableAnswer
from discreet.cli.spending import agree, limit_of, price_of
from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    from discreet.query import Plan, Session

__all__ = ["TypedOffer", "ask", "explained", "planned"]

_LONGEST = 1_000_000  # Characters of a question.


@final
@dataclass(frozen=True, slots=True)
class TypedOffer:
    """What was said about the price, as it was typed."""

    epsilon: str | None = None
    rho: str | None = None
    share: str | None = None
    error: str | None = None
    relative_error: str | None = None
    expected: Sequence[str] | None = None
    delta: str | None = None
    keys: Sequence[str] | None = None
    key: str | None = None

    def words(self) -> dict[str, Any]:
        """Return the words of `Session.sql`."""
        plain = ("epsilon", "rho", "share", "error", "relative_error", "delta", "key")
        said: dict[str, Any] = {name: getattr(self, name) for name in plain}
        return said | {"expected": _expected(self.expected or ()), "keys": _keys(self.keys or ())}


def planned(session: Session, sql: str, offer: TypedOffer) -> Plan:
    """Read a question and price it."""
    text = sys.stdin.read(_LONGEST) if sql == "-" else sql
    return session.sql(text, **offer.words())


def ask(session: Session, sql: str, offer: TypedOffer, *, max_epsilon: str | None, at_delta: str | None) -> TableAnswer:
    """Price a question, agree, pay, and answer."""
    plan = planned(session, sql, offer)
    price = price_of(plan.event, plan.cost, budget=session.ledger.account.budget, at_delta=at_delta)
    agree(price, limit=limit_of(max_epsilon), what="this question")
    return TableAnswer.of(plan.release())


def explained(session: Session, sql: str, offer: TypedOffer) -> Explained:
    """Price a question and say how it would be answered."""
    return Explained.of(planned(session, sql, offer).explain())


def _expected(said: Sequence[str]) -> int | dict[str, str] | None:
    """Read `1000`, or `age=45` and `*=1000`."""
    pairs = [part.split("=", 1) if "=" in part else ["*", part] for part in said]
    return {name.strip(): value for name, value in pairs} or None


def _keys(said: Sequence[str]) -> dict[str, list[str]] | None:
    """Read `clinic=Harbour,Hillside`."""
    for part in said:
        if "=" not in part:
            raise InvalidParameter("--keys is column=one,two: a column, and all of its values that may appear")
    pairs = (part.split("=", 1) for part in said)
    return {name.strip(): [value.strip() for value in values.split(",")] for name, values in pairs} or None
