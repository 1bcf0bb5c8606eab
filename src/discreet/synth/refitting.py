"""Another model as one was made, of other rows: what the custodian attacks to see what such models give away."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.synth.model import SyntheticModel
from discreet.synth.synthesis import synthesize
from discreet.synth.table import SyntheticTable

__all__ = ["refitting"]


def refitting(model: SyntheticModel) -> Callable[[Any], SyntheticTable]:
    """Return what fits a table as a model was fitted, row by row, and draws from it. Nothing pays: keep it to yourself.

    Where the model protects everybody who shares a value, the rows of one are not told apart here. So each counts with
    a share of epsilon that is no larger than its rows together had.
    """
    promise = model.promise

    def again(table: Any) -> SyntheticTable:
        fitted = synthesize(
            table,
            promise.method,
            domain=model.domain,
            epsilon=Fraction(promise.epsilon) / promise.rows_per_unit,
            delta=promise.delta / promise.rows_per_unit,
            relation=promise.relation,
            progress=False,
        )
        return fitted.sample()

    return again
