"""What is asked and offered: requests under one charge, their price in any words, and listed keys."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, positive
from discreet.formatting import significant_up
from discreet.ledger.budget import Budget
from discreet.ledger.charge_record import Account
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.engine import ExactCounts, Stage
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.plan.draft import Spend
from discreet.query.plan.fingerprint import fingerprint
from discreet.query.plan.planner import PricedQuery, draw_together, joint_event
from discreet.query.policy import Chain, Unit
from discreet.query.release_table import ReleaseTable
from discreet.schema.columns import Declared, listed_values

__all__ = ["BatchRequest", "ChargedRequest", "Expectation", "Keys", "Offer", "Request", "account_of", "listed_keys"]

# --- asked: What is asked at once and paid by one charge: a question by itself, or several under names. ---


class ChargedRequest(Protocol):
    """What a desk needs to know of what is asked: its words, its price, what is read for it, and how it is drawn."""

    @property
    def text(self) -> str:
        """The question, or what it is for, as the ledger keeps it."""

    @property
    def idempotency_key(self) -> str | None:
        """The idempotency key, if it has one."""

    @property
    def event(self) -> Event:
        """What is charged."""

    @property
    def nested(self) -> tuple[Event, ...]:
        """What is charged to the inner unit of a chain; nothing without one."""

    @property
    def relation(self) -> Relation:
        """The neighbouring relation under which it is charged."""

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
    idempotency_key: str | None = None

    @property
    def event(self) -> Event:
        return self.priced.event

    @property
    def nested(self) -> tuple[Event, ...]:
        return self.priced.nested

    @property
    def relation(self) -> Relation:
        return self.priced.relation

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
    idempotency_key: str | None = None

    @property
    def event(self) -> Event:
        return joint_event(priced.event for _, priced in self.parts)

    @property
    def nested(self) -> tuple[Event, ...]:
        each = zip(*(priced.nested for _, priced in self.parts), strict=True)
        return tuple(joint_event(events) for events in each)

    @property
    def relation(self) -> Relation:
        return self.parts[0][1].relation  # All are of one session, which has one unit.

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
        return fingerprint(
            "together", self.idempotency_key, tuple((name, priced.fingerprint) for name, priced in self.parts)
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(priced.stage for _, priced in self.parts)

    def draw(self, tallied: Sequence[ExactCounts]) -> str:
        drawn = draw_together([priced for _, priced in self.parts], tallied)
        tables = {name: json.loads(table.to_json()) for (name, _), table in zip(self.parts, drawn, strict=True)}
        return json.dumps({"tables": tables}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def read(text: str) -> dict[str, ReleaseTable]:
        """Read what `draw` wrote."""
        tables = json.loads(text)["tables"]
        return {name: ReleaseTable.from_json(json.dumps(table, ensure_ascii=False)) for name, table in tables.items()}


def account_of(dataset: str, unit: Unit | Chain, budget: Budget | Sequence[Budget]) -> Account:
    """Return what the ledger of a data set is opened with: of a chain the outer unit, and the inner one within it."""
    if not isinstance(unit, Chain):
        if not isinstance(budget, Budget):
            raise InvalidParameter("budget must be one Budget: two are for a chain of two units")
        return Account(dataset, unit.account, unit.relation, budget)
    if isinstance(budget, Budget) or not isinstance(budget, Sequence) or len(budget) != 2:
        raise InvalidParameter(
            f"a chain protects two units, each with a budget of its own: say budget=[…, …], the first for one "
            f"{unit.outer.noun} and the second for one {unit.inner.noun}"
        )
    return Account(dataset, unit.outer.account, unit.outer.relation, budget[0], ((unit.inner.account, budget[1]),))


# --- spending: What an analyst offers for an answer, in any of the words they may say it in. ---


Expectation: TypeAlias = int | Mapping[str, Number] | ReleaseTable
_ROWS = "*"  # In a dictionary of expected values: the rows of a typical group, as in COUNT(*).
_WORDS = ("epsilon", "rho", "share", "error", "relative_error")
_USUAL = Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Exactly one of epsilon, rho, a share of the lifetime budget, a largest ±, or a largest ± relative to `expected`.

    `expected` is what the analyst believes: how many rows a typical group has; or the value of each column by name,
    with the rows under "*"; or an earlier answer, of which the middle of each column is taken. It is never read from
    the data.
    """

    epsilon: Number | None = None
    rho: Number | None = None
    share: Number | None = None
    error: Number | None = None
    relative_error: Number | None = None
    expected: Expectation | None = None
    delta: Number | None = None
    confidence: Number = _USUAL
    quantile_intervals: bool = False
    population: bool = False

    def with_clause(self, options: PrivacyOptions) -> Offer:
        """Take what the clause of the query says; where both are said, the smaller: a clause may only tighten."""
        return replace(
            self,
            epsilon=_smaller(exact_or_none(self.epsilon, name="epsilon"), options.epsilon),
            delta=None if options.delta == 0 else _smaller(exact_or_none(self.delta, name="delta"), options.delta),
        )

    def _check(self) -> None:
        said = [name for name in _WORDS if getattr(self, name) is not None]
        if len(said) != 1:
            raise InvalidParameter(
                f"say exactly one of {', '.join(_WORDS)}"
                + (f", not {' and '.join(said)}" if said else ": how much to spend has no default")
            )
        if self.relative_error is not None and self.expected is None:
            raise InvalidParameter(
                "relative_error needs an expected value, which is never read from the data: say expected=… "
                '(how many rows a typical group has, or {"*": rows, "column": value}), or give an absolute error='
            )

    def spend(self, budget: Budget) -> Spend:
        """Read the offer, with a share turned into what it is a share of."""
        self._check()
        epsilon, rho = self.epsilon, self.rho
        if self.share is not None:
            epsilon, rho = _shared(_read_share(self.share), budget)
        rows, sizes = _expectation(self.expected)
        wanted = self.error if self.relative_error is None else self.relative_error
        return Spend(
            epsilon=exact_or_none(epsilon, name="epsilon"),
            rho=exact_or_none(rho, name="rho"),
            error=exact_or_none(wanted, name="error" if self.relative_error is None else "relative_error"),
            relative=self.relative_error is not None,
            expected=rows,
            sizes=sizes,
            delta=exact_or_none(self.delta, name="delta"),
            confidence=exact(self.confidence, name="confidence"),
            quantile_intervals=self.quantile_intervals,
            population=self.population,
        )


def _smaller(said: Fraction | None, also: Fraction | None) -> Fraction | None:
    return min((value for value in (said, also) if value is not None), default=None)


def _read_share(share: Number) -> Fraction:
    part = positive(share, name="share")
    if part > 1:
        raise InvalidParameter("share must be at most 1: it is a part of the lifetime budget")
    return part


def _shared(part: Fraction, budget: Budget) -> tuple[Fraction | None, Fraction | None]:
    if budget.rho is not None:
        return None, part * budget.rho
    if budget.epsilon is None:
        raise InvalidParameter("share is a part of the lifetime budget, and there is none here: say epsilon= or rho=")
    return part * budget.epsilon, None


def _expectation(expected: Expectation | None) -> tuple[int | None, Mapping[str, Fraction]]:
    if isinstance(expected, ReleaseTable):
        return None, dict(_released_sizes(expected))
    if isinstance(expected, Mapping):
        sizes = {name: positive(size, name="an expected value") for name, size in expected.items()}
        rows = sizes.pop(_ROWS, None)
        return None if rows is None else max(1, round(rows)), sizes
    return expected, {}


def _released_sizes(table: ReleaseTable) -> Iterator[tuple[str, Fraction]]:
    """Return the middle size of each measured column; one of which nothing but zeros was released says nothing."""
    for column in table.columns:
        cells = (column[row].value for row in range(len(column)))
        sizes = sorted(abs(Fraction(value)) for value in cells if isinstance(value, (int, Fraction)))
        if column.measured and sizes and sizes[len(sizes) // 2] > 0:
            yield column.name, sizes[len(sizes) // 2]


# --- keys: Group keys that are publicly known, as an analyst or a custodian lists them. ---


Keys: TypeAlias = Mapping[str, Sequence[Hashable] | Declared]


def listed_keys(keys: Keys | None) -> dict[str, list[Hashable]]:
    """Return the values of each key in the order of the answer; a declaration of categories lists them too."""
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        raise InvalidParameter("keys must be a dictionary from a column to its public values")
    return {name: _values(name, values) for name, values in keys.items()}


def _values(name: str, values: Sequence[Hashable] | Declared) -> list[Hashable]:
    values = listed_values(values, name=f"the declaration of key {name!r}")
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidParameter(f"the public values of key {name!r} must be a list")
    if not values or len(set(values)) != len(values):
        raise InvalidParameter(f"the public values of key {name!r} must be at least one, and distinct")
    return list(values)
