"""Charts for HTML pages, as inline SVG: strips with one ruler, and the course of a total over days."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias, final

from discreet.errors import InvalidParameter

__all__ = ["Scale", "course", "page_lines", "ruler", "scale_for", "strip"]

# --- strips: Charts for a page that are as wide as their place: one strip of SVG a row, and one ruler below. ---
#
# Places are in per cent and letters in pixels, so a strip is readable on a phone and on paper. Colours are variables of
# the page (`--bar`, `--ink`, `--quiet`, `--accent`, `--grid`, `--paper`), so one chart serves light and dark. No
# script,
# no identifiers, no altair.


_HEIGHT, _MIDDLE, _CAP = 24, 10, 5  # Pixels of a strip, down to its bar, and of half the cap of a line.
_EDGE = 1.5  # Per cent that are left free at both ends, for caps and marks.
_MOST_TICKS = 5
_SLACK = 1e-9  # Of a step: 0.3 is three times 0.1, whatever floats say.


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """From the smallest to the largest value that is drawn; zero is always among them."""

    low: float
    high: float

    def place(self, value: float) -> str:
        """Return where a value lies, in per cent of the width."""
        share = (value - self.low) / (self.high - self.low)
        return f"{_EDGE + (100 - 2 * _EDGE) * share:.2f}%"

    @property
    def ticks(self) -> list[float]:
        """Round numbers along the scale, at most five."""
        step = _round_step((self.high - self.low) / _MOST_TICKS)
        first, last = math.ceil(self.low / step - _SLACK), math.floor(self.high / step + _SLACK)
        return [number * step for number in range(first, last + 1)]

    @staticmethod
    def written(tick: float) -> str:
        """Write a round number for people: 30 m is thirty million."""
        size = abs(tick)
        for limit, letter in ((1e12, " T"), (1e9, " bn"), (1e6, " m")):
            if size >= limit:
                return f"{tick / limit:g}{letter}".replace("-", "−")
        return f"{tick:,.10g}".replace("-", "−")


def scale_for(values: Iterable[float]) -> Scale:
    """Return a scale that holds zero and all values."""
    numbers = [0.0, *values]
    if not all(map(math.isfinite, numbers)):
        raise InvalidParameter("values and ends must be finite")
    low, high = min(numbers), max(numbers)
    return Scale(low, high if high > low else low + 1.0)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, … that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((factor * power for factor in (1.0, 2.0, 5.0) if factor * power >= least), 10.0 * power)


def strip(
    scale: Scale,
    value: float,
    *,
    low: float | None = None,
    high: float | None = None,
    mark: float | None = None,
    accent: bool = False,
    grid: bool = True,
) -> str:
    """Draw a bar from zero to a value, a line from `low` to `high`, and a mark below it at `mark`, where given."""
    parts = [*(_grid(scale) if grid else ()), _bar(scale, value, "--accent" if accent else "--bar")]
    if low is not None and high is not None:
        parts += _ends(scale, low, high)
    if mark is not None:
        parts.append(
            f'<svg x="{scale.place(mark)}" y="{_HEIGHT - 7}" overflow="visible">'
            '<path d="M0 0 4.5 7-4.5 7Z" fill="var(--accent)"/></svg>'
        )
    return _svg(_HEIGHT, parts)


def _svg(height: int, parts: Iterable[str]) -> str:
    """Frame a drawing that repeats what stands beside it in words, so nobody needs it read out."""
    return f'<svg width="100%" height="{height}" aria-hidden="true" focusable="false">{"".join(parts)}</svg>'


def _grid(scale: Scale) -> list[str]:
    """Draw a faint line at every tick, and a clear one at zero."""
    return [
        f'<line x1="{scale.place(tick)}" x2="{scale.place(tick)}" y1="0" y2="100%" '
        f'stroke="var({"--quiet" if tick == 0 else "--grid"})" stroke-width="1"/>'
        for tick in scale.ticks
    ]


def _bar(scale: Scale, value: float, colour: str) -> str:
    """A rectangle has no width below zero, so a bar is a thick line."""
    return (
        f'<line x1="{scale.place(0.0)}" x2="{scale.place(value)}" y1="{_MIDDLE}" y2="{_MIDDLE}" stroke="var({colour})" '
        'stroke-width="12"/>'
    )


def _ends(scale: Scale, low: float, high: float) -> list[str]:
    ends = [(scale.place(low), scale.place(high), _MIDDLE, _MIDDLE)]
    ends += [(scale.place(end), scale.place(end), _MIDDLE - _CAP, _MIDDLE + _CAP) for end in (low, high)]
    return [
        f'<line x1="{a}" x2="{b}" y1="{top}" y2="{bottom}" stroke="var(--ink)" stroke-width="1.5"/>'
        for a, b, top, bottom in ends
    ]


def ruler(scale: Scale) -> str:
    """Draw the numbers below the strips of a scale."""
    texts = [
        f'<text x="{scale.place(tick)}" y="14" font-size="12" fill="var(--quiet)" text-anchor="{_anchor(scale, tick)}">'
        f"{escape(scale.written(tick))}</text>"
        for tick in scale.ticks
    ]
    return _svg(18, texts)


def _anchor(scale: Scale, tick: float) -> str:
    """Keep the numbers at the ends inside."""
    share = (tick - scale.low) / (scale.high - scale.low)
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"


# --- courses: The course of a total over days, for a page: a line, and around it where the exact total lies. ---
#
# Like `strips` it is as wide as its place and has the colours of the page.


_COURSES_HEIGHT, _BELOW, _LETTERS = 220, 20, 'font-size="12" fill="var(--quiet)"'


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
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="{_COURSES_HEIGHT}">'
        f'<polygon points="{" ".join(band)}" fill="var(--bar)" fill-opacity="0.25"/>'
        f'<polyline points="{" ".join(_points(scale, values))}" fill="none" stroke="var(--bar)" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
    return (
        f'<svg class="course" width="100%" height="{_COURSES_HEIGHT + _BELOW}" role="img" '
        f'aria-labelledby="{name}-told">'
        f'<title id="{name}-told">{escape(told)}</title>{_courses_grid(scale)}{curve}{_courses_ends(days)}</svg>'
    )


def _points(scale: Scale, values: Sequence[float]) -> list[str]:
    """Place values on a sheet of a thousand by a thousand; a single day becomes a level line."""
    many = [*values, *values] if len(values) == 1 else list(values)
    step = 1000 / (len(many) - 1)
    return [f"{place * step:.1f},{1000 * _down(scale, value):.1f}" for place, value in enumerate(many)]


def _down(scale: Scale, value: float) -> float:
    return 1 - (value - scale.low) / (scale.high - scale.low)


def _courses_grid(scale: Scale) -> str:
    """Draw a line at every round number, with the number on it."""
    parts = []
    for tick in scale.ticks:
        y = _COURSES_HEIGHT * _down(scale, tick)
        parts.append(f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="2" y="{max(y - 4, 11):.1f}" {_LETTERS}>{escape(scale.written(tick))}</text>')
    return "".join(parts)


def _courses_ends(days: Sequence[str]) -> str:
    y = _COURSES_HEIGHT + 15
    return (
        f'<text x="0" y="{y}" {_LETTERS}>{escape(days[0])}</text>'
        f'<text x="100%" y="{y}" {_LETTERS} text-anchor="end">{escape(days[-1])}</text>'
    )


# --- page_lines ---
# A few curves in a frame, for a page: in its colours, with a dash of its own for each, and a key in words.
#
# It loads nothing and runs nothing; `lines` makes the like with altair for files.


Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]
_WIDE, _HIGH, _LEFT, _TOP, _BELOW_LINES, _RIGHT = 300, 220, 58, 10, 44, 12
_LOOKS = (("--accent", ""), ("--bar", "7 3"), ("--quiet", "2 3"), ("--ink", "9 3 2 3"), ("--warn", "4 4"))


def page_lines(curves: Mapping[str, Curve], *, across: str, up: str, name: str, percent: bool = True) -> str:
    """Draw curves, from 0 on, with a key below. With `percent`, the vertical axis is of shares from 0 to 1."""
    if not 1 <= len(curves) <= len(_LOOKS) or any(len(x) != len(y) or len(x) < 2 for x, y in curves.values()):
        raise InvalidParameter(f"a picture takes one to {len(_LOOKS)} curves of at least two points each")
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    x = scale_for(value for xs, _ in curves.values() for value in xs)
    y = Scale(0.0, 1.0) if percent else scale_for(value for _, ys in curves.values() for value in ys)
    width, height = _LEFT + _WIDE + _RIGHT, _TOP + _HIGH + _BELOW_LINES
    told = escape(f"{up} against {across}: {', '.join(curves)}")
    drawn = "".join(_curve(curve, look, x, y) for curve, look in zip(curves.values(), _LOOKS, strict=False))
    return (
        f'<svg class="picture" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-told"><title id="{name}-told">{told}</title>{_frame(x, y, across, up, percent)}'
        f'{drawn}</svg><p class="key-to note">{_key(curves)}</p>'
    )


def _curve(curve: Curve, look: tuple[str, str], x: Scale, y: Scale) -> str:
    points = " ".join(f"{_right(x, a):.1f},{_line_down(y, b):.1f}" for a, b in zip(*curve, strict=True))
    dashes = f' stroke-dasharray="{look[1]}"' if look[1] else ""
    return f'<polyline points="{points}" fill="none" stroke="var({look[0]})" stroke-width="2.2"{dashes}/>'


def _frame(x: Scale, y: Scale, across: str, up: str, percent: bool) -> str:
    letters = 'font-size="12" fill="var(--quiet)"'
    parts = [
        f'<polyline points="{_LEFT},{_TOP} {_LEFT},{_TOP + _HIGH} {_LEFT + _WIDE},{_TOP + _HIGH}" fill="none" '
        'stroke="var(--quiet)"/>'
    ]
    for tick in x.ticks:
        end = "end" if _right(x, tick) > _LEFT + _WIDE - 8 else "middle"
        parts.append(
            f'<text x="{_right(x, tick):.1f}" y="{_TOP + _HIGH + 17}" {letters} text-anchor="{end}">'
            f"{escape(x.written(tick))}</text>"
        )
    for tick in y.ticks:
        written = f"{tick:.0%}" if percent else y.written(tick)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{_line_down(y, tick):.1f}" y2="{_line_down(y, tick):.1f}" '
            f'stroke="var(--grid)"/><text x="{_LEFT - 6}" y="{_line_down(y, tick) + 4:.1f}" {letters} '
            f'text-anchor="end">{escape(written)}</text>'
        )
    middle = _TOP + _HIGH / 2
    return "".join(parts) + (
        f'<text x="{_LEFT + _WIDE / 2}" y="{_TOP + _HIGH + 36}" {letters} text-anchor="middle">{escape(across)}</text>'
        f'<text transform="translate(12 {middle}) rotate(-90)" {letters} text-anchor="middle">{escape(up)}</text>'
    )


def _key(curves: Mapping[str, Curve]) -> str:
    shown = []
    for name, (colour, dashes) in zip(curves, _LOOKS, strict=False):
        stroke = f' stroke-dasharray="{dashes}"' if dashes else ""
        line = f'<line x1="0" x2="30" y1="7" y2="7" stroke="var({colour})" stroke-width="2.4"{stroke}/>'
        shown.append(f'<i><svg width="30" height="14" aria-hidden="true">{line}</svg>{escape(name)}</i>')
    return "".join(shown)


def _right(scale: Scale, value: float) -> float:
    return _LEFT + _WIDE * (value - scale.low) / (scale.high - scale.low)


def _line_down(scale: Scale, value: float) -> float:
    return _TOP + _HIGH * (1 - (value - scale.low) / (scale.high - scale.low))
