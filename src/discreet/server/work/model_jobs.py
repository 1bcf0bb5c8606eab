"""Synthetic rows and trained models as jobs: rows are read by the session's worker, and fitted in a process of its own.

The charge is for the whole fit, before a row is read. Whatever fails after it fails with the constant error.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from fractions import Fraction
from threading import BoundedSemaphore
from typing import Any, final

from discreet.errors import InvalidParameter, MissingLibrary, Refused
from discreet.exact import positive
from discreet.formatting import significant_up
from discreet.privacy.events import ApproxDP, Event
from discreet.query.catalogue import CatalogueColumn, CatalogueTable
from discreet.query.session.private_bounds_and_keys import column_of, private_table
from discreet.query.session.row_streams import StoredRows
from discreet.query.session.session import Session
from discreet.schema.columns import Kind
from discreet.server.datasets import ServedDataset
from discreet.server.jobs import Job
from discreet.server.problems import Problem
from discreet.server.work.fits import fit_elsewhere
from discreet.server.work.job_kinds import WorkAnswer, WorkOffer, checked_unit, made_up_table, offered, pay_and_keep
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.domain_file import domain_document
from discreet.synth.domain.source_tables import domain_of_session
from discreet.synth.promise import Promise
from discreet.synth.synthesis import plan as plan_synthesis

__all__ = [
    "SYNTH_METHODS",
    "TRAINED",
    "dummy_synth",
    "dummy_training",
    "offer_synth",
    "offer_training",
    "run_synth",
    "run_training",
    "trainable",
]

SYNTH_METHODS = ("auto", "aim", "mst", "independent")
TRAINED = ("logistic", "linear")
_DUMMY_SECONDS = 40.0
_TRIALS = BoundedSemaphore(2)  # models that are tried at the same time, by everybody: they take memory and a core each
_MOST_CLASSES, _MOST_FEATURES, _HEAD = 20, 50, 10
_NUMBERS = (Kind.INTEGER, Kind.REAL)


# --- synthetic rows ---


def offer_synth(served: ServedDataset, session: Session, said: dict[str, Any]) -> WorkOffer:
    """Price synthetic rows; nothing is read."""
    unit = checked_unit(session, "a synthetic table")
    table = private_table(session.catalogue, said.get("table")).name
    StoredRows.of(session, table)  # Refuses where the engine hands over no rows.
    each = said["rows_per_unit"] or (None if session.unit.is_row else session.unit.rows_at_most)
    asked = {**said, "table": table, "rows_per_unit": each}
    plan = plan_synthesis(
        table,
        asked["method"],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        unit=unit,
        rows_per_unit=asked["rows_per_unit"],
        label=asked["label"],
        session=session,
    )
    promise, domain = plan.promise, domain_of_session(session, table)
    release = offered(
        "synth",
        f"synthetic rows of {table}, by {promise.method}",
        cost=f"ε = {significant_up(promise.epsilon)}, δ = {significant_up(promise.delta)}",
        event=_payable(session, promise),
        epsilon=positive(asked["epsilon"], name="epsilon"),
        said=asked,
    )
    facts = {"table": table, "columns": ", ".join(domain.names), "method": plan.description}
    return WorkOffer(release=release, facts=facts, notes=(str(promise),))


def _payable(session: Session, promise: Promise) -> Event:
    """Return the event, or what it means at its delta where the ledger keeps no account of such events.

    It follows from the kind of the budget alone, not from what is left: asked for again, it is the same.
    """
    try:
        session.affords(promise.event)
    except Refused:
        return ApproxDP(Fraction(promise.epsilon), promise.delta)
    return promise.event


def _synth_said(session: Session, asked: Mapping[str, Any]) -> tuple[dict[str, Any], Domain]:
    domain = domain_of_session(session, asked["table"])
    words = ("method", "epsilon", "delta", "rows_per_unit", "label", "rows")
    unit = session.unit.account
    planned = plan_synthesis(
        asked["table"],
        session=session,
        unit=unit,
        **{name: asked[name] for name in words if name != "rows"},
    )
    said = {name: asked[name] for name in words} | {"do": "synth", "unit": unit, "domain": domain_document(domain)}
    return {**said, "event": planned.event.to_json()}, domain


def run_synth(job: Job, served: ServedDataset, session: Session) -> str:
    """Charge, read, fit elsewhere, and keep the model and rows drawn from it."""
    offer = offer_synth(served, session, dict(job.details)).release
    said, domain = _synth_said(session, offer.details)
    own = () if session.unit.is_row else (session.unit.account,)
    reading = _FitColumns(session, offer.details["table"], (*domain.names, *own), domain.numbers)
    return pay_and_keep(job, session, offer, lambda: _synthesized(*reading.fitted(said, served)))


def dummy_synth(served: ServedDataset, said: dict[str, Any]) -> WorkAnswer:
    """Make synthetic rows of made-up ones, in the same way."""
    details = offer_synth(served, served.session, said).release.details
    words, _ = _synth_said(served.session, details)
    rows = made_up_table(served, details["table"])
    return _synthesized(*_tried(words, rows, served))


def _synthesized(told: dict[str, Any], blocks: list[bytes]) -> WorkAnswer:
    from pyarrow import parquet

    model, sample = blocks
    head = parquet.read_table(io.BytesIO(sample)).slice(0, _HEAD)
    shown = [["" if value is None else str(value) for value in row.values()] for row in head.to_pylist()]
    told = {**told, "heads": head.column_names, "head": shown}
    return WorkAnswer(told=told, files={"synthetic.parquet": sample, "model.safetensors": model})


# --- training ---


def trainable(table: CatalogueTable) -> tuple[list[str], list[str], list[str]]:
    """Name the columns that can be features, targets of a line, and targets of a choice among classes."""
    columns = [one for name, one in table.columns.items() if name != table.unit and one.unit_key is None]
    numbers = [one.name for one in columns if _bounds(one) is not None]
    return numbers, numbers, [one.name for one in columns if _classes(one) is not None]


def _bounds(column: CatalogueColumn) -> list[float] | None:
    facts = column.facts
    if facts.kind not in _NUMBERS or facts.low is None or facts.high is None or facts.low >= facts.high:
        return None
    return [float(facts.low), float(facts.high)]


def _classes(column: CatalogueColumn) -> list[Any] | None:
    members: Any = (False, True) if column.facts.kind is Kind.BOOLEAN else column.facts.members
    if members is None or not 2 <= len(members) <= _MOST_CLASSES:
        return None
    return list(members) if all(isinstance(one, (str, int, bool)) for one in members) else None


def _training_said(session: Session, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Put together what is fitted from what is asked and what is declared."""
    table = private_table(session.catalogue, asked.get("table"))
    names, target = [column_of(table, name).name for name in asked["features"]], column_of(table, asked["target"])
    if not 1 <= len(set(names)) == len(names) <= _MOST_FEATURES or target.name in names:
        raise InvalidParameter(f"name from 1 to {_MOST_FEATURES} features, each once, and another target")
    bounds = {name: _bounds(column_of(table, name)) for name in names}
    unknown = [name for name, one in bounds.items() if one is None]
    if unknown:
        raise Refused(
            f"{', '.join(unknown)} cannot be a feature: it is no number with declared bounds",
            way_out="declare low and high of numbers in the policy, from public knowledge; or leave the column out",
        )
    found = _classes(target) if asked["model"] == "logistic" else _bounds(target)
    if found is None:
        wanted = f"2 to {_MOST_CLASSES} declared values" if asked["model"] == "logistic" else "declared bounds"
        raise Refused(f"{target.name} cannot be the target: it needs {wanted}", way_out="declare them, or take another")
    _check_ids(session, table)
    said = {name: asked[name] for name in ("model", "epsilon", "delta")} | {"target": target.name, "features": names}
    said |= {"table": table.name, "bounds": list(bounds.values()), "unit": session.unit.account}
    said["max_rows"] = None if session.unit.is_row else (asked.get("max_rows") or 1)
    return said | {"classes" if asked["model"] == "logistic" else "target_bounds": found}


def _check_ids(session: Session, table: CatalogueTable) -> None:
    """Refuse ids that the library refuses once it is paid: real numbers, of which several may be one."""
    own = None if session.unit.is_row or table.unit is None else table.columns[table.unit]
    if session.unit.is_composed or (own is not None and own.stored is Kind.REAL):
        raise Refused(
            "models are trained on rows, or for units of one column of whole numbers or texts",
            way_out="ask questions, or serve the data with such a unit",
        )


@final
class _FitPriced(Exception):
    """What an estimator was about to spend."""


@final
class _FitQuoting:
    """A payer that pays nothing and ends a fit where it would be paid: its argument is the price."""

    def charge(self, event: Event, **facts: Any) -> None:
        raise _FitPriced(event)


def _price_of(said: Mapping[str, Any]) -> Event:
    """Return what a fit spends: it follows from what is declared, so that any rows will do to ask."""
    import pyarrow as pa

    from discreet.server.work.fit_child import fitted_training

    labels = [said["classes"][0]] if said["model"] == "logistic" else [float(said["target_bounds"][0])]
    columns: dict[str, Any] = {
        name: [float(low)] for name, (low, _) in zip(said["features"], said["bounds"], strict=True)
    }
    columns |= {said["target"]: labels} | ({} if said["unit"] == "row" else {said["unit"]: ["nobody"]})
    try:
        fitted_training(said, pa.table(columns), _FitQuoting())
    except _FitPriced as quoted:
        event: Event = quoted.args[0]
        return event
    raise RuntimeError("an estimator read rows and was not paid")


def offer_training(served: ServedDataset, session: Session, said: dict[str, Any]) -> WorkOffer:
    """Price a fit; nothing is read."""
    checked_unit(session, "a model")
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        raise MissingLibrary("training needs scikit-learn: pip install 'discreet[sklearn]'") from None
    asked = _training_said(session, said)
    StoredRows.of(session, asked["table"])
    event = _price_of(asked)
    amount = positive(asked["epsilon"], name="epsilon")
    release = offered(
        "train",
        f"{asked['model']} regression of {asked['target']} on {', '.join(asked['features'])}",
        cost=f"ε = {significant_up(amount)}, δ = {significant_up(positive(asked['delta'], name='delta'))}",
        event=event,
        epsilon=amount,
        said={**said, "table": asked["table"]},
    )
    facts = {"table": asked["table"], "target": asked["target"], "features": ", ".join(asked["features"])}
    notes = ("Features and target are clamped to their declared bounds; what is missing counts as the middle of them.",)
    return WorkOffer(release=release, facts=facts, notes=notes)


def run_training(job: Job, served: ServedDataset, session: Session) -> str:
    """Charge, read, fit elsewhere, and keep the coefficients."""
    offer = offer_training(served, session, dict(job.details)).release
    said = _training_said(session, offer.details)
    said |= {"do": "train", "event": _price_of(said).to_json()}
    own = () if session.unit.is_row else (session.unit.account,)
    names = dict.fromkeys((*said["features"], said["target"], *own))
    numbers = [*said["features"], *([said["target"]] if said["model"] == "linear" else [])]
    reading = _FitColumns(session, said["table"], tuple(names), tuple(numbers))
    return pay_and_keep(job, session, offer, lambda: _trained(*reading.fitted(said, served)))


def dummy_training(served: ServedDataset, said: dict[str, Any]) -> WorkAnswer:
    """Fit made-up rows, in the same way."""
    offer = offer_training(served, served.session, said).release
    words = _training_said(served.session, offer.details)
    words |= {"do": "train", "event": _price_of(words).to_json()}
    rows = made_up_table(served, words["table"])
    return _trained(*_tried(words, rows, served))


def _trained(told: dict[str, Any], blocks: list[bytes]) -> WorkAnswer:
    return WorkAnswer(told=json.loads(blocks[0]), files={"model.json": blocks[0]})


def _tried(said: Mapping[str, Any], rows: Any, served: ServedDataset) -> tuple[dict[str, Any], list[bytes]]:
    if not _TRIALS.acquire(blocking=False):
        raise Problem("too-many", "two models are tried on made-up rows already: try again in a minute")
    try:
        return fit_elsewhere(said, rows, seconds=_DUMMY_SECONDS, memory=served.policy.resources.memory)
    finally:
        _TRIALS.release()


# --- reading ---


@final
class _FitColumns:
    """Columns of a table that are read once they are paid for, and what is left of the time for the fit."""

    def __init__(self, session: Session, table: str, columns: tuple[str, ...], numbers: tuple[str, ...]) -> None:
        self._rows, self._seconds = StoredRows.of(session, table), session._desk.seconds
        self._columns, self._numbers = columns, numbers

    def fitted(self, said: Mapping[str, Any], served: ServedDataset) -> tuple[dict[str, Any], list[bytes]]:
        """Read, and fit elsewhere; both within the seconds of the session."""
        until = time.monotonic() + self._seconds
        rows = self._rows.read(self._columns, self._numbers)
        memory = served.policy.resources.memory
        return fit_elsewhere(said, rows, seconds=until - time.monotonic(), memory=memory)
