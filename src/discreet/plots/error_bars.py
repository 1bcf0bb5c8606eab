"""Charts with a row for each name: dots with error bars, and bars divided into shares."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter
from discreet.plots import chart_files

if TYPE_CHECKING:
    import altair as alt

__all__ = ["boxes", "error_bars", "named_rows", "shares"]

# --- bars: A dot and an error bar for each row: what was released, and where the exact answer lies. ---


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
    by: str | None = None,
    from_zero: bool = False,
) -> alt.LayerChart:
    """Draw values with the ends of their intervals, one row each, from top to bottom as they come.

    Args:
        labels: The name of each row.
        values: The value of each row.
        lows: The lower end of each interval.
        highs: The upper end of each interval.
        across: The name of the horizontal axis.
        title: The title; none if not said.
        by: What the rows are, as the name of their axis; none if not said.
        from_zero: Whether the horizontal axis begins at 0, as it should for counts.

    Returns:
        A chart of altair.

    Examples:
        >>> type(dp.plots.error_bars(["a"], [1], [0], [2], across="people")).__name__
        'OfflineChart'
    """
    import altair as alt

    from discreet.plots.offline_chart import OfflineChart

    rows = _rows(labels, values, lows, highs)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("row:O", axis=named_rows(labels), title=by, scale=alt.Scale(padding=0.4)),
    )
    ends = base.mark_rule(color=chart_files.COLOURS[0], strokeWidth=2).encode(
        x=alt.X("low:Q", title=across, scale=alt.Scale(zero=from_zero)), x2="high:Q"
    )
    return OfflineChart(
        layer=[
            ends,
            base.mark_point(color=chart_files.COLOURS[0], filled=True, size=50, opacity=1).encode(x="value:Q"),
        ],
        width=chart_files.WIDTH,
        height=max(60, _ROW * len(rows)),
        config=chart_files.CONFIG,
        description=f"{across} with error bars, by {by or 'row'}",
        title=alt.Undefined if title is None else title,
    )


# --- boxes: A box plot for each row: the middle half of the values, the median, and where nine in ten lie. ---


def boxes(
    labels: Sequence[str],
    summaries: Sequence[Sequence[float]],
    *,
    across: str,
    title: str | None = None,
    by: str | None = None,
) -> alt.LayerChart:
    """Draw five-number summaries, one row each: a line from 5 to 95 %, a box from 25 to 75 %, and the median across it.

    Lines end at 5 and 95 %, not at the least and the largest value, which are one person's own and are never released.

    Args:
        labels: The name of each row.
        summaries: For each row the quantiles 5, 25, 50, 75 and 95 %, as SQL's FIVE_NUMBERS releases them.
        across: The name of the horizontal axis.
        title: The title; none if not said.
        by: What the rows are, as the name of their axis; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If there is not a label for each row, or its five numbers are not in order.

    Examples:
        >>> type(dp.plots.boxes(["a"], [[1, 2, 3, 4, 5]], across="age")).__name__
        'OfflineChart'
    """
    import altair as alt

    from discreet.plots.offline_chart import OfflineChart

    rows = _box_rows(labels, summaries)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("row:O", axis=named_rows(labels), title=by, scale=alt.Scale(padding=0.4)),
    )
    colour = chart_files.COLOURS[0]
    lines = base.mark_rule(color=colour, strokeWidth=2).encode(
        x=alt.X("q05:Q", title=across, scale=alt.Scale(zero=False)), x2="q95:Q"
    )
    halves = base.mark_bar(color=colour, size=_BOX, opacity=0.35).encode(x="q25:Q", x2="q75:Q")
    middles = base.mark_tick(color=colour, thickness=3, size=_BOX + 2, orient="vertical", opacity=1).encode(x="q50:Q")
    return OfflineChart(
        layer=[lines, halves, middles],
        width=chart_files.WIDTH,
        height=max(60, _ROW * len(rows)),
        config=chart_files.CONFIG,
        description=f"box plots of {across} (5, 25, 50, 75 and 95 %), by {by or 'row'}",
        title=alt.Undefined if title is None else title,
    )


_BOX = 14  # Pixels of the height of a box.


def _box_rows(labels: Sequence[str], summaries: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    numbers = [[float(number) for number in five] for five in summaries]
    if not labels or len(labels) != len(numbers) or any(len(five) != 5 or five != sorted(five) for five in numbers):
        raise InvalidParameter("there must be a label and five numbers in order for each row, and at least one row")
    if not all(math.isfinite(number) for five in numbers for number in five):
        raise InvalidParameter("the numbers of a summary must be finite")
    names = ("q05", "q25", "q50", "q75", "q95")
    return [{"row": row} | dict(zip(names, five, strict=True)) for row, five in enumerate(numbers)]


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
        labelPadding=8,
        grid=False,
        ticks=False,
        domain=False,
        labelOverlap=False,
    )


# --- shares: A bar for each row, divided into parts that make up a whole, with a key above. ---


_SHARES_ROW = 26  # Pixels from one row to the next.


def shares(
    labels: Sequence[str], parts: Mapping[str, Sequence[float]], *, across: str, title: str | None = None
) -> alt.LayerChart:
    """Draw the parts of each row from left to right, the first in red with its share written beside it.

    Args:
        labels: The name of each row.
        parts: Names mapped to the share of each row.
        across: The name of the horizontal axis.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Examples:
        >>> type(dp.plots.shares(["a"], {"found": [0.2], "hidden": [0.8]}, across="people")).__name__
        'OfflineChart'
    """
    import altair as alt

    from discreet.plots.offline_chart import OfflineChart

    rows = _shares_rows(labels, parts)
    colours = alt.Scale(domain=list(parts), range=list(chart_files.SHARES[: len(parts)]))
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
    return OfflineChart(
        layer=[bars, told.encode(x=alt.datum(1), text="told:N")],
        width=chart_files.WIDTH,
        height=max(60, _SHARES_ROW * len(labels)),
        config=chart_files.CONFIG,
        description=f"{across}: {', '.join(parts)}, by row",
        title=alt.Undefined if title is None else title,
    )


def _shares_rows(labels: Sequence[str], parts: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Place each part where the one before it ends."""
    if (
        not labels
        or not 2 <= len(parts) <= len(chart_files.SHARES)
        or any(len(v) != len(labels) for v in parts.values())
    ):
        raise InvalidParameter(
            f"there must be rows, and from 2 to {len(chart_files.SHARES)} parts with a share for each row"
        )
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
