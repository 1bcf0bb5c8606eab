"""Noisy distances that were paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.evaluation.page.marks import bars, paragraph, section
from discreet.evaluation.priced import NoisyWay
from discreet.evaluation.promised import promise_text
from discreet.evaluation.words import columns_text, percent
from discreet.plots import scale_for, strip

if TYPE_CHECKING:
    from discreet.evaluation.evaluation import Evaluation

__all__ = ["priced_part"]

_SHOWN = 15


def priced_part(evaluation: Evaluation) -> str:
    """Write the section."""
    priced = evaluation.priced
    if priced is None:
        return ""
    limit = f"about one {priced.spent.unit} no more than {promise_text(priced.spent)} allows"
    parts = [
        paragraph(
            "Count the rows of every combination of values, in the synthetic table and in the real one, and move rows "
            "until both agree: the share of rows that must move is the distance. Noise was added to every distance, so "
            f"that together they tell {limit}. The lines show where the exact distance lies, 95 times in 100; a noisy "
            "distance can fall below 0 %."
        ),
        *(_way(way, evaluation) for way in priced.ways),
    ]
    return section("distances", "How like the real table it is", parts)


def _way(way: NoisyWay, evaluation: Evaluation) -> str:
    named = [(f"mean of {len(way.by_clique)} tables", way.mean, way.mean_error)]
    named += [
        (columns_text([evaluation.columns[at] for at in one]), value, way.error) for one, value in way.ordered(_SHOWN)
    ]
    scale = scale_for(100 * end for _, value, error in named for end in (value - error, value + error))
    rows = []
    for place, (name, value, error) in enumerate(named):
        low, high = 100 * (value - error), 100 * (value + error)
        shown = f"{100 * value:.1f}".replace("-0.0", "0.0").replace("-", "−")
        told = f"{shown} ± {percent(error, 1)}"
        rows.append((name, strip(scale, 100 * value, low=low, high=high, accent=place == 0), told))
    which = "one column" if way.columns == 1 else f"{way.columns} columns"
    largest = "" if len(way.by_clique) <= _SHOWN else f", and the {_SHOWN} that seem largest"
    return bars(f"Counts of {which}{largest}, in per cent", rows, scale)
