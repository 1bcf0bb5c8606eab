"""The same questions, answered by a private session: one budget for all questions of one attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet import noise
from discreet.attacks.sticky_questions import CodedPeople, Condition, ExpectedDifferences, Question
from discreet.privacy import Event, PureDP

if TYPE_CHECKING:
    from discreet.query import Plan

__all__ = ["PrivateCounts", "SessionCounts"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SessionCounts:
    """A `dp.Session` with a budget of epsilon for everything that is asked in one attack, shared evenly."""

    rows: CodedPeople
    epsilon: Fraction

    @property
    def event(self) -> Event:
        """What one attack spends."""
        return PureDP(self.epsilon)

    def renewed(self, rows: CodedPeople) -> SessionCounts:
        return SessionCounts(rows, self.epsilon)

    def plan(self, questions: Sequence[Question]) -> Plan:
        """Open a session with this budget, and plan all questions as one, priced and not yet asked."""
        from discreet.ledger import Budget
        from discreet.query import Session

        session = Session(
            _table(self.rows), unit="row", budget=Budget(epsilon=self.epsilon), columns={}, ledger="memory",
            dataset="lab", principal="lab", version="1",
        )  # fmt: skip
        asked = ", ".join(f"COUNT(*) FILTER (WHERE {_where(one)}) AS q{i}" for i, one in enumerate(questions))
        return session.sql(f"SELECT {asked} FROM data", epsilon=self.epsilon)

    def answers(self, questions: Sequence[Question]) -> list[float | None]:
        answer = self.plan(questions).release().to_arrow()
        return [float(answer.column(f"q{i}")[0].as_py()) for i in range(len(questions))]

    def law(self, *, inside: bool, conditions: int, cloned: bool, asked: int) -> ExpectedDifferences:
        return _difference(inside, asked / self.epsilon)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivateCounts:
    """The same counts with the same noise as a session draws, without its engine and ledger: for many attacks."""

    rows: CodedPeople
    epsilon: Fraction

    @property
    def event(self) -> Event:
        """What one attack spends."""
        return PureDP(self.epsilon)

    def renewed(self, rows: CodedPeople) -> PrivateCounts:
        return PrivateCounts(rows, self.epsilon)

    def answers(self, questions: Sequence[Question]) -> list[float | None]:
        distinct = list(dict.fromkeys(questions))  # A session answers the same question once.
        drawn = noise.discrete_laplace(len(distinct) / self.epsilon, len(distinct)).tolist()
        told = {
            question: float(np.count_nonzero(self.rows.fitting(question)) + extra)
            for question, extra in zip(distinct, drawn, strict=True)
        }
        return [told[question] for question in questions]

    def law(self, *, inside: bool, conditions: int, cloned: bool, asked: int) -> ExpectedDifferences:
        return _difference(inside, asked / self.epsilon)


def _difference(inside: bool, scale: Fraction) -> ExpectedDifferences:
    """Two answers have fresh noise, of variance 2 b^2 each, wherever the person is: only the mean tells."""
    return ExpectedDifferences(mean=float(inside), common=0.0, own=4 * float(scale) ** 2)


def _table(rows: CodedPeople) -> Any:
    import pyarrow as pa

    return pa.table(dict(rows.columns))


def _where(question: Question) -> str:
    return " AND ".join(_written(one) for one in question)


def _written(one: Condition) -> str:
    return f"{one.column} {'=' if one.equal else '<>'} {int(one.value)}"
