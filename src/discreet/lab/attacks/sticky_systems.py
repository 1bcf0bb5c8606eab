"""Systems under attack by differences: a model of sticky noise, and a private session, with the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.privacy import Event, PureDP

if TYPE_CHECKING:
    from discreet.query import Plan

__all__ = [
    "SECRET",
    "CodedPeople",
    "Codes",
    "Condition",
    "ExpectedDifferences",
    "PrivateCounts",
    "Question",
    "SessionCounts",
    "StickyModel",
    "System",
]

# --- sticky_questions ---
# The questions of the attack on sticky noise, and the rows they are asked about: columns of whole-number codes.


SECRET = "secret"
Codes: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Condition:
    """A column that equals a value, or does not."""

    column: str
    value: int
    equal: bool = True


Question: TypeAlias = tuple[Condition, ...]  # How many people fulfil all of these?


@final
@dataclass(frozen=True, slots=True, eq=False)
class CodedPeople:
    """A table, one row for each person, every value a code."""

    columns: Mapping[str, Codes]

    @property
    def size(self) -> int:
        """The number of people."""
        return len(next(iter(self.columns.values())))

    def fitting(self, question: Question) -> NDArray[np.bool_]:
        """Tell who fulfils all conditions."""
        fits = np.ones(self.size, dtype=np.bool_)
        for one in question:
            same = self.columns[one.column] == one.value
            fits &= same if one.equal else ~same
        return fits

    def with_secret(self, person: int, value: int) -> CodedPeople:
        """Return the same table, in which one person has another secret."""
        changed = self.columns[SECRET].copy()
        changed[person] = value
        return CodedPeople({**self.columns, SECRET: changed})


@final
@dataclass(frozen=True, slots=True)
class ExpectedDifferences:
    """What an attacker expects of differences of answers: their mean, and the variances of what they share and not."""

    mean: float
    common: float
    own: float


class System(Protocol):
    """Whatever answers counting questions about some rows."""

    def renewed(self, rows: CodedPeople) -> System:
        """Return the same kind of system over other rows of the same people, with fresh randomness."""

    def answers(self, questions: Sequence[Question]) -> list[float | None]:
        """Answer the questions of one attack, or refuse some with None."""

    def law(self, *, inside: bool, conditions: int, cloned: bool, asked: int) -> ExpectedDifferences:
        """Return the law of differences of answers, of `asked` in one attack, if the person is in the first or not."""


# --- sticky_model ---
# A model, for the lab only, of a query system whose noise sticks: it is made from the question and from who fits it.
#
# Such systems answer any number of questions without a budget. Every condition adds two layers of noise, which are
# always
# the same for the same condition, and for the same condition and the same people; so asking again teaches nothing.
# Answers about few people are refused. The layers are as [GHRLM19] describes them; a noisy threshold of about four
# people
# stands for the refusal. It is no mechanism of this library, and it protects nobody: `sticky` shows why.


_ROUNDED = 1 / 6  # The variance of the difference of two roundings to whole numbers.
_FEWEST = 2  # Fewer people are never told, whatever the threshold.
_THRESHOLD, _SPREAD = 4.0, 0.5  # A bucket is hidden below a normal threshold of this mean and deviation.


@final
@dataclass(frozen=True, slots=True, eq=False)
class StickyModel:
    """Counts with sticky noise of unit variance in each layer, rounded; few people are not told."""

    rows: CodedPeople
    salt: bytes  # secret: without it noise could be computed and taken off
    tags: NDArray[np.uint64]  # the hash of each person

    @classmethod
    def over(cls, rows: CodedPeople) -> StickyModel:
        """Set a system up over some rows, with a fresh salt."""
        tags = noise.uniform(2**62, rows.size).astype(np.uint64)
        return cls(rows, _salt(), tags)

    def renewed(self, rows: CodedPeople) -> StickyModel:
        """Return the system over other rows of the same people, with a fresh salt."""
        return StickyModel(rows, _salt(), self.tags)

    def answers(self, questions: Sequence[Question]) -> list[float | None]:
        """Answer each question, or refuse it with None."""
        return [self._answer(question) for question in questions]

    def law(self, *, inside: bool, conditions: int, cloned: bool, asked: int) -> ExpectedDifferences:
        """Return the law of the difference of two answers: with `conditions`, and with one more that leaves one out.

        Same people: all layers of shared conditions cancel, and the two of the one that is new are left. One person
        apart: the layers that are made from people are all fresh, two for each shared condition. Clones have a
        condition more, of no effect; only its layers differ from clone to clone. [GHRLM19]
        """
        if not inside:
            return ExpectedDifferences(mean=0.0, common=2.0, own=_ROUNDED)
        fresh = 2.0 * conditions + 2.0
        return ExpectedDifferences(mean=1.0, common=fresh, own=(2.0 if cloned else 0.0) + _ROUNDED)

    def _answer(self, question: Question) -> float | None:
        fits = self.rows.fitting(question)
        count = int(np.count_nonzero(fits))
        who = int(np.bitwise_xor.reduce(self.tags[fits])) if count else 0
        if count < _FEWEST or count < _THRESHOLD + _SPREAD * self._layer("hidden?", who):
            return None
        layers = sum(self._layer(_text(one), 0) + self._layer(_text(one), who) for one in question)
        return float(round(count + layers))

    def _layer(self, text: str, who: int) -> float:
        """Return a standard normal number that is always the same for the same text and people."""
        from scipy.special import ndtri

        digest = blake2b(f"{text}/{who}".encode(), key=self.salt, digest_size=8).digest()
        return float(ndtri((int.from_bytes(digest) + 0.5) / 2**64))


def _salt() -> bytes:
    return noise.uniform(256, 32).astype(np.uint8).tobytes()


def _text(condition: Condition) -> str:
    return f"{condition.column}{'=' if condition.equal else '<>'}{condition.value}"


# --- sticky_ours: The same questions, answered by a private session: one budget for all questions of one attack. ---


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
        return session.sql(f"SELECT {asked} FROM lab", epsilon=self.epsilon)

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
