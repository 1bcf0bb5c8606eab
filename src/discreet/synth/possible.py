"""Rows that public knowledge rules out are drawn again; that is free, since only the model is asked.

A model that knows nothing of the rules may draw hardly any row that keeps them, if the table contradicts them. Nobody
can tell before it is paid, so in the end what is still missing is drawn evenly from what the rules leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.column import Column
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.tables.rules import evenly_possible

__all__ = ["are_impossible", "possible_rows"]

_TRIES = 200


def possible_rows(domain: Domain, rows: int, draw: Callable[[int], Mapping[str, Column]]) -> dict[str, Column]:
    """Draw rows of a domain, none of them impossible."""
    drawn = dict(draw(rows))
    if not domain.impossible:
        return drawn
    for _ in range(_TRIES):
        wrong = np.flatnonzero(are_impossible(domain, drawn))
        if not wrong.size:
            return drawn
        drawn = _replaced(drawn, wrong, draw(len(wrong)))
    wrong = np.flatnonzero(are_impossible(domain, drawn))
    return _replaced(drawn, wrong, evenly_possible(domain, len(wrong))) if wrong.size else drawn


def are_impossible(domain: Domain, columns: Mapping[str, Column]) -> NDArray[np.bool_]:
    """Tell which rows public knowledge rules out."""
    codes = Coder(domain).codes(columns)
    wrong = np.zeros(len(codes), dtype=bool)
    for rule in domain.impossible:
        parts = [np.isin(codes[:, place], cells) for place, cells in zip(rule.columns, rule.cells, strict=True)]
        wrong |= np.logical_and.reduce(parts)
    return wrong


def _replaced(drawn: Mapping[str, Column], at: NDArray[np.int64], fresh: Mapping[str, Column]) -> dict[str, Column]:
    return {name: _column(column, at, fresh[name]) for name, column in drawn.items()}


def _column(column: Column, at: NDArray[np.int64], fresh: Column) -> Column:
    values = np.array(column.values)
    values[at] = np.asarray(fresh.values)
    if column.missing is None or fresh.missing is None:
        return Column(values, column.missing)
    missing = column.missing.copy()
    missing[at] = fresh.missing
    return Column(values, missing)
