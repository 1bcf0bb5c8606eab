"""A profile as JSON: every number as it was released."""

from __future__ import annotations

import json
from collections.abc import Hashable
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.release.profiling.estimates import Estimate
    from discreet.release.profiling.results import CellCount, ColumnProfile, Profile

__all__ = ["packed"]

FORMAT = 1


def packed(profile: Profile) -> str:
    """Write a profile."""
    spent = profile.spent
    document = {
        "format": FORMAT,
        "dataset": profile.dataset,
        "table": profile.table,
        "unit": {
            "column": profile.unit.column,
            "max_groups": profile.unit.max_groups,
            "max_rows_per_group": profile.unit.max_rows_per_group,
        },
        "units": _estimate(profile.units),
        "confidence": 0.95,
        "spent": {
            "epsilon": spent.epsilon,
            "delta": float(spent.delta),
            "allowed_epsilon": float(spent.allowed),
            "charges": list(spent.charges),
        },
        "columns": [_column(column) for column in profile.columns],
        "rule": list(profile.rule),
        "notes": list(profile.notes),
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def _column(column: ColumnProfile) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind.value,
        "basis": column.basis,
        "bounds": [_value(end) for end in column.bounds],
        "missing": _estimate(column.missing),
        "present": _estimate(column.present),
        "quantiles": [
            {"share": float(one.share), "value": _value(one.value), "low": _value(one.low), "high": _value(one.high)}
            for one in column.quantiles
        ],
        "cells": [_cell(cell, ordered=column.ordered) for cell in column.cells],
        "reasons": list(column.reasons),
    }


def _cell(cell: CellCount, *, ordered: bool) -> dict[str, Any]:
    where = {"from": _value(cell.low), "below": _value(cell.high)} if ordered else {"value": _value(cell.value)}
    return {"label": cell.label, **where, **({"rest": True} if cell.rest else {}), "count": _estimate(cell.count)}


def _estimate(estimate: Estimate) -> dict[str, int]:
    return {"value": estimate.value, "plus_minus": estimate.plus_minus, "low": estimate.low, "high": estimate.high}


def _value(value: Hashable) -> Any:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value
