"""What requests and answers of the HTTP API look like: models that check the first and describe both in OpenAPI."""

from __future__ import annotations

import json
from datetime import date, datetime
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from discreet.query.answer_columns import AnswerColumn, shown
from discreet.query.release_table import ReleaseTable
from discreet.server.datasets import AskedQuestion
from discreet.server.jobs import Job

__all__ = [
    "AnswerTableModel",
    "AskModel",
    "BudgetAnswerModel",
    "DatasetModel",
    "DatasetsModel",
    "EstimateModel",
    "HistoryModel",
    "LedgerModel",
    "LogModel",
    "MeModel",
    "Price",
    "ProblemModel",
    "ReleaseAnswerModel",
    "ReleaseAskModel",
    "ReleasesModel",
    "RequestModel",
    "ToldModel",
    "WorkModel",
    "release_document",
    "table_document",
]

Price: TypeAlias = Annotated[str, Field(max_length=60)] | Annotated[int, Field(ge=-(10**30), le=10**30)] | float
_Expected: TypeAlias = (
    Annotated[int, Field(ge=1, le=10**12)]
    | Annotated[dict[Annotated[str, Field(max_length=200)], Price], Field(max_length=50)]
)
_Key: TypeAlias = Annotated[str, Field(max_length=1000)] | Annotated[int, Field(ge=-(10**18), le=10**18)] | bool


class RequestModel(BaseModel):
    """What somebody sends: nothing more than is listed, and of no other kind."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class AskModel(RequestModel):
    """A question, and exactly one way to say its price: epsilon, rho, share, error or relative_error with expected."""

    sql: Annotated[str, Field(min_length=1, max_length=20_000)]
    epsilon: Price | None = None
    rho: Price | None = None
    share: Price | None = None
    error: Price | None = None
    relative_error: Price | None = None
    expected: _Expected | None = None
    delta: Price | None = None
    keys: Annotated[dict[str, Annotated[list[_Key], Field(max_length=10_000)]], Field(max_length=20)] | None = None
    max_groups: Annotated[int, Field(ge=1, le=10**9)] | None = None
    max_rows_per_group: Annotated[int, Field(ge=1, le=10**9)] | None = None
    max_inner: Annotated[int, Field(ge=1, le=10**9)] | None = None
    quantile_intervals: bool = False
    population: bool = False

    def question(self) -> AskedQuestion:
        """Return the words of `Session.sql`; those that were not said are left out."""
        said = self.model_dump(exclude={"sql", "idempotency_key"}, exclude_defaults=True)
        return AskedQuestion(sql=self.sql, offer=said)


class ReleaseAskModel(AskModel):
    """A question that is paid for. Asked again under the same idempotency key, the same release is returned."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class ToldModel(BaseModel):
    """What is answered: nothing more than is listed."""

    model_config = ConfigDict(extra="forbid")


class ProblemModel(ToldModel):
    """A problem (RFC 9457). Its code follows from the request, the account and the ledger, never from a row."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    line: int | None
    column: int | None
    excerpt: str | None
    caret: int | None
    reason: str | None
    way_out: str | None


class ColumnFactsModel(ToldModel):
    """What is declared of a column."""

    name: str
    kind: str
    low: Any
    high: Any
    values: list[Any] | None
    values_in_all: int | None


class ServedTableModel(ToldModel):
    """What is declared of a table."""

    name: str
    private: bool
    unit: str | None
    columns: list[ColumnFactsModel]


class DatasetModel(ToldModel):
    """Public facts of a data set."""

    name: str
    protects: str
    relation: str
    budget: str
    version: str | None
    answer_after: float
    answer_times: dict[str, float]
    tables: list[ServedTableModel]


class DatasetsModel(ToldModel):
    """Names of the data sets that this account may know of."""

    datasets: list[str]


class EstimateModel(ToldModel):
    """The price of a question and the expected ±; nothing was read."""

    cost: str
    affordable: bool
    more_like_this: int
    facts: dict[str, str]
    errors: dict[str, str]
    notes: list[str]
    answer_after: float


class AnswerColumnModel(ToldModel):
    """A column: measured ones have a ± and an interval for each row, keys have neither."""

    name: str
    kind: str
    measured: bool
    values: list[Any]
    plus_minus: list[float | None] | None
    low: list[float | None] | None
    high: list[float | None] | None
    text: list[str]


class AnswerTableModel(ToldModel):
    """An answer. Names and keys are text from the data set: show them as text, never run or follow them."""

    columns: list[AnswerColumnModel]
    rows: int
    cost: str
    relation: str
    confidence: float
    notes: list[str]


class WorkModel(ToldModel):
    """What came of a job of another kind than a question: a few facts, and the names of its files."""

    told: dict[str, Any]
    files: list[str]


class ReleaseAnswerModel(ToldModel):
    """A release: awaiting (another custodian's approval), queued, running, done or failed.

    Progress is the share of the declared time that is gone.
    """

    id: str
    kind: str
    dataset: str
    who: str
    sql: str
    cost: str
    state: str
    link: str
    progress: float | None
    answer: AnswerTableModel | None
    work: WorkModel | None
    problem: ProblemModel | None


class ReleasesModel(ToldModel):
    """Releases of a data set, the newest first, without their answers; `after` of the next page is the last id."""

    releases: list[ReleaseAnswerModel]


class ExactSpendingModel(ToldModel):
    """What was spent: fractions as text, such as "1/10"; null where something has no such bound."""

    epsilon: str | None
    delta: str
    rho: str | None
    renyi: list[tuple[str, float | None]]
    last: str | None


class ExactLeftModel(ToldModel):
    """What is left, likewise; `more` charges like the last one fit."""

    epsilon: str | None
    delta: str | None
    rho: str | None
    more: int | None
    limit: str
    delta_share: str | None


class ExactBudgetModel(ToldModel):
    """The same without rounding, for programs."""

    budget: dict[str, str]
    spent: ExactSpendingModel
    left: ExactLeftModel


class BudgetAnswerModel(ToldModel):
    """What was spent and what is left."""

    dataset: str
    sentence: str
    budget: str
    charges: int
    spent_share: float
    left_share: float
    spent: str
    left: str
    exact: ExactBudgetModel


class HistoryEntryModel(ToldModel):
    """One charge."""

    number: int
    when: str
    who: str
    price: str | None
    purpose: str


class HistoryModel(ToldModel):
    """Charges, the newest first; `before` of the next page is the last number."""

    entries: list[HistoryEntryModel]


class LedgerModel(ToldModel):
    """Whether the record is whole."""

    dataset: str
    verified: bool
    charges: int


class DecisionModel(ToldModel):
    """One decision."""

    number: int
    at: float
    who: str
    what: str
    dataset: str
    outcome: str
    about: str
    hash: str


class LogModel(ToldModel):
    """Decisions, the newest first, and whether the chain of all of them holds."""

    holds: bool
    decisions: list[DecisionModel]


class MeModel(ToldModel):
    """Who this is."""

    name: str
    role: str
    datasets: list[str]
    scopes: list[str]


# --- answers ---


def release_document(job: Job, *, progress: float | None = None, with_answer: bool = True) -> dict[str, Any]:
    """Return a release as JSON has it."""
    shown_answer = with_answer and job.answer is not None
    is_question = job.kind == "question"
    return {
        "id": job.id,
        "kind": job.kind,
        "dataset": job.dataset,
        "who": job.name,
        "sql": job.sql,
        "cost": job.cost,
        "state": job.state,
        "link": f"/releases/{job.id}",
        "progress": progress,
        "answer": table_document(job.table()) if shown_answer and is_question else None,
        "work": _work_document(job) if shown_answer and not is_question else None,
        "problem": None if job.problem is None else job.problem.document(),
    }


def _work_document(job: Job) -> dict[str, Any]:
    said = json.loads(job.answer or "{}")
    return {"told": said["told"], "files": sorted(said["files"])}


def table_document(table: ReleaseTable) -> dict[str, Any]:
    """Return an answer as JSON has it: numbers are the nearest floats."""
    return {
        "columns": [_column_document(column) for column in table.columns],
        "rows": len(table),
        "cost": table.cost,
        "relation": table.relation.value,
        "confidence": float(table.confidence),
        "notes": list(table.notes),
    }


def _column_document(column: AnswerColumn) -> dict[str, Any]:
    cells = [column[row] for row in range(len(column))]
    ends: dict[str, Any] = dict.fromkeys(("plus_minus", "low", "high"))
    if column.measured:
        ends = {name: [_json_value(getattr(cell, name)) for cell in cells] for name in ends}
    return {
        "name": column.name,
        "kind": column.kind.value,
        "measured": column.measured,
        "values": [_json_value(cell.value) for cell in cells],
        **ends,
        "text": [shown(column, row) for row in range(len(column))],
    }


def _json_value(value: Any) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 and abs(value) < 2**53 else float(value)
    return value.isoformat() if isinstance(value, (date, datetime)) else value
