"""What the server answers when it does not answer: problems of one shape (RFC 9457), whose codes are listed here.

Which problem it is follows from the request, the account and the ledger, never from a row: what fails after a charge is
`answer-failed`, with one constant text. An exception that nobody foresaw becomes `internal`, with a constant text too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from discreet.custodian_debug import show_hidden
from discreet.errors import (
    AnswerFailed,
    BudgetExceeded,
    DiscreetError,
    InvalidParameter,
    LedgerDamaged,
    LedgerUnavailable,
    NotAuthorised,
    Refused,
)
from discreet.server.state_store import StateDamaged, StateUnavailable

__all__ = ["KINDS_OF_PROBLEMS", "MEDIA_TYPE", "Problem", "ProblemKind", "problem_of"]

MEDIA_TYPE = "application/problem+json"


@final
@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem: its code, which never changes, the HTTP status, and what it means."""

    code: str
    status: int
    title: str


KINDS_OF_PROBLEMS: Mapping[str, ProblemKind] = {
    kind.code: kind
    for kind in (
        ProblemKind("bad-request", 400, "The request cannot be read"),
        ProblemKind("authorization-pending", 400, "Nobody has allowed this code yet; ask again after the interval"),
        ProblemKind("slow-down", 400, "Asked again before the interval was over"),
        ProblemKind("access-denied", 400, "The code was denied"),
        ProblemKind("expired-code", 400, "The code is not known, was used, or has expired"),
        ProblemKind("not-signed-in", 401, "Sign in, or send a token"),
        ProblemKind("forbidden", 403, "This account may not do this"),
        ProblemKind("wrong-form-token", 403, "The form was not sent from this page"),
        ProblemKind("not-found", 404, "There is no such thing for this account"),
        ProblemKind("wrong-method", 405, "This address takes another method"),
        ProblemKind("budget-exceeded", 409, "The price does not fit into what is left; nothing was charged"),
        ProblemKind("key-used", 409, "This idempotency key stands for another question"),
        ProblemKind("decided", 409, "This does not wait for an approval, or not any more"),
        ProblemKind("not-approved", 409, "Nobody approved this release; nothing was charged"),
        ProblemKind("too-large", 413, "The request is larger than the server takes"),
        ProblemKind("wrong-host", 421, "The server does not go by this name"),
        ProblemKind("invalid", 422, "A value of the request cannot be used; nothing was charged"),
        ProblemKind("refused", 422, "The question cannot be answered privately; nothing was charged"),
        ProblemKind("too-many", 429, "Too many requests; try again later"),
        ProblemKind("answer-failed", 500, "What was asked could not be answered; the charge, if any, stands"),
        ProblemKind("internal", 500, "The server failed"),
        ProblemKind("unavailable", 503, "The server or the ledger cannot take this now"),
    )
}


@final
class Problem(Exception):
    """A problem that ends a request."""

    def __init__(self, code: str, detail: str = "", **place: Any) -> None:
        super().__init__(code)
        self.kind, self.detail, self.place = KINDS_OF_PROBLEMS[code], detail, place

    def document(self) -> dict[str, Any]:
        """Return the JSON, which has the same fields whatever the problem is."""
        place = dict.fromkeys(("line", "column", "excerpt", "caret", "reason", "way_out")) | self.place
        return {
            "type": f"/problems#{self.kind.code}",
            "title": self.kind.title,
            "status": self.kind.status,
            "code": self.kind.code,
            "detail": self.detail or self.kind.title,
            **place,
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Problem:
        """Read what `document` wrote."""
        place = {name: document[name] for name in ("line", "column", "excerpt", "caret", "reason", "way_out")}
        return cls(document["code"], document["detail"], **place)


def problem_of(error: BaseException) -> Problem:
    """Return what is told of an error of the library; anything else is shown to the custodian, if at all."""
    match error:
        case Problem():
            return error
        case AnswerFailed():
            return Problem("answer-failed", str(error))
        case BudgetExceeded():
            return Problem("budget-exceeded", str(error), way_out=error.way_out or None)
        case Refused():
            place = {"line": error.line, "column": error.column, "excerpt": error.excerpt, "caret": error.caret}
            advice = {"reason": error.reason or None, "way_out": error.way_out or None}
            return Problem("refused", error.problem, **place, **advice)
        case StateDamaged() | StateUnavailable():
            return Problem("unavailable", "the server cannot read or write its state now: try again later")
        case LedgerDamaged() | LedgerUnavailable():
            return Problem("unavailable", "the ledger cannot be used now: whoever runs the server has to look")
        case NotAuthorised():
            return Problem("forbidden", str(error))
        case InvalidParameter() | DiscreetError():
            return Problem("invalid", str(error))
    show_hidden(error)
    return Problem("internal", "the server failed; nothing more is told")
