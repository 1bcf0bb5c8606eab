"""What a server answers, as it is read here: models of its documents, and the values of the library that are in them.

They are written out once more, apart from those of the server: who asks may have another version, and trusts nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.exact import ratio
from discreet.formatting import printable
from discreet.http_client import ProblemAnswer, ServerAnswer, WrongAnswer, plain_text
from discreet.ledger.budget import Budget
from discreet.ledger.spending import Left, Spending
from discreet.query.plan.explain import Explanation
from discreet.query.release_table import ReleaseTable

__all__ = [
    "ChargeAnswer",
    "FactsAnswer",
    "HistoryAnswer",
    "JobAnswer",
    "JobsAnswer",
    "LeftAnswer",
    "MadeUpAnswer",
    "MeAnswer",
    "MoneyAnswer",
    "NamesAnswer",
    "PlanStandingAnswer",
    "PlansAnswer",
    "PriceAnswer",
    "RecordAnswer",
    "RemoteColumn",
    "SpentAnswer",
    "SumsAnswer",
    "TableFactsAnswer",
    "WorkDoneAnswer",
    "read_budget",
    "read_left",
    "read_price",
    "read_spent",
    "read_table",
]


@final
class MeAnswer(ServerAnswer):
    """Who one is there."""

    name: str
    role: str
    scopes: list[str]


@final
class NamesAnswer(ServerAnswer):
    """Which data sets there are."""

    datasets: list[str]


@final
class RemoteColumn(ServerAnswer):
    """What is declared of a column."""

    name: str
    kind: str
    low: str | int | float | None
    high: str | int | float | None
    values: list[str | int | float | bool | None] | None
    values_in_all: int | None

    def known(self) -> str:
        """Say it in a few words."""
        if self.values is not None:
            listed = ", ".join(str(one) for one in self.values[:8])
            return f"{self.values_in_all:,} values: {listed}{', …' if len(self.values) > 8 else ''}"
        return "" if self.low is None or self.high is None else f"{self.low} to {self.high}"


@final
class TableFactsAnswer(ServerAnswer):
    """What is declared of a table."""

    name: str
    private: bool
    unit: str | None
    columns: list[RemoteColumn]


@final
class FactsAnswer(ServerAnswer):
    """What is declared of a data set."""

    name: str
    protects: str
    relation: str
    budget: str
    version: str | None
    answer_after: float
    tables: list[TableFactsAnswer]


@final
class PriceAnswer(ServerAnswer):
    """The price of a question, and what it would tell."""

    cost: str
    affordable: bool
    more_like_this: int
    facts: dict[str, str]
    errors: dict[str, str]
    notes: list[str]
    answer_after: float


@final
class PlanStandingAnswer(ServerAnswer):
    """A release plan, and where it stands."""

    name: str
    title: str
    tables: list[str]
    every: str
    released: list[str]
    due: list[str]
    price: str
    more: int | None


@final
class PlansAnswer(ServerAnswer):
    """The release plans of a data set."""

    plans: list[PlanStandingAnswer]


@final
class MadeUpAnswer(ServerAnswer):
    """What came of work on made-up rows: facts, and files as base64."""

    told: dict[str, Any]
    files: dict[str, str]


@final
class WorkDoneAnswer(ServerAnswer):
    """What came of work: facts, and the names of files."""

    told: dict[str, Any]
    files: list[str]


@final
class JobAnswer(ServerAnswer):
    """A release, without its answer."""

    id: str
    dataset: str
    who: str
    sql: str
    cost: str
    state: str
    kind: str = "question"
    problem: ProblemAnswer | None
    work: WorkDoneAnswer | None = None


@final
class JobsAnswer(ServerAnswer):
    """A page of releases."""

    releases: list[JobAnswer]


@final
class SpentAnswer(ServerAnswer):
    """What was spent: fractions as texts."""

    epsilon: str | None
    delta: str
    rho: str | None
    renyi: list[tuple[str, float | None]]
    last: str | None


@final
class LeftAnswer(ServerAnswer):
    """What is left: fractions as texts."""

    epsilon: str | None
    delta: str | None
    rho: str | None
    more: int | None
    limit: str
    delta_share: str | None


@final
class SumsAnswer(ServerAnswer):
    """Both, and the budget."""

    budget: dict[str, str]
    spent: SpentAnswer
    left: LeftAnswer


@final
class MoneyAnswer(ServerAnswer):
    """What was spent and what is left, in words and exactly."""

    sentence: str
    charges: int
    spent_share: float
    left_share: float
    exact: SumsAnswer


@final
class ChargeAnswer(ServerAnswer):
    """One charge."""

    number: int
    when: str
    who: str
    price: str | None
    purpose: str


@final
class HistoryAnswer(ServerAnswer):
    """A page of charges."""

    entries: list[ChargeAnswer]


@final
class RecordAnswer(ServerAnswer):
    """Whether the record is whole."""

    verified: bool
    charges: int


# --- values of the library ---


def read_table(body: bytes) -> ReleaseTable:
    """Read a table as it is stored; whatever it is that cannot be read, the server wrote it."""
    try:
        return ReleaseTable.from_json(body.decode())
    except Exception:  # noqa: BLE001 - a text of a server is anything
        raise WrongAnswer("the server sent an answer that is no table") from None


def read_price(price: PriceAnswer) -> Explanation:
    facts, errors = (
        tuple((printable(name), plain_text(text)) for name, text in told.items())
        for told in (price.facts or {"price": price.cost}, price.errors)
    )
    return Explanation(facts=facts, errors=errors, notes=tuple(map(plain_text, price.notes)))


def _read_sum(written: str | None) -> Fraction | None:
    return None if written is None else ratio(written)


def read_budget(sums: SumsAnswer) -> Budget:
    try:
        return Budget.unpacked(sums.budget)
    except (InvalidParameter, TypeError):
        raise WrongAnswer("the server sent a budget that is none") from None


def read_spent(told: MoneyAnswer) -> Spending:
    spent = told.exact.spent
    try:
        renyi = tuple((ratio(order), total) for order, total in spent.renyi)
        epsilon, delta, rho = _read_sum(spent.epsilon), ratio(spent.delta), _read_sum(spent.rho)
    except InvalidParameter:
        raise WrongAnswer("the server sent sums that are none") from None
    last = None if spent.last is None else plain_text(spent.last)
    return Spending(read_budget(told.exact), told.charges, epsilon, delta, rho, renyi, told.spent_share, last)


def read_left(told: MoneyAnswer) -> Left:
    left = told.exact.left
    try:
        epsilon, delta, rho, part = map(_read_sum, (left.epsilon, left.delta, left.rho, left.delta_share))
    except InvalidParameter:
        raise WrongAnswer("the server sent sums that are none") from None
    return Left(
        read_budget(told.exact),
        epsilon,
        delta,
        rho,
        told.left_share,
        left.more,
        plain_text(left.limit),
        delta_share=part,
    )
