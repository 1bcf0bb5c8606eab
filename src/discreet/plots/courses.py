"""The course of a total over days, for a page: a line, and around it where the exact total lies.

Like `strips` it is as wide as its place and has the colours of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.errors import InvalidParameter
from discreet.plots.strips import Scale, scale_for

__all__ = ["course"]

_HEIGHT, _BELOW, _LETTERS = 220, 20, 'font-size="12" fill="var(--quiet)"'


def course(
    days: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float], *, name: str
) -> str:
    """Draw values day by day, with a band from `lows` to `highs`. `name` is a word that occurs once on the page."""
    if not days or not len(days) == len(values) == len(lows) == len(highs):
        raise InvalidParameter("there must be a value and two ends for each day, and at least one day")
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    scale = scale_for([*values, *lows, *highs])
    told = f"{len(days)} days from {days[0]} to {days[-1]}: a line of totals, and a band where the exact total lies."
    band = [*_points(scale, highs), *reversed(_points(scale, lows))]
    # A curve is stretched to the width of its place; its strokes are not.
    curve = (
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="{_HEIGHT}">'
        f'<polygon points="{" ".join(band)}" fill="var(--bar)" fill-opacity="0.25"/>'
        f'<polyline points="{" ".join(_points(scale, values))}" fill="none" stroke="var(--bar)" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
    return (
        f'<svg class="course" width="100%" height="{_HEIGHT + _BELOW}" role="img" aria-labelledby="{name}-told">'
        f'<title id="{name}-told">{escape(told)}</title>{_grid(scale)}{curve}{_ends(days)}</svg>'
    )


def _points(scale: Scale, values: Sequence[float]) -> list[str]:
    """Place values on a sheet of a thousand by a thousand; a single day becomes a level line."""
    many = [*values, *values] if len(values) == 1 else list(values)
    step = 1000 / (len(many) - 1)
    return [f"{place * step:.1f},{1000 * _down(scale, value):.1f}" for place, value in enumerate(many)]


def _down(scale: Scale, value: float) -> float:
    return 1 - (value - scale.low) / (scale.high - scale.low)


def _grid(scale: Scale) -> str:
    """Draw a line at every round number, with the number on it."""
    parts = []
    for tick in scale.ticks:
        y = _HEIGHT * _down(scale, tick)
        parts.append(f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="2" y="{max(y - 4, 11):.1f}" {_LETTERS}>{escape(scale.written(tick))}</text>')
    return "".join(parts)


def _ends(days: Sequence[str]) -> str:
    y = _HEIGHT + 15
    return (
        f'<text x="0" y="{y}" {_LETTERS}>{escape(days[0])}</text>'
        f'<text x="100%" y="{y}" {_LETTERS} text-anchor="end">{escape(days[-1])}</text>'
    )
