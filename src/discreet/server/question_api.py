"""Endpoints of questions: data sets, prices, made-up answers, releases, budget, history, the record and the log."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from discreet.exact import exact
from discreet.query.release_table import ReleaseTable
from discreet.server import api_models as models
from discreet.server.accounts import Caller
from discreet.server.app import LONGEST_WAIT, ApiCall, Endpoint, Server
from discreet.server.datasets import AskedQuestion
from discreet.server.jobs import Job
from discreet.server.offers import OfferedRelease, queue_release
from discreet.server.problems import Problem
from discreet.server.watch.decision_log import LOG_FILTERS, found_decisions, log_filters

__all__ = ["QUESTION_ENDPOINTS", "ask_release", "seen_job"]


def _me(call: ApiCall) -> Any:
    caller = call.caller
    seen = [one.name for one in call.server.shelf if caller.sees(one.name)]
    return {"name": caller.name, "role": caller.role.value, "datasets": seen, "scopes": sorted(caller.scopes)}


def _datasets(call: ApiCall) -> Any:
    return {"datasets": [one.name for one in call.server.shelf if call.caller.sees(one.name)]}


def _dataset(call: ApiCall) -> Any:
    return call.server.shelf[call.path["dataset"]].public_facts()


def _estimate(call: ApiCall) -> Any:
    served = call.server.shelf[call.path["dataset"]]
    plan = call.body.question().plan(served.asked_by(call.caller.name))
    return served.estimate(plan, call.caller.name)


def _made_up(call: ApiCall) -> ReleaseTable:
    served = call.server.shelf[call.path["dataset"]]
    plan = call.body.question().plan(served.asked_by(call.caller.name))
    with call.server.one_trial(call.caller):
        made: ReleaseTable = plan.dummy()
    return made


def _dummy(call: ApiCall) -> Any:
    return models.table_document(_made_up(call))


def _exact_dummy(call: ApiCall) -> Any:
    media, write = _FORMS["release"]
    return Response(write(_made_up(call)), media_type=media)


def ask_release(server: Server, caller: Caller, dataset: str, question: AskedQuestion, key: str | None) -> Job:
    """Price a question, refuse what cannot be answered or paid, and queue its release."""
    plan, said = question.plan(server.shelf[dataset].asked_by(caller.name)), question.offer.get("epsilon")
    offered = OfferedRelease(
        question=question,
        cost=plan.cost,
        event=plan.event,
        nested=plan.nested,
        epsilon=None if said is None else exact(said, name="epsilon"),
    )
    return queue_release(server, caller, dataset, offered, key)


def _release(call: ApiCall) -> Any:
    call.number("wait", 30, least=0, most=LONGEST_WAIT)
    key, dataset = call.body.idempotency_key, call.path["dataset"]
    return ask_release(call.server, call.caller, dataset, call.body.question(), key)


def seen_job(server: Server, caller: Caller, number: str) -> Job:
    """Return a release that this caller may see; any other is one that is not there."""
    job = server.jobs.get(number)
    if not caller.sees(job.dataset) or not (caller.sees_all or job.name == caller.name):
        raise Problem("not-found")
    return job


def _one_release(call: ApiCall) -> Any:
    return seen_job(call.server, call.caller, call.path["id"])


def _releases(call: ApiCall) -> Any:
    after = call.query.get("after")
    jobs = call.server.jobs.of_dataset(call.path["dataset"], only=call.only, most=call.most, after=after)
    progress = call.server.progress
    found = [models.release_document(job, progress=progress(job), with_answer=False) for job in jobs]
    return {"releases": found}


def _answer(call: ApiCall) -> Any:
    job = seen_job(call.server, call.caller, call.path["id"])
    if job.kind != "question":
        raise Problem("not-found", "what came of this release is in its files")
    table = job.table()
    form = call.path["format"]
    if form not in _FORMS:
        raise Problem("not-found")
    media, write = _FORMS[form]
    name = f"release-{call.path['id'][:8]}.{form}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(write(table), media_type=media, headers=headers)


def _parquet(table: Any) -> bytes:
    import pyarrow.parquet as parquet

    sink = io.BytesIO()
    parquet.write_table(table.to_arrow(), sink)
    return sink.getvalue()


def _arrow(table: Any) -> bytes:
    import pyarrow as pa

    sink, found = io.BytesIO(), table.to_arrow()
    with pa.ipc.new_stream(sink, found.schema) as stream:
        stream.write_table(found)
    return sink.getvalue()


_FORMS: Mapping[str, tuple[str, Callable[[Any], bytes]]] = {
    "csv": ("text/csv", lambda table: table.to_csv().encode()),
    "json": ("application/json", lambda table: json.dumps(models.table_document(table)).encode()),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "arrow": ("application/vnd.apache.arrow.stream", _arrow),
    # As it is stored, without rounding: what `ReleaseTable.from_json` reads.
    "release": ("application/vnd.discreet.release+json", lambda table: table.to_json().encode()),
}


def _budget(call: ApiCall) -> Any:
    return call.server.shelf[call.path["dataset"]].budget(call.caller.name)


def _history(call: ApiCall) -> Any:
    served = call.server.shelf[call.path["dataset"]]
    return {"entries": served.history(only=call.only, before=call.before, most=call.most)}


def _ledger(call: ApiCall) -> Any:
    session = call.server.shelf[call.path["dataset"]].session
    session.ledger.verify()
    # Charges, not entries: an entry is also made when an answer is known, before it may be told.
    return {"dataset": call.path["dataset"], "verified": True, "charges": session.spent.charges}


def _log(call: ApiCall) -> Any:
    state, only = call.server.state, call.caller.granted
    found = found_decisions(state, only=only, before=call.before, most=call.most, filters=log_filters(call.query))
    return {"holds": state.decisions_hold(), "decisions": found}


_DATASET, _RELEASE = "/v1/datasets/{dataset}", "/v1/releases/{id}"
_PAGED = ("before", "limit")
QUESTION_ENDPOINTS = (
    Endpoint(method="GET", path="/v1/me", operation="me", handler=_me, summary="Who this is", answer=models.MeModel),
    Endpoint(
        method="GET",
        path="/v1/datasets",
        operation="datasets",
        handler=_datasets,
        summary="The data sets that this account may know of",
        answer=models.DatasetsModel,
    ),
    Endpoint(
        method="GET",
        path=_DATASET,
        operation="dataset",
        handler=_dataset,
        summary="Public facts: tables, columns, bounds, whom it protects",
        answer=models.DatasetModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/estimate",
        operation="estimate",
        handler=_estimate,
        summary="The price of a question and the expected ±. Free; no row is read",
        body=models.AskModel,
        answer=models.EstimateModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/dummy",
        operation="dummy",
        handler=_dummy,
        summary="The answer from made-up rows of the declared columns. Free; no row is read",
        body=models.AskModel,
        answer=models.AnswerTableModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/dummy.release",
        operation="dummy",
        handler=_exact_dummy,
        summary="The same without rounding, as a release is stored",
        body=models.AskModel,
        media=(_FORMS["release"][0],),
    ),
    Endpoint(
        method="POST",
        path=f"{_DATASET}/releases",
        operation="release",
        handler=_release,
        summary="Pay and release; waits up to `wait` seconds for the answer",
        body=models.ReleaseAskModel,
        answer=models.ReleaseAnswerModel,
        query=("wait",),
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/releases",
        operation="releases",
        handler=_releases,
        summary="Releases, the newest first, without their answers; those before the one that `after` names",
        answer=models.ReleasesModel,
        query=("after", "limit"),
    ),
    Endpoint(
        method="GET",
        path=_RELEASE,
        operation="releases",
        handler=_one_release,
        summary="A release; waits up to `wait` seconds for its answer",
        answer=models.ReleaseAnswerModel,
        query=("wait",),
    ),
    Endpoint(
        method="GET",
        path=_RELEASE + "/answer.{format}",
        operation="releases",
        handler=_answer,
        summary="The answer as csv, json, parquet or arrow; as release without rounding",
        media=tuple(media for media, _ in _FORMS.values()),
        formats=tuple(_FORMS),
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/budget",
        operation="budget",
        handler=_budget,
        summary="What was spent and what is left",
        answer=models.BudgetAnswerModel,
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/history",
        operation="history",
        handler=_history,
        summary="Charges, the newest first: one's own, or everybody's for whoever checks",
        answer=models.HistoryModel,
        query=_PAGED,
    ),
    Endpoint(
        method="GET",
        path=f"{_DATASET}/ledger",
        operation="ledger",
        handler=_ledger,
        summary="Verify the record of the data set",
        answer=models.LedgerModel,
    ),
    Endpoint(
        method="GET",
        path="/v1/log",
        operation="log",
        handler=_log,
        summary="Decisions about the data sets that this account sees, the newest first; an owner's are all",
        answer=models.LogModel,
        query=(*_PAGED, *LOG_FILTERS),
    ),
)
