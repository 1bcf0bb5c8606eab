"""Questions that people save under a title: their own, or shared with everybody who sees the data set.

A title and a question are texts that people typed: they are shown as text, and never run by being shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, final

from discreet.server.accounts import AccountRole, Caller, secret
from discreet.server.datasets import AskedQuestion
from discreet.server.problems import Problem
from discreet.server.state_store import ServerState

__all__ = ["LONGEST_TITLE", "MOST_SAVED", "SavedQuestion", "SavedQuestions", "may_delete"]

LONGEST_TITLE = 120
MOST_SAVED = 200  # of an account, and on a list
_LONGEST_OFFER = 4_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQuestion:
    """A question on record, with who saved it and whether others see it."""

    id: str
    dataset: str
    name: str
    title: str
    question: AskedQuestion
    shared: bool
    at: float


@final
class SavedQuestions:
    """The saved questions of a server. Who sees a data set sees its shared ones, and their own."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def save(self, caller: Caller, dataset: str, title: str, question: AskedQuestion, *, shared: bool) -> SavedQuestion:
        """Keep a question; nothing is read, priced or charged."""
        plain = " ".join(title.split())
        if not 0 < len(plain) <= LONGEST_TITLE:
            raise Problem("invalid", f"a title has 1 to {LONGEST_TITLE} letters")
        said = json.dumps({"sql": question.sql, "offer": dict(question.offer)})
        if not 0 < len(question.sql) <= 20_000 or len(said) > 130_000 + _LONGEST_OFFER:
            raise Problem("invalid", "a question has at most 20,000 letters")
        number = secret(8)
        with self._state.changing() as database:
            found = database.execute("SELECT COUNT(*) AS n FROM saved_questions WHERE name = ?", (caller.name,))
            if found.fetchone()["n"] >= MOST_SAVED:
                raise Problem("too-many", f"an account keeps at most {MOST_SAVED} questions: delete one first")
            database.execute(
                "INSERT INTO saved_questions (id, dataset, name, title, request, shared, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, dataset, caller.name, plain, said, int(shared), self._state.now()),
            )
        self._state.decide(caller.name, "question save", dataset=dataset, about=number)
        return self.get(caller, dataset, number)

    def of_dataset(self, caller: Caller, dataset: str, *, most: int = MOST_SAVED) -> list[SavedQuestion]:
        """Return the questions that somebody sees on a data set, the newest first."""
        rows = self._state.rows(
            "SELECT * FROM saved_questions WHERE dataset = ? AND (shared = 1 OR name = ?) ORDER BY at DESC, id LIMIT ?",
            dataset,
            caller.name,
            most,
        )
        return [_read(row) for row in rows]

    def get(self, caller: Caller, dataset: str, number: str) -> SavedQuestion:
        """Return a question that somebody sees; any other is one that is not there."""
        row = self._state.row("SELECT * FROM saved_questions WHERE id = ? AND dataset = ?", number, dataset)
        if row is None or not caller.sees(dataset) or not (row["shared"] or row["name"] == caller.name):
            raise Problem("not-found")
        return _read(row)

    def delete(self, caller: Caller, dataset: str, number: str) -> None:
        """Forget a question: one's own; an owner may take away what others share."""
        found = self.get(caller, dataset, number)
        if not may_delete(caller, found):
            raise Problem("forbidden", "a question is deleted by whoever saved it, or by an owner")
        with self._state.changing() as database:
            database.execute("DELETE FROM saved_questions WHERE id = ?", (number,))
        self._state.decide(caller.name, "question delete", dataset=dataset, about=number)


def may_delete(caller: Caller, found: SavedQuestion) -> bool:
    """Tell whether somebody may delete a question that they see."""
    return found.name == caller.name or caller.role is AccountRole.OWNER


def _read(row: Any) -> SavedQuestion:
    said = json.loads(row["request"])
    question = AskedQuestion(sql=said["sql"], offer=said["offer"])
    same = {name: row[name] for name in ("id", "dataset", "name", "title", "at")}
    return SavedQuestion(**same, question=question, shared=bool(row["shared"]))
