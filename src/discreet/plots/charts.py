"""Pictures of a guarantee: what may leak, who is caught, what accuracy is left, what bad rows can do, and any other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InvalidParameter
from discreet.plots import theme
from discreet.plots.curves import Curves, Read, read_curves
from discreet.plots.frame import ChartAxis, ChartFrame, log_axis
from discreet.plots.layers import chart

if TYPE_CHECKING:
    import altair as alt

__all__ = ["accuracy", "lines", "profile", "shifts", "tradeoff"]

_EPSILON = "privacy loss ε (nats)"
_FLOOR = 1e-12  # The smallest delta that is drawn; smaller ones leave the chart through its lower edge.


def profile(curves: Curves, *, title: str | None = None) -> alt.LayerChart:
    """Draw the privacy profile, delta (logarithmic) against epsilon. Names map to (epsilons, deltas)."""
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
        x=ChartAxis(low=0.0, high=largest, pixels=theme.WIDTH),
        y=ChartAxis(low=floor, high=1.0, pixels=theme.HEIGHT, log=True, upward=True),
    )
    return chart(drawn, frame, (_EPSILON, "δ (probability)"), title=title)


def tradeoff(curves: Curves, *, title: str | None = None) -> alt.LayerChart:
    """Draw the error rates of the best attacker, with the diagonal of one who guesses. Names map to (fpr, fnr)."""
    read = read_curves(curves, horizontal="fpr", vertical="fnr")
    if any((x > 1).any() or (y > 1).any() for x, y in read.values()):
        raise InvalidParameter("error rates must lie between 0 and 1")
    side = ChartAxis(low=0.0, high=1.0, pixels=theme.SQUARE)
    frame = ChartFrame(x=side, y=ChartAxis(low=0.0, high=1.0, pixels=theme.SQUARE, upward=True))
    titles = "false positive rate (absent, called present)", "false negative rate (present, called absent)"
    return chart(read, frame, titles, title=title, diagonal=True)


def accuracy(
    curves: Curves, *, unit: str = "grid steps", confidence: str = "95 %", title: str | None = None
) -> alt.LayerChart:
    """Draw the half width of an interval against epsilon, both logarithmic. Names map to (epsilons, half widths).

    A half width of 0 has no logarithm and is left out.
    """
    read = read_curves(curves, horizontal="epsilon", vertical="half width")
    drawn = {name: (x[(x > 0) & (y > 0)], y[(x > 0) & (y > 0)]) for name, (x, y) in read.items()}
    if any(x.size < 2 for x, _ in drawn.values()):
        raise InvalidParameter("a curve must have at least two points with epsilon and half width above 0")
    frame = ChartFrame(x=log_axis(drawn, 0, theme.WIDTH), y=log_axis(drawn, 1, theme.HEIGHT, upward=True))
    return chart(drawn, frame, (_EPSILON, f"± ({confidence}), in {unit}"), title=title)


def shifts(
    curves: Curves, *, what: str = "bad rows", unit: str = "units of the data", title: str | None = None
) -> alt.LayerChart:
    """Draw how far estimates can be off against the number of bad rows. Names map to (rows, shifts)."""
    read = read_curves(curves, horizontal="rows", vertical="shift")
    if not any((rows > 0).any() for rows, _ in read.values()):
        raise InvalidParameter("rows must be above 0 somewhere")
    return _drawn(read, (f"{what} (number)", f"off by (in {unit})"), logs=(False, False), title=title)


def lines(
    curves: Curves, *, across: str, up: str, log_x: bool = False, log_y: bool = False, title: str | None = None
) -> alt.LayerChart:
    """Draw any curves, with axes of these names. Names map to (x, y). An axis that is not logarithmic begins at 0."""
    return _drawn(read_curves(curves, horizontal="x", vertical="y"), (across, up), logs=(log_x, log_y), title=title)


def _drawn(read: Read, titles: tuple[str, str], *, logs: tuple[bool, bool], title: str | None) -> alt.LayerChart:
    x = _axis(read, 0, theme.WIDTH, log=logs[0])
    y = _axis(read, 1, theme.HEIGHT, log=logs[1], upward=True)
    return chart(read, ChartFrame(x=x, y=y), titles, title=title)


def _axis(read: Read, which: int, pixels: int, *, log: bool, upward: bool = False) -> ChartAxis:
    if not log:
        # A little room above the highest line; none to the right, where all lines end.
        high = (1.05 if upward else 1.0) * max(float(pair[which].max()) for pair in read.values())
        return ChartAxis(low=0.0, high=high or 1.0, pixels=pixels, upward=upward)
    if not all((pair[which] > 0).all() for pair in read.values()):
        raise InvalidParameter("a logarithmic axis has no 0: leave such points out, or draw them on a plain axis")
    return log_axis(read, which, pixels, upward=upward)
