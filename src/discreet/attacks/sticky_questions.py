"""The questions of the attack on sticky noise, and the rows they are asked about: columns of whole-number codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SECRET", "CodedPeople", "Codes", "Condition", "ExpectedDifferences", "Question", "System"]

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
