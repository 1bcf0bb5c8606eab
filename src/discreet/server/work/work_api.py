"""Endpoints of plans, profiles, synthetic rows and training: the price, made-up rows and release of each; and files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from starlette.responses import Response

from discreet.server import api_models as models
from discreet.server.app import LONGEST_WAIT, ApiCall, Endpoint
from discreet.server.jobs import operation_of
from discreet.server.problems import Problem
from discreet.server.question_api import seen_job
from discreet.server.work.job_kinds import WorkAnswer
from discreet.server.work.kinds import ask_work, estimated_work, tried_work
from discreet.server.work.plan_jobs import verified_bundle

__all__ = [
    "WORK_ENDPOINTS",
    "PlanAskModel",
    "ProfileAskModel",
    "SynthAskModel",
    "TrainAskModel",
    "asked_words",
    "shown_file",
]

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Names = Annotated[list[_Name], Field(max_length=200)]
_Once = Annotated[str, Field(min_length=1, max_length=200)] | None


class PlanAskModel(models.RequestModel):
    """A plan: by the name of one that whoever runs the server named, or as the text of a plan file; and its period."""

    plan: _Name | None = None
    toml: Annotated[str, Field(min_length=1, max_length=60_000)] | None = None
    period: _Name | None = None


class PlanReleaseModel(PlanAskModel):
    """A plan whose period is paid for and released; it is charged once, whatever the key."""

    idempotency_key: _Once = None


class ProfileAskModel(models.RequestModel):
    """A profile of a table: `numbers` and `dates` name columns of texts that are read so."""

    epsilon: models.Price
    delta: models.Price | None = None
    table: _Name | None = None
    numbers: _Names = Field(default_factory=list)
    dates: _Names = Field(default_factory=list)


class ProfileReleaseModel(ProfileAskModel):
    """A profile that is paid for."""

    idempotency_key: _Once = None


class SynthAskModel(models.RequestModel):
    """Synthetic rows of a table: how they are made, for which price, and how many are kept."""

    epsilon: models.Price
    delta: models.Price
    table: _Name | None = None
    method: Literal["auto", "aim", "mst", "independent"] = "auto"
    rows_per_unit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    label: _Name | None = None
    rows: Annotated[int, Field(ge=1, le=100_000)] | None = None


class SynthReleaseModel(SynthAskModel):
    """Synthetic rows that are paid for."""

    idempotency_key: _Once = None


class TrainAskModel(models.RequestModel):
    """A regression: of a number with declared bounds (linear), or of a column with declared values (logistic)."""

    model: Literal["logistic", "linear"]
    target: _Name
    features: Annotated[list[_Name], Field(min_length=1, max_length=50)]
    epsilon: models.Price
    delta: models.Price
    table: _Name | None = None
    max_rows: Annotated[int, Field(ge=1, le=1_000)] | None = None


class TrainReleaseModel(TrainAskModel):
    """A regression that is paid for."""

    idempotency_key: _Once = None


class MadeUpWorkModel(models.ToldModel):
    """What came of made-up rows: a few facts, and files as base64. Nothing was read, and nothing was paid."""

    made_up: bool
    told: dict[str, Any]
    files: dict[str, str]


class PlanStandingModel(models.ToldModel):
    """Where a plan stands today."""

    name: str
    title: str
    tables: list[str]
    every: str
    released: list[str]
    due: list[str]
    same_rows: list[str]
    price: str
    more: int | None


class PlansModel(models.ToldModel):
    """The plans of a data set that whoever runs the server named."""

    plans: list[PlanStandingModel]


class VerifiedModel(models.ToldModel):
    """What came of checking a bundle against the ledger."""

    name: str
    ok: bool
    outcome: str
    sentence: str
    checks: list[str]
    problems: list[str]


# --- handlers ---


_ASKED: dict[str, type[models.RequestModel]] = {
    "plan": PlanAskModel,
    "profile": ProfileAskModel,
    "synth": SynthAskModel,
    "train": TrainAskModel,
}


def _said(call: ApiCall, kind: str) -> dict[str, Any]:
    said: dict[str, Any] = call.body.model_dump(exclude={"idempotency_key"})
    return _settled(kind, said, call.server.plans, call.path["dataset"])


def asked_words(kind: str, said: dict[str, Any], plans: Any, dataset: str) -> dict[str, Any]:
    """Check what a form says as if it came over the API, and return it in the words of its kind."""
    try:
        read = _ASKED[kind].model_validate(said)
    except ValidationError as wrong:
        first = wrong.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:200]
        raise Problem("invalid", f"{place}: {first['msg'][:200]}") from None
    return _settled(kind, read.model_dump(), plans, dataset)


def _settled(kind: str, said: dict[str, Any], plans: Any, dataset: str) -> dict[str, Any]:
    if kind == "plan":
        return {"toml": _plan_text(plans, dataset, said), "period": said["period"]}
    for name in ("epsilon", "delta"):
        said[name] = said[name] if said[name] is None else str(said[name])
    return said


def _plan_text(plans: Any, dataset: str, said: dict[str, Any]) -> str:
    """Return the text of the plan that is meant."""
    if (said["plan"] is None) == (said["toml"] is None):
        raise Problem("invalid", "say the plan by its name, as plan, or as the text of a plan file, as toml")
    text: str = said["toml"] if said["toml"] is not None else plans.text(dataset, said["plan"])
    return text


def _estimate(kind: str) -> Callable[[ApiCall], Any]:
    return lambda call: estimated_work(call.server, call.caller, call.path["dataset"], kind, _said(call, kind))


def _dummy(kind: str) -> Callable[[ApiCall], Any]:
    def made(call: ApiCall) -> Any:
        import base64

        found = tried_work(call.server, call.caller, call.path["dataset"], kind, _said(call, kind))
        files = {name: base64.b64encode(content).decode() for name, content in found.files.items()}
        return {"made_up": True, "told": dict(found.told), "files": files}

    return made


def _release(kind: str) -> Callable[[ApiCall], Any]:
    def asked(call: ApiCall) -> Any:
        call.number("wait", 30, least=0, most=LONGEST_WAIT)
        said, key = _said(call, kind), call.body.idempotency_key
        return ask_work(call.server, call.caller, call.path["dataset"], kind, said, key)

    return asked


def _plans(call: ApiCall) -> Any:
    served = call.server.shelf[call.path["dataset"]]
    return {"plans": call.server.plans.standing(served, call.caller.name)}


# --- files ---

# What was released is a page of its own, under an origin of its own: it runs nothing and reaches nothing.
_OWN_PAGE = (
    "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_MEDIA = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv",
    "zip": "application/zip",
    "parquet": "application/vnd.apache.parquet",
    "safetensors": "application/octet-stream",
}


def shown_file(name: str, content: bytes, mark: str) -> Response:
    """Return a file; pages are shown under a policy of their own, anything else is downloaded."""
    ending = name.rpartition(".")[2]
    shown = "inline" if ending == "html" else "attachment"
    headers = {"content-disposition": f'{shown}; filename="{mark}-{name}"'}
    if ending == "html":
        headers["content-security-policy"] = _OWN_PAGE
    return Response(content, media_type=_MEDIA[ending], headers=headers)


def _as_csv(content: bytes) -> bytes:
    from pyarrow import csv, parquet

    written = io.BytesIO()
    csv.write_csv(parquet.read_table(io.BytesIO(content)), written, csv.WriteOptions(quoting_style="needed"))
    return written.getvalue()


def _file(call: ApiCall) -> Any:
    job, name = seen_job(call.server, call.caller, call.path["id"]), call.path["file"]
    if job.problem is not None:
        raise Problem("not-found", "this release failed, and has no files")
    files = WorkAnswer.of(job).files
    if name == "synthetic.csv" and "synthetic.parquet" in files:
        files = {name: _as_csv(files["synthetic.parquet"])}
    if name not in files:
        raise Problem("not-found", "this release has no such file")
    return shown_file(name, files[name], job.id[:8])


def _verify(call: ApiCall) -> Any:
    job = seen_job(call.server, call.caller, call.path["id"])
    if job.problem is not None:
        raise Problem("not-found", "this release failed, and has no bundle")
    found = verified_bundle(job, call.server.shelf[job.dataset])
    return {
        "name": found.name,
        "ok": found.ok,
        "outcome": found.outcome,
        "sentence": found.describe(),
        "checks": [check.what for check in found.checks],
        "problems": list(found.problems),
    }


# --- addresses ---


def _of_kind(kind: str, path: str, what: str, ask: type[Any], release: type[Any]) -> tuple[Endpoint, ...]:
    base = f"/v1/datasets/{{dataset}}/{path}"
    free, paid = ("plan estimate", operation_of(kind)) if kind == "plan" else ("estimate", operation_of(kind))
    return (
        Endpoint(
            method="POST",
            path=f"{base}/estimate",
            operation=free,
            handler=_estimate(kind),
            summary=f"The price of {what}. Free; no row is read",
            body=ask,
            answer=models.EstimateModel,
        ),
        Endpoint(
            method="POST",
            path=f"{base}/dummy",
            operation=free,
            handler=_dummy(kind),
            summary=f"The same way of {what}, from made-up rows. Free; no row is read",
            body=ask,
            answer=MadeUpWorkModel,
        ),
        Endpoint(
            method="POST",
            path=f"{base}/releases",
            operation=paid,
            handler=_release(kind),
            summary=f"Pay for {what} and release it; waits up to `wait` seconds",
            body=release,
            answer=models.ReleaseAnswerModel,
            query=("wait",),
        ),
    )


WORK_ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/datasets/{dataset}/plans",
        operation="plans",
        handler=_plans,
        summary="The plans of the data set, and where each stands today",
        answer=PlansModel,
    ),
    *_of_kind("plan", "plans", "one period of a plan", PlanAskModel, PlanReleaseModel),
    *_of_kind("profile", "profile", "a profile", ProfileAskModel, ProfileReleaseModel),
    *_of_kind("synth", "synthetic", "synthetic rows", SynthAskModel, SynthReleaseModel),
    *_of_kind("train", "training", "a model", TrainAskModel, TrainReleaseModel),
    Endpoint(
        method="GET",
        path="/v1/releases/{id}/files/{file}",
        operation="releases",
        handler=_file,
        summary="A file of a release: bundle.zip, report.html, profile.html, synthetic.csv, model.json, …",
        media=tuple(_MEDIA.values()),
    ),
    Endpoint(
        method="GET",
        path="/v1/releases/{id}/verify",
        operation="releases",
        handler=_verify,
        summary="Check the bundle of a release against the ledger",
        answer=VerifiedModel,
    ),
)
