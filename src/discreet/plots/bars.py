"""A dot and an error bar for each row: what was released, and where the exact answer lies."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter
from discreet.plots import theme

if TYPE_CHECKING:
    import altair as alt

__all__ = ["error_bars", "named_rows"]

_ROW = 22  # Pixels from one row to the next.
_LABEL = 400  # Pixels that a label may take; what is longer ends in dots.


def error_bars(
    labels: Sequence[str],
    values: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    *,
    across: str,
    title: str | None = None,
) -> alt.LayerChart:
    """Draw values with the ends of their intervals, one row each, from top to bottom as they come."""
    import altair as alt

    rows = _rows(labels, values, lows, highs)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("row:O", axis=named_rows(labels), title=None, scale=alt.Scale(padding=0.4)),
    )
    ends = base.mark_rule(color=theme.COLOURS[0], strokeWidth=2).encode(
        x=alt.X("low:Q", title=across, scale=alt.Scale(zero=False)), x2="high:Q"
    )
    return alt.LayerChart(
        layer=[ends, base.mark_point(color=theme.COLOURS[0], filled=True, size=50, opacity=1).encode(x="value:Q")],
        width=theme.WIDTH,
        height=max(60, _ROW * len(rows)),
        config=theme.CONFIG,
        description=f"{across} with error bars, by row",
        title=alt.Undefined if title is None else title,
    )


def _rows(
    labels: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> list[dict[str, Any]]:
    if not labels or not len(labels) == len(values) == len(lows) == len(highs):
        raise InvalidParameter("there must be a label, a value and two ends for each row, and at least one row")
    numbers = [tuple(map(float, row)) for row in zip(values, lows, highs, strict=True)]
    if not all(math.isfinite(number) for row in numbers for number in row):
        raise InvalidParameter("values and ends must be finite")
    return [{"row": row, "value": v, "low": low, "high": high} for row, (v, low, high) in enumerate(numbers)]


def named_rows(labels: Sequence[str]) -> alt.Axis:
    """Name rows by their place, so that two rows of one label stay two; a label is data, never an expression."""
    import altair as alt

    listed = json.dumps([str(label) for label in labels]).replace("<", "\\u003c")
    return alt.Axis(
        labelExpr=f"{listed}[datum.value]",
        labelLimit=_LABEL,
        grid=False,
        ticks=False,
        domain=False,
        labelOverlap=False,
    )
