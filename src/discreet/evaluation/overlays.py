"""Every column by itself: the share of each cell, in both tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet.evaluation.exact_cells import ExactCells
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows
from discreet.synth.tables.counting import marginal
from discreet.synth.tables.distances import total_variation

__all__ = ["Overlay", "overlays"]

_MOST = 8  # Values of a category that are drawn; the rest is one bar.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The shares of the cells of one column."""

    name: str
    labels: tuple[str, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    ordered: bool  # numbers, from low to high; values are sorted by how common they really are
    distance: float  # in exact cells: undeclared values and places within bins count
    lost: float  # the share of real rows whose value the synthetic table does not have and nobody declared


def overlays(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, cells: ExactCells
) -> tuple[Overlay, ...]:
    """Compare both tables column by column."""
    return tuple(_overlay(layout, synthetic, real, cells, place) for place in range(len(layout.names)))


def _overlay(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, cells: ExactCells, place: int
) -> Overlay:
    ours, theirs = (marginal(rows.codes, layout.sizes, (place,)) for rows in (synthetic, real))
    shares = ours / ours.sum(), theirs / theirs.sum()
    ordered = place in layout.numbers
    order = np.arange(len(ours)) if ordered else np.argsort(-shares[1], kind="stable")
    kept = order if ordered or len(order) <= _MOST else order[: _MOST - 1]
    labels, (made, true) = [layout.labels[place][cell] for cell in kept], (share[kept].tolist() for share in shares)
    if len(kept) < len(order):
        labels.append(f"{len(order) - len(kept)} other values")
        made.append(float(1 - sum(made)))
        true.append(float(1 - sum(true)))
    return Overlay(
        name=layout.names[place],
        labels=tuple(labels),
        real=tuple(true),
        synthetic=tuple(made),
        ordered=ordered,
        distance=total_variation(cells.synthetic, cells.real, cells.sizes, (place,)),
        lost=cells.lost[place],
    )
