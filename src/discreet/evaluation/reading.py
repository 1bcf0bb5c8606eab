"""What is evaluated: a model, which knows its domain and its promise, or a table with both beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows, layout_of, read_rows
from discreet.synth.domain import Domain
from discreet.synth.model import SyntheticModel
from discreet.synth.promise import Promise
from discreet.synth.table import SyntheticTable

__all__ = ["EvaluatedTable", "subject_of", "synthetic_rows"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedTable:
    """A synthetic table in its domain, with its promise."""

    layout: ColumnLayout
    rows: EvaluatedRows
    promise: Promise | None


def subject_of(synthetic: Any, domain: Domain | None, promise: Promise | None) -> EvaluatedTable:
    """Take a model and sample it, or take a table; what is told beside it comes first."""
    known = getattr(synthetic, "domain", None) if domain is None else domain
    if not isinstance(known, Domain):
        raise InvalidParameter("say what the columns are: domain=Domain({…}), as it was declared for the synthesis")
    told = getattr(synthetic, "promise", None) if promise is None else promise
    if told is not None and not isinstance(told, Promise):
        raise InvalidParameter("a promise must be a Promise: Promise.of(event, …) writes one down")
    layout = layout_of(known)
    return EvaluatedTable(layout, synthetic_rows(layout, synthetic), told)


def synthetic_rows(layout: ColumnLayout, synthetic: Any) -> EvaluatedRows:
    """Read a synthetic table of any kind; a model is sampled."""
    table = synthetic.sample() if isinstance(synthetic, SyntheticModel) else synthetic
    if isinstance(table, SyntheticTable):
        table = {name: table[name] for name in table.columns}
    return read_rows(layout, table)
