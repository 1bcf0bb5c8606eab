"""The process in which models are fitted: it gets rows and what to fit, gives up everything else, and returns a model.

What it spends was charged by whoever started it, for exactly the event that it finds here again. Noise is drawn here,
from the operating system. It has no ledger, no network and no environment, and is killed when its time is over.
"""

from __future__ import annotations

import io
import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from discreet.privacy.events import Event, from_json
from discreet.privacy.relation import Relation
from discreet.query.workers.lockdown import die_with_parent, forget_everything, limit_memory, lock
from discreet.query.workers.messages import receive, send

__all__ = ["MOST_SAMPLED", "PaidBefore", "fitted_training", "main", "training_estimator"]

MOST_SAMPLED = 100_000  # synthetic rows that are kept with a model
_USUAL_ROWS = 1_000  # where nothing was released of how many there are


def main(connection: int, temporary: str, parent: int) -> None:
    """Fit one model, and end."""
    die_with_parent(parent)
    import numpy as np  # noqa: F401 - loaded before anything is given up
    import pyarrow as pa

    forget_everything(connection)
    tempfile.tempdir = temporary
    asker = socket.socket(fileno=connection)
    try:
        said = receive(asker).said
        fit = _KINDS[said["do"]](said)
        limit_memory(int(said["memory"]), 1)
        lock()
        send(asker, {"ready": True})
        rows = pa.ipc.open_stream(bytes(receive(asker).blocks[0])).read_all()
        told, blocks = fit(rows)
        send(asker, {"answer": told}, blocks)
    except BaseException:  # noqa: BLE001 - whatever it was, it looks the same
        os._exit(1)
    os._exit(0)


# --- synthetic rows ---


def _synthesis(said: Mapping[str, Any]) -> Callable[[Any], tuple[dict[str, Any], list[bytes]]]:
    from discreet.synth.domain.domain_file import domain_restored
    from discreet.synth.synthesis import plan

    domain, words = domain_restored(said["domain"]), ("method", "epsilon", "delta", "unit", "rows_per_unit", "label")

    def fit(rows: Any) -> tuple[dict[str, Any], list[bytes]]:
        planned = plan(rows, domain=domain, **{name: said[name] for name in words})
        if planned.event != from_json(said["event"]):
            raise ValueError("another price than was paid")
        model = planned.fit(progress=False)
        wanted = min(said["rows"] or model.rows or _USUAL_ROWS, MOST_SAMPLED)
        sample = model.sample(wanted)
        told = {"rows": wanted, "rows_of_table": model.rows, "promise": str(model.promise), "method": said["method"]}
        return told, [_saved(model), _parquet(sample)]

    return fit


def _saved(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        model.save(file)
        return file.read_bytes()


def _parquet(sample: Any) -> bytes:
    from pyarrow import parquet

    written = io.BytesIO()
    table = sample.to_arrow().replace_schema_metadata({"discreet": str(sample.promise)})
    parquet.write_table(table, written, compression="zstd")
    return written.getvalue()


# --- training ---


@final
class PaidBefore:
    """A payer for what was charged elsewhere: it lets exactly that event pass, once."""

    def __init__(self, event: Event, unit: str) -> None:
        self._event: Event | None = event
        self._unit = unit

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        """Let what was paid pass."""
        if event != self._event or unit != self._unit or relation is not Relation.ADD_REMOVE:
            raise ValueError("another price than was paid")
        self._event = None


def training_estimator(said: Mapping[str, Any], payer: Any) -> Any:
    """Make the estimator that a request describes; all of it is public."""
    from discreet.learn.sklearn.linear import LinearRegression
    from discreet.learn.sklearn.logistic import LogisticRegression

    common = {"epsilon": said["epsilon"], "delta": said["delta"], "session": payer}
    bounds = [tuple(pair) for pair in said["bounds"]]
    if said["model"] == "logistic":
        return LogisticRegression(bounds=bounds, classes=said["classes"], **common)
    return LinearRegression(bounds=bounds, target_bounds=tuple(said["target_bounds"]), **common)


def fitted_training(said: Mapping[str, Any], rows: Any, payer: Any) -> Any:
    """Fit the estimator to rows, whose columns are named in the request."""
    import numpy as np
    import pyarrow as pa

    def numbers(name: str) -> Any:
        # Rounded where a double is too short: what refused one number would fail, or not, by somebody's row.
        return rows.column(name).cast(pa.float64(), safe=False).to_numpy()

    features = np.column_stack([numbers(name) for name in said["features"]])
    labelled = said["model"] == "logistic"
    target = _labels(rows.column(said["target"]), said["classes"]) if labelled else numbers(said["target"])
    limits = {}
    if said["unit"] != "row":
        limits = {"unit": {said["unit"]: rows.column(said["unit"])}, "max_rows": said["max_rows"]}
    return training_estimator(said, payer).fit(features, target, **limits)


def _labels(column: Any, classes: Sequence[Any]) -> Any:
    """Return the class of each row, None for what is none: sources write truth values and numbers as texts, too."""
    import numpy as np

    known = dict(zip(classes, classes, strict=True))
    written = {str(one).lower() if isinstance(one, bool) else str(one): one for one in classes}
    found = np.empty(len(column), dtype=object)
    found[:] = [_label(value, known, written) for value in column.to_pylist()]
    return found


def _label(value: Any, known: Mapping[Any, Any], written: Mapping[str, Any]) -> Any:
    label = known.get(value)
    if label is not None or not isinstance(value, str):
        return label
    if value in written or not any(type(one) is int for one in known):
        return written.get(value)
    try:
        return known.get(float(value))  # "1.0", where 1 is a class
    except ValueError:
        return None


def _training(said: Mapping[str, Any]) -> Callable[[Any], tuple[dict[str, Any], list[bytes]]]:
    import sklearn.linear_model  # noqa: F401 - loaded before anything is given up

    def fit(rows: Any) -> tuple[dict[str, Any], list[bytes]]:
        model = fitted_training(said, rows, PaidBefore(from_json(said["event"]), said["unit"]))
        return {}, [json.dumps(_trained(said, model), allow_nan=False).encode()]

    return fit


def _trained(said: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """Return what was fitted, all of which may be published, as JSON has it."""
    summary, names = model.summary(), ["intercept", *said["features"]]
    cells = [row.cells() for row in summary.rows]
    told = [(_named(one[0], names[place % len(names)]), *one[1:]) for place, one in enumerate(cells)]
    several = said["model"] == "logistic" and len(model.classes_) > 2
    return {
        "model": said["model"],
        "method": model.method_,
        "target": said["target"],
        "features": list(said["features"]),
        "bounds": [list(pair) for pair in said["bounds"]],
        "classes": said.get("classes"),
        "target_bounds": said.get("target_bounds"),
        "intercept": model.intercept_.tolist() if said["model"] == "logistic" else [model.intercept_],
        "coefficients": model.coef_.tolist() if said["model"] == "logistic" else [model.coef_.tolist()],
        "one_against_the_rest": several,
        "cost": str(model.privacy_spent_),
        "covers": re.sub(r"\bx(\d+)\b", lambda found: names[1 + int(found[1])], summary.covers),
        "confidence": float(summary.confidence),
        "rows": [list(row) for row in told],
        "unbounded": summary.is_unbounded,
    }


def _named(shown: str, name: str) -> str:
    """Name a coefficient by its column, after the class that it is of, if there are several."""
    label, mark, _ = shown.rpartition(": ")
    return f"{label}{mark}{name}"


_KINDS = {"synth": _synthesis, "train": _training}
