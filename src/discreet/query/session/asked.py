"""What is asked at once and paid by one charge: a question by itself, or several under names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

from discreet.mechanisms.text import significant_up
from discreet.privacy.events import Event
from discreet.query.engine import ExactCounts
from discreet.query.planning import PricedQuery, joint_event
from discreet.query.planning.fingerprint import fingerprint
from discreet.query.planning.spend import Spend
from discreet.query.results import ReleaseTable
from discreet.query.stage import Stage

__all__ = ["BatchRequest", "ChargedRequest", "Request"]


class ChargedRequest(Protocol):
    """What a desk needs to know of what is asked: its words, its price, what is read for it, and how it is drawn."""

    @property
    def text(self) -> str:
        """The question, or what it is for, as the ledger keeps it."""

    @property
    def key(self) -> str | None:
        """The idempotency key, if it has one."""

    @property
    def event(self) -> Event:
        """What is charged."""

    @property
    def cost(self) -> str:
        """The same in a few words."""

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What is spent on each question."""

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same question and price, and for no other."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is read."""

    def draw(self, tallied: Sequence[ExactCounts]) -> str:
        """Draw all noise once and write the answer down."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question with its price and, if it has one, its idempotency key."""

    text: str
    priced: PricedQuery
    key: str | None = None

    @property
    def event(self) -> Event:
        return self.priced.event

    @property
    def cost(self) -> str:
        return self.priced.cost

    @property
    def spends(self) -> tuple[Spend, ...]:
        return (self.priced.spend,)

    @property
    def fingerprint(self) -> str:
        return self.priced.fingerprint

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.priced.stage,)

    def draw(self, tallied: Sequence[ExactCounts]) -> str:
        (own,) = tallied
        return self.priced.draw(own).to_json()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Questions under names. All of them are paid, drawn and stored at once, or none is."""

    text: str
    parts: tuple[tuple[str, PricedQuery], ...]  # sorted by name: neither the price nor the answer depends on the order
    key: str | None = None

    @property
    def event(self) -> Event:
        return joint_event(priced.event for _, priced in self.parts)

    @property
    def cost(self) -> str:
        spends = self.spends
        deltas = sum((spend.delta or Fraction(0) for spend in spends), Fraction(0))
        if all(spend.rho is not None for spend in spends):
            total = f"ρ = {significant_up(sum((spend.rho or Fraction(0) for spend in spends), Fraction(0)))}"
            return f"{total}, δ = {significant_up(deltas)}" if deltas else total
        if not deltas and all(spend.epsilon is not None for spend in spends):
            return f"ε = {significant_up(sum((spend.epsilon or Fraction(0) for spend in spends), Fraction(0)))}"
        return "; ".join(f"{name}: {priced.cost}" for name, priced in self.parts)

    @property
    def spends(self) -> tuple[Spend, ...]:
        return tuple(priced.spend for _, priced in self.parts)

    @property
    def fingerprint(self) -> str:
        # With the key: two periods that ask the same of one version of the data are two releases.
        return fingerprint("together", self.key, tuple((name, priced.fingerprint) for name, priced in self.parts))

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(priced.stage for _, priced in self.parts)

    def draw(self, tallied: Sequence[ExactCounts]) -> str:
        drawn = {name: priced.draw(own) for (name, priced), own in zip(self.parts, tallied, strict=True)}
        tables = {name: json.loads(table.to_json()) for name, table in drawn.items()}
        return json.dumps({"tables": tables}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def read(text: str) -> dict[str, ReleaseTable]:
        """Read what `draw` wrote."""
        tables = json.loads(text)["tables"]
        return {name: ReleaseTable.from_json(json.dumps(table, ensure_ascii=False)) for name, table in tables.items()}
