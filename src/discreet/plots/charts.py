"""Charts of a guarantee: axes, lines and direct labels; what may leak, who is caught, what accuracy is left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.plots import chart_files
from discreet.plots.chart_files import Curves, Floats, Read, read_curves

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "ChartAxis",
    "ChartFrame",
    "Label",
    "accuracy",
    "chart",
    "lines",
    "log_axis",
    "neighbours",
    "place",
    "profile",
    "shifts",
    "tradeoff",
]

# --- charts ---
# Pictures of a guarantee: what may leak, who is caught, what accuracy is left, what bad rows can do, and any other.


_EPSILON = "privacy loss ε (nats)"
_FLOOR = 1e-12  # The smallest delta that is drawn; smaller ones leave the chart through its lower edge.


def profile(curves: Curves, *, title: str | None = None) -> alt.LayerChart:
    """Draw the privacy profile, delta (logarithmic) against epsilon. Names map to (epsilons, deltas).

    Args:
        curves: Names mapped to (epsilons, deltas).
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If a delta is no probability, or no epsilon is above 0.

    Examples:
        >>> type(dp.plots.profile({"noise": ([0, 1], [0.1, 0.01])})).__name__
        'OfflineChart'
    """
    read = read_curves(curves, horizontal="epsilon", vertical="delta")
    if any((deltas > 1).any() for _, deltas in read.values()):
        raise InvalidParameter("delta must lie between 0 and 1")
    largest = max(float(epsilons.max()) for epsilons, _ in read.values())
    if largest == 0:
        raise InvalidParameter("epsilon must be above 0 somewhere")
    smallest = min((float(deltas[deltas > 0].min(initial=1.0)) for _, deltas in read.values()))
    # A whole power of ten, and the next one up where the curve just touches it.
    floor = 10.0 ** min(math.floor(math.log10(max(smallest, _FLOOR)) + 0.05), -1)
    drawn = {name: (epsilons, np.maximum(deltas, floor / 100)) for name, (epsilons, deltas) in read.items()}
    frame = ChartFrame(
        x=ChartAxis(low=0.0, high=largest, pixels=chart_files.WIDTH),
        y=ChartAxis(low=floor, high=1.0, pixels=chart_files.HEIGHT, log=True, upward=True),
    )
    return chart(drawn, frame, (_EPSILON, "δ (probability)"), title=title)


def tradeoff(curves: Curves, *, title: str | None = None) -> alt.LayerChart:
    """Draw the error rates of the best attacker, with the diagonal of one who guesses. Names map to (fpr, fnr).

    Args:
        curves: Names mapped to (false positive rates, false negative rates).
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If a rate does not lie between 0 and 1.

    Examples:
        >>> type(dp.plots.tradeoff({"noise": ([0, 1], [1, 0])})).__name__
        'OfflineChart'
    """
    read = read_curves(curves, horizontal="fpr", vertical="fnr")
    if any((x > 1).any() or (y > 1).any() for x, y in read.values()):
        raise InvalidParameter("error rates must lie between 0 and 1")
    side = ChartAxis(low=0.0, high=1.0, pixels=chart_files.SQUARE)
    frame = ChartFrame(x=side, y=ChartAxis(low=0.0, high=1.0, pixels=chart_files.SQUARE, upward=True))
    titles = "false positive rate (absent, called present)", "false negative rate (present, called absent)"
    return chart(read, frame, titles, title=title, diagonal=True)


def accuracy(
    curves: Curves, *, unit: str = "grid steps", confidence: str = "95 %", title: str | None = None
) -> alt.LayerChart:
    """Draw the half width of an interval against epsilon, both logarithmic. Names map to (epsilons, half widths).

    A half width of 0 has no logarithm and is left out.

    Args:
        curves: Names mapped to (epsilons, half widths).
        unit: The name of the unit, for the axis.
        confidence: The confidence of the intervals, for the axis.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If a curve has fewer than two points above 0.

    Examples:
        >>> type(dp.plots.accuracy({"count": ([0.5, 1], [6, 3])})).__name__
        'OfflineChart'
    """
    read = read_curves(curves, horizontal="epsilon", vertical="half width")
    drawn = {name: (x[(x > 0) & (y > 0)], y[(x > 0) & (y > 0)]) for name, (x, y) in read.items()}
    if any(x.size < 2 for x, _ in drawn.values()):
        raise InvalidParameter("a curve must have at least two points with epsilon and half width above 0")
    frame = ChartFrame(x=log_axis(drawn, 0, chart_files.WIDTH), y=log_axis(drawn, 1, chart_files.HEIGHT, upward=True))
    return chart(drawn, frame, (_EPSILON, f"± ({confidence}), in {unit}"), title=title)


def shifts(
    curves: Curves, *, what: str = "bad rows", unit: str = "units of the data", title: str | None = None
) -> alt.LayerChart:
    """Draw how far estimates can be off against the number of bad rows. Names map to (rows, shifts).

    Args:
        curves: Names mapped to (rows, shifts).
        what: What the rows are, for the axis.
        unit: The name of the unit, for the axis.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If no number of rows is above 0.

    Examples:
        >>> type(dp.plots.shifts({"mean": ([0, 1], [0, 5])})).__name__
        'OfflineChart'
    """
    read = read_curves(curves, horizontal="rows", vertical="shift")
    if not any((rows > 0).any() for rows, _ in read.values()):
        raise InvalidParameter("rows must be above 0 somewhere")
    return _drawn(read, (f"{what} (number)", f"off by (in {unit})"), logs=(False, False), title=title)


def neighbours(curves: Curves, *, across: str = "noisy answer", title: str | None = None) -> alt.LayerChart:
    """Draw the laws of the answers to neighbouring data sets. Names map to (answers, probabilities).

    Args:
        curves: Names mapped to (answers, probabilities); answers may be negative.
        across: The name of the horizontal axis.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If all answers are equal, or no probability is above 0.

    Examples:
        >>> laws = {"with Ana": ([-1, 0, 1], [0.2, 0.6, 0.2]), "without": ([-1, 0, 1], [0.6, 0.3, 0.1])}
        >>> type(dp.plots.neighbours(laws)).__name__
        'OfflineChart'
    """
    read = read_curves(curves, horizontal="answers", vertical="probabilities", signed=True)
    low, high = min(float(x[0]) for x, _ in read.values()), max(float(x[-1]) for x, _ in read.values())
    most = max(float(y.max()) for _, y in read.values())
    if low == high or most == 0:
        raise InvalidParameter("there must be two different answers, and one with a probability above 0")
    frame = ChartFrame(
        x=ChartAxis(low=low, high=high, pixels=chart_files.WIDTH),
        y=ChartAxis(low=0.0, high=1.05 * most, pixels=chart_files.HEIGHT, upward=True),
    )
    return chart(read, frame, (across, "probability"), title=title)


def lines(
    curves: Curves, *, across: str, up: str, log_x: bool = False, log_y: bool = False, title: str | None = None
) -> alt.LayerChart:
    """Draw any curves, with axes of these names. Names map to (x, y). An axis that is not logarithmic begins at 0.

    Args:
        curves: Names mapped to (x, y).
        across: The name of the horizontal axis.
        up: The name of the vertical axis.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Examples:
        >>> type(dp.plots.lines({"a": ([1, 2], [3, 4])}, across="x", up="y")).__name__
        'OfflineChart'
    """
    return _drawn(read_curves(curves, horizontal="x", vertical="y"), (across, up), logs=(log_x, log_y), title=title)


def _drawn(read: Read, titles: tuple[str, str], *, logs: tuple[bool, bool], title: str | None) -> alt.LayerChart:
    x = _axis(read, 0, chart_files.WIDTH, log=logs[0])
    y = _axis(read, 1, chart_files.HEIGHT, log=logs[1], upward=True)
    return chart(read, ChartFrame(x=x, y=y), titles, title=title)


def _axis(read: Read, which: int, pixels: int, *, log: bool, upward: bool = False) -> ChartAxis:
    if not log:
        # A little room above the highest line; none to the right, where all lines end.
        high = (1.05 if upward else 1.0) * max(float(pair[which].max()) for pair in read.values())
        return ChartAxis(low=0.0, high=high or 1.0, pixels=pixels, upward=upward)
    if not all((pair[which] > 0).all() for pair in read.values()):
        raise InvalidParameter("a logarithmic axis has no 0: leave such points out, or draw them on a plain axis")
    return log_axis(read, which, pixels, upward=upward)


# --- layers: The layers of a chart: lines, their names, and the diagonal of guessing. ---
#
# Names stand beside their lines, except above the diagonal, where no line ever runs and a key has all the room.


_GUESSING = ({"x": 0, "y": 1}, {"x": 1, "y": 0})


def chart(
    curves: Read, frame: ChartFrame, titles: tuple[str, str], *, title: str | None, diagonal: bool = False
) -> alt.LayerChart:
    """Layer the curves, their names, and the diagonal if it is asked for. `titles` are those of the axes, x and y."""
    import altair as alt

    from discreet.plots.offline_chart import OfflineChart

    names = _diagonal() if diagonal else _texts(place(curves, frame), frame)
    return OfflineChart(
        layer=[_lines(curves, frame, titles, key=diagonal), *names],
        width=frame.x.pixels,
        height=frame.y.pixels,
        config=chart_files.CONFIG,
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
    colours = alt.Scale(domain=names, range=list(chart_files.COLOURS[: len(names)]))
    dashes = alt.Scale(domain=names, range=[list(dash) for dash in chart_files.DASHES[: len(names)]])
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
        for label, ink in zip(labels, chart_files.INKS, strict=False)
    ]
    text = _plain(rows).encode(x="x:Q", y="y:Q", text="curve:N")
    halo = text.mark_text(stroke="white", strokeWidth=4, strokeJoin="round", color="white")
    return [halo, text.mark_text().encode(color=alt.Color("ink:N", scale=None))]


def _diagonal() -> list[alt.Chart]:
    """Draw the line of an attacker who guesses, with its name along it."""
    line = (
        _plain(list(_GUESSING))
        .mark_line(color=chart_files.QUIET, strokeWidth=1.5, strokeDash=[4, 4])
        .encode(x="x:Q", y="y:Q")
    )
    along = _plain([{"x": 0.62, "y": 0.38}]).encode(x="x:Q", y="y:Q")
    return [line, along.mark_text(text="guessing: nothing learnt", angle=45, dy=-10, color=chart_files.QUIET)]


# --- labels: Direct labels: each curve carries its name, where it hides the least. ---


_LETTER = 7.3  # Pixels: the mean width of a letter of a label, and the height of its line.
_LINE = 16.0
_GAP = 5.0  # From a label to its own curve.
_ENOUGH = 45.0  # More distance from the other curves makes a label no clearer.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text and the pixel of its centre."""

    text: str
    x: float
    y: float

    @property
    def half(self) -> tuple[float, float]:
        """Half the width and half the height."""
        return len(self.text) * _LETTER / 2, _LINE / 2

    def distance(self, x: Floats, y: Floats) -> float:
        """Return how far the nearest of some pixels is from the box of the text; 0 if one is inside."""
        if x.size == 0:
            return _ENOUGH
        wide, high = self.half
        return float(np.hypot(np.maximum(abs(x - self.x) - wide, 0), np.maximum(abs(y - self.y) - high, 0)).min())

    def covered(self, x: Floats, y: Floats) -> int:
        """Count the pixels that the box hides."""
        wide, high = self.half
        return int(((abs(x - self.x) < wide) & (abs(y - self.y) < high)).sum())

    def overlap(self, other: Label) -> bool:
        """Tell whether two texts would touch."""
        wide, high = self.half[0] + other.half[0], self.half[1] + other.half[1]
        return abs(self.x - other.x) < wide + _GAP and abs(self.y - other.y) < high


def place(curves: Read, frame: ChartFrame) -> list[Label]:
    """Place one label a curve, next to it, away from the other curves and from the labels before it."""
    pixels = {name: frame.inside(*pair) for name, pair in curves.items()}
    placed: list[Label] = []
    for name in curves:
        others = [pair for other, pair in pixels.items() if other != name]
        placed.append(_best(name, pixels[name], others, placed, frame))
    return placed


def _best(
    name: str, own: tuple[Floats, Floats], others: list[tuple[Floats, Floats]], placed: list[Label], frame: ChartFrame
) -> Label:
    rest = tuple(np.concatenate([np.empty(0), *(pair[side] for pair in others)]) for side in (0, 1))

    def score(label: Label) -> float:
        """Reward distance from the other curves; what hides a line or a label costs more than any distance."""
        clear = min(label.distance(rest[0], rest[1]), _ENOUGH) - label.covered(rest[0], rest[1])
        clear -= 1000 * sum(label.overlap(other) for other in placed)
        return clear - 100 * (label.distance(*own) < _GAP / 2) - 1000 * _outside(label, frame)

    return max(_candidates(name, own), key=score, default=_centre(name, frame))


def _candidates(name: str, own: tuple[Floats, Floats]) -> list[Label]:
    """List places on both sides of the curve."""
    wide, high = len(name) * _LETTER / 2, _LINE / 2
    sides = [(1, -1), (1, 1), (-1, 1), (-1, -1)]
    shifts = [(right * (wide + _GAP), down * (high + _GAP / 2)) for right, down in sides]
    shifts += [(0, -high - _GAP), (0, high + _GAP)]
    points = zip(own[0][::3], own[1][::3], strict=True)
    return [Label(text=name, x=float(x) + dx, y=float(y) + dy) for x, y in points for dx, dy in shifts]


def _outside(label: Label, frame: ChartFrame) -> bool:
    wide, high = label.half
    wide += _GAP  # Or else a text would touch the axis.
    return not (wide <= label.x <= frame.x.pixels - wide and high <= label.y <= frame.y.pixels - high)


def _centre(name: str, frame: ChartFrame) -> Label:
    return Label(text=name, x=frame.x.pixels / 2, y=frame.y.pixels / 2)


# --- frame: Axes: where a value lies on the paper, in pixels from the upper left corner. ---


_STOPS = 200  # Pixels of a curve that labels keep away from.
_ROOM = 0.04  # Free space at both ends of a logarithmic axis, as a part of its length.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """One axis of a chart."""

    low: float
    high: float
    pixels: int
    log: bool = False
    upward: bool = False  # Values grow upward, pixels downward.

    def pixel(self, values: Floats) -> Floats:
        """Return where values lie."""
        share = (self._scaled(values) - self._ends[0]) / (self._ends[1] - self._ends[0])
        return (1 - share if self.upward else share) * self.pixels

    def value(self, pixel: float) -> float:
        """Return what lies at a pixel."""
        share = pixel / self.pixels
        scaled = self._ends[0] + (1 - share if self.upward else share) * (self._ends[1] - self._ends[0])
        return float(10**scaled if self.log else scaled)

    def _scaled(self, values: Floats) -> Floats:
        return np.log10(values) if self.log else values

    @property
    def _ends(self) -> tuple[float, float]:
        return (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartFrame:
    """The two axes of a chart."""

    x: ChartAxis
    y: ChartAxis

    def inside(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the pixels of a curve, many of them and evenly spaced, without what lies outside."""
        across, down = self.x.pixel(x), self.y.pixel(y)
        length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(across), np.diff(down)))])
        stops = np.linspace(0.0, length[-1], _STOPS)
        across, down = np.interp(stops, length, across), np.interp(stops, length, down)
        seen = (across >= 0) & (across <= self.x.pixels) & (down >= 0) & (down <= self.y.pixels)
        return across[seen], down[seen]


def log_axis(curves: Read, which: int, pixels: int, *, upward: bool = False) -> ChartAxis:
    """Return a logarithmic axis that shows every point."""
    low = min(float(pair[which].min()) for pair in curves.values())
    high = max(float(pair[which].max()) for pair in curves.values())
    if low == high:
        low, high = low / 2, high * 2
    room = (high / low) ** _ROOM
    return ChartAxis(low=low / room, high=high * room, pixels=pixels, log=True, upward=upward)
