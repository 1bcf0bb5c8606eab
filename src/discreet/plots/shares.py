"""A bar for each row, divided into parts that make up a whole, with a key above."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter
from discreet.plots import theme
from discreet.plots.bars import named_rows

if TYPE_CHECKING:
    import altair as alt

__all__ = ["shares"]

_ROW = 26  # Pixels from one row to the next.
# From what stands out to what fades: a reader looks for the first part. Red and blue of Okabe and Ito, and paler.
_RED, _SHADES = "#D55E00", ("#0072B2", "#4C9CCB", "#7FBADB", "#AAD2E8", "#CCE3F0", "#E3EFF6")


def shares(
    labels: Sequence[str], parts: Mapping[str, Sequence[float]], *, across: str, title: str | None = None
) -> alt.LayerChart:
    """Draw the parts of each row from left to right, the first in red with its share written beside it."""
    import altair as alt

    rows = _rows(labels, parts)
    first, *others = parts
    colours = alt.Scale(domain=[first, *others], range=[_RED, *_SHADES[: len(others)]])
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("row:O", axis=named_rows(labels), title=None, scale=alt.Scale(padding=0.25))
    )
    key = alt.Legend(orient="top", title=None, symbolType="square", symbolSize=150, columns=4)
    axis = alt.Axis(format="%", tickCount=5)
    bars = base.mark_bar().encode(
        x=alt.X("low:Q", title=across, axis=axis, scale=alt.Scale(domain=[0, 1])),
        x2="high:Q",
        color=alt.Color("part:N", scale=colours, legend=key),
    )
    told = base.transform_filter("datum.told != ''").mark_text(align="left", dx=6)
    return alt.LayerChart(
        layer=[bars, told.encode(x=alt.datum(1), text="told:N")],
        width=theme.WIDTH,
        height=max(60, _ROW * len(labels)),
        config=theme.CONFIG,
        description=f"{across}: {', '.join(parts)}, by row",
        title=alt.Undefined if title is None else title,
    )


def _rows(labels: Sequence[str], parts: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Place each part where the one before it ends."""
    if not labels or not 2 <= len(parts) <= 1 + len(_SHADES) or any(len(v) != len(labels) for v in parts.values()):
        raise InvalidParameter(f"there must be rows, and from 2 to {1 + len(_SHADES)} parts with a share for each row")
    rows, ends = [], [0.0] * len(labels)
    for number, (name, values) in enumerate(parts.items()):
        for row, share in enumerate(values):
            if not (math.isfinite(share) and share >= 0):
                raise InvalidParameter("shares are finite and not negative")
            told = f"{100 * share:.1f} %" if number == 0 else ""
            rows.append({"row": row, "part": name, "low": ends[row], "high": ends[row] + share, "told": told})
            ends[row] += share
    if any(abs(end - 1) > 1e-6 for end in ends):
        raise InvalidParameter("the parts of each row must make up a whole")
    return rows
