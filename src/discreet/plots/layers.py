"""The layers of a chart: lines, their names, and the diagonal of guessing.

Names stand beside their lines, except above the diagonal, where no line ever runs and a key has all the room.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.plots import theme
from discreet.plots.curves import Read
from discreet.plots.frame import ChartAxis, ChartFrame
from discreet.plots.labels import Label, place

if TYPE_CHECKING:
    import altair as alt

__all__ = ["chart"]

_GUESSING = ({"x": 0, "y": 1}, {"x": 1, "y": 0})


def chart(
    curves: Read, frame: ChartFrame, titles: tuple[str, str], *, title: str | None, diagonal: bool = False
) -> alt.LayerChart:
    """Layer the curves, their names, and the diagonal if it is asked for. `titles` are those of the axes, x and y."""
    import altair as alt

    names = _diagonal() if diagonal else _texts(place(curves, frame), frame)
    return alt.LayerChart(
        layer=[_lines(curves, frame, titles, key=diagonal), *names],
        width=frame.x.pixels,
        height=frame.y.pixels,
        config=theme.CONFIG,
        description=f"{titles[1]} against {titles[0]}: {', '.join(curves)}",
        title=alt.Undefined if title is None else title,
    )


def _plain(rows: list[dict[str, Any]]) -> alt.Chart:
    import altair as alt

    return alt.Chart(alt.InlineData(values=rows))


def _lines(curves: Read, frame: ChartFrame, titles: tuple[str, str], *, key: bool) -> alt.Chart:
    import altair as alt

    names = list(curves)
    rows = [{"curve": name, "x": float(x), "y": float(y)} for name in names for x, y in zip(*curves[name], strict=True)]
    colours = alt.Scale(domain=names, range=list(theme.COLOURS[: len(names)]))
    dashes = alt.Scale(domain=names, range=[list(dash) for dash in theme.DASHES[: len(names)]])
    legend = alt.Legend(orient="top-right", title=None) if key else None
    drawn: alt.Chart = (
        _plain(rows)
        .mark_line(clip=True)
        .encode(
            x=alt.X("x:Q", scale=_scale(frame.x), axis=_ticks(frame.x, titles[0])),
            y=alt.Y("y:Q", scale=_scale(frame.y), axis=_ticks(frame.y, titles[1])),
            color=alt.Color("curve:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("curve:N", scale=dashes, legend=legend),
        )
    )
    return drawn


def _scale(axis: ChartAxis) -> alt.Scale:
    import altair as alt

    return alt.Scale(type="log" if axis.log else "linear", domain=[axis.low, axis.high], nice=False, zero=False)


def _ticks(axis: ChartAxis, title: str) -> alt.Axis:
    import altair as alt

    if not axis.log:
        return alt.Axis(title=title, format=",~f", tickCount=6)
    # Tiny probabilities are read as 1e-6 and large numbers as 1e6, the way they are typed.
    extreme = "datum.value < 0.001 || datum.value >= 1e6"
    written = f"{extreme} ? replace(format(datum.value, '.0e'), '+', '') : format(datum.value, ',~g')"
    return alt.Axis(title=title, values=_marks(axis.low, axis.high), labelExpr=written)


def _marks(low: float, high: float) -> list[float]:
    """Return round numbers for a logarithmic axis: 1-2-5 on a short one, fewer powers of ten on a long one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    stride = max(1, (last - first) // 6)
    powers = range(last - (last - first) // stride * stride, last + 1, stride)
    marks = [float(f"{step}e{power}") for power in powers for step in steps]
    return [mark for mark in marks if low <= mark * (1 + 1e-9) and mark <= high * (1 + 1e-9)]


def _texts(labels: list[Label], frame: ChartFrame) -> list[alt.Chart]:
    """Draw labels in the colours of their curves, each on a white halo."""
    import altair as alt

    rows = [
        {"curve": label.text, "x": frame.x.value(label.x), "y": frame.y.value(label.y), "ink": ink}
        for label, ink in zip(labels, theme.INKS, strict=False)
    ]
    text = _plain(rows).encode(x="x:Q", y="y:Q", text="curve:N")
    halo = text.mark_text(stroke="white", strokeWidth=4, strokeJoin="round", color="white")
    return [halo, text.mark_text().encode(color=alt.Color("ink:N", scale=None))]


def _diagonal() -> list[alt.Chart]:
    """Draw the line of an attacker who guesses, with its name along it."""
    line = (
        _plain(list(_GUESSING))
        .mark_line(color=theme.QUIET, strokeWidth=1.5, strokeDash=[4, 4])
        .encode(x="x:Q", y="y:Q")
    )
    along = _plain([{"x": 0.62, "y": 0.38}]).encode(x="x:Q", y="y:Q")
    return [line, along.mark_text(text="guessing: nothing learnt", angle=45, dy=-10, color=theme.QUIET)]
