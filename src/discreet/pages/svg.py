"""Drawings for HTML pages as inline SVG: scales, strips, axes, lines, bands, heat maps and overlaid tables.

Colours are variables of the page (`--bar`, `--ink`, `--quiet`, `--accent`, `--grid`), so one drawing serves light, dark
and paper. No script, no identifier but the name that a caller gives, no altair. Every text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.formatting import printable, shortened, tick_text

__all__ = [
    "Scale",
    "box",
    "caught",
    "climb",
    "course",
    "error_bars",
    "heatmap",
    "hundred",
    "key",
    "meter",
    "overlaid_bars",
    "overlaid_key",
    "overlaid_steps",
    "page_lines",
    "ruler",
    "scale_for",
    "span_of",
    "stretched",
    "strip",
    "words",
]

_LETTERS = 'font-size="12" fill="var(--quiet)"'

# --- scales: From values to places. ---


_EDGE = 1.5  # Per cent of a strip that are left free at both ends, for caps and marks.
_MOST_TICKS = 5
_SLACK = 1e-9  # Of a step: 0.3 is three times 0.1, whatever floats say.


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """From the smallest to the largest value that is drawn; zero is always among them."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)

    def place(self, value: float) -> str:
        """Return where a value lies, in per cent of the width of a strip."""
        return f"{_EDGE + (100 - 2 * _EDGE) * self.share(value):.2f}%"

    @property
    def ticks(self) -> list[float]:
        """Round numbers along the scale, at most five."""
        step = _round_step((self.high - self.low) / _MOST_TICKS)
        first, last = math.ceil(self.low / step - _SLACK), math.floor(self.high / step + _SLACK)
        return [number * step for number in range(first, last + 1)]


def scale_for(values: Iterable[float]) -> Scale:
    """Return a scale that holds zero and all values.

    Args:
        values: All numbers that are to be drawn: values, ends and marks.

    Returns:
        The scale, for `strip` and `ruler`.

    Raises:
        InvalidParameter: If a number is not finite.

    Examples:
        >>> scale = dp.plots.scale_for([412, 385, 439])
        >>> scale.low, scale.high
        (0.0, 439)
    """
    numbers = [0.0, *values]
    if not all(map(math.isfinite, numbers)):
        raise InvalidParameter("values and ends must be finite")
    low, high = min(numbers), max(numbers)
    return Scale(low, high if high > low else low + 1.0)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, … that is not below a number."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((factor * power for factor in (1.0, 2.0, 5.0) if factor * power >= least), 10.0 * power)


# --- elements: What every drawing is made of. ---


def words(text: object) -> str:
    """Write a text so that it can be nothing but text; letters that steer a screen are shown as such."""
    return escape(printable(str(text)), quote=True)


def _text(x: str, y: str, text: str, anchor: str = "") -> str:
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y}" {_LETTERS}{end}>{words(text)}</text>'


def _svg(shape: str, parts: Iterable[str], *, name: str | None = None, told: str = "") -> str:
    """Frame a drawing: with its own words under a name, or hidden from those who hear a page read out."""
    inside = "".join(parts)
    if name is None:
        return f"<svg {shape}>{inside}</svg>"
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    return (
        f'<svg {shape} role="img" aria-labelledby="{name}-told"><title id="{name}-told">{words(told)}</title>'
        f"{inside}</svg>"
    )


def _picture(width: int, height: int, parts: Iterable[str], *, name: str, told: str) -> str:
    """Frame a drawing that has a size of its own, and shrinks where there is less room."""
    shape = f'class="picture" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return _svg(shape, parts, name=name, told=told)


def _across(height: int, parts: Iterable[str]) -> str:
    """Frame a drawing as wide as its place that repeats what stands beside it in words: nobody needs it read out."""
    return _svg(f'width="100%" height="{height}" aria-hidden="true" focusable="false"', parts)


def stretched(box: str, parts: Iterable[str], *, label: str = "", kind: str = "") -> str:
    """Frame a drawing whose box is stretched to its place; with a `label` for those who do not see it."""
    told = f'role="img" aria-label="{words(label)}"' if label else 'aria-hidden="true"'
    shape = f'class="{kind}" ' if kind else ""
    return _svg(f'{shape}viewBox="{box}" preserveAspectRatio="none" {told}', parts)


def key(entries: Iterable[tuple[str, str]]) -> str:
    """Explain signs: each a small drawing, and what it means."""
    shown = "".join(f"<i>{drawn}{words(text)}</i>" for drawn, text in entries)
    return f'<p class="key-to note">{shown}</p>'


# --- strips: A bar chart as wide as its place: one strip of SVG a row, and one ruler below. ---
#
# Places are in per cent and letters in pixels, so a strip is readable on a phone and on paper.


_HEIGHT, _MIDDLE, _CAP = 24, 10, 5  # Pixels of a strip, down to its bar, and of half the cap of a line.


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
    """Draw a bar from zero to a value, a line from `low` to `high`, and a mark below it at `mark`, where given.

    Args:
        scale: The scale, as `scale_for` makes it.
        value: Where the bar ends.
        low: The lower end of the interval.
        high: The upper end of the interval.
        mark: Where a mark stands.
        accent: Whether the bar has the colour that catches the eye.
        grid: Whether the lines of the scale are drawn.

    Returns:
        The SVG text.

    Examples:
        >>> scale = dp.plots.scale_for([412, 385, 439])
        >>> dp.plots.strip(scale, 412, low=385, high=439).startswith("<svg")
        True
    """
    parts = [*(_grid(scale) if grid else ()), _bar(scale, value, "--accent" if accent else "--bar")]
    if low is not None and high is not None:
        parts += _ends(scale, low, high)
    if mark is not None:
        parts.append(
            f'<svg x="{scale.place(mark)}" y="{_HEIGHT - 7}" overflow="visible">'
            '<path d="M0 0 4.5 7-4.5 7Z" fill="var(--accent)"/></svg>'
        )
    return _across(_HEIGHT, parts)


def span_of(values: Iterable[float]) -> Scale:
    """Return a scale that holds all values and need not hold zero: for boxes, which do not begin there."""
    numbers = list(values)
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InvalidParameter("there must be values, and they must be finite")
    low, high = min(numbers), max(numbers)
    return Scale(low, high if high > low else low + max(1.0, abs(low)))


def box(scale: Scale, five: Sequence[float], *, grid: bool = True) -> str:
    """Draw a box plot: a line from 5 to 95 %, a box from 25 to 75 %, and the median across it."""
    first, left, middle, right, last = five
    thick = f'x1="{scale.place(left)}" x2="{scale.place(right)}" y1="{_MIDDLE}" y2="{_MIDDLE}"'
    across = f'x1="{scale.place(middle)}" x2="{scale.place(middle)}" y1="{_MIDDLE - 8}" y2="{_MIDDLE + 8}"'
    parts = [
        *(_grid(scale) if grid else ()),
        *_ends(scale, first, last),
        f'<line {thick} stroke="var(--bar)" stroke-width="12"/>',
        f'<line {across} stroke="var(--ink)" stroke-width="2.5"/>',
    ]
    return _across(_HEIGHT, parts)


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
    """Draw the numbers below the strips of a scale.

    Args:
        scale: The scale, as `scale_for` makes it.

    Returns:
        The SVG text.

    Examples:
        >>> dp.plots.ruler(dp.plots.scale_for([412, 385, 439])).startswith("<svg")
        True
    """
    return _across(18, [_text(scale.place(t), "14", tick_text(t), _anchor(scale.share(t))) for t in scale.ticks])


def _anchor(share: float) -> str:
    """Keep the numbers at the ends inside."""
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"


# --- notebooks: Drawings that stand by themselves, where no page has colours for them. ---


_COLOURS = "--bar:#2b7bba;--accent:#b4470f;--ink:currentColor;--quiet:currentColor;--grid:#8884"
_ALONE = f'style="max-width:100%;height:auto;{_COLOURS}"'
_LABELS, _WHOLE = 170, 500  # Pixels of the names of rows, and of all of it.


def error_bars(rows: Sequence[tuple[str, float, float, float]], *, across: str) -> str:
    """Draw a bar with its interval for each row, given as name, value, low and high; for notebooks."""
    scale = scale_for(end for _, *ends in rows for end in ends)
    drawn = [*(strip(scale, value, low=low, high=high) for _, value, low, high in rows), ruler(scale)]
    named = [*(name for name, *_ in rows), across]
    high = _HEIGHT * len(drawn)
    parts = [
        f'{_text("0", str(top + 14), shortened(name, 24))}<svg x="{_LABELS}" y="{top}" width="{_WHOLE - _LABELS}" '
        f'height="{_HEIGHT}">{one}</svg>'
        for top, name, one in zip(range(0, high, _HEIGHT), named, drawn, strict=True)
    ]
    told = f"{across}: {len(rows)} bars with their intervals"
    size = f'viewBox="0 0 {_WHOLE} {high}" width="{_WHOLE}" height="{high}"'
    return _svg(f'{size} role="img" aria-label="{words(told)}" {_ALONE}', parts)


def meter(share: float, *, told: str) -> str:
    """Draw which part of something is left; for notebooks."""
    full = f'<rect width="{100 * min(max(share, 0.0), 1.0):.1f}%" height="10" fill="var(--bar)"/>'
    empty = '<rect width="100%" height="10" fill="var(--grid)"/>'
    return _svg(
        f'viewBox="0 0 300 10" width="300" height="10" role="img" aria-label="{words(told)}" {_ALONE}', (empty, full)
    )


# --- course: A total over days: a line, and around it where the exact total lies; as wide as its place. ---


_TALL, _DATES = 220, 20  # Pixels of the curve, and of the dates below it.


def course(
    days: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float], *, name: str
) -> str:
    """Draw values day by day, with a band from `lows` to `highs`. `name` is a word that occurs once on the page.

    Args:
        days: The names of the days, in order.
        values: One value a day.
        lows: The lower end of the band, one a day.
        highs: The upper end of the band, one a day.
        name: Becomes part of identifiers: a word that occurs once on the page.

    Returns:
        The SVG text.

    Raises:
        InvalidParameter: If there is no day, there is not one value for each, or one is not finite.

    Examples:
        >>> dp.plots.course(["1 May", "2 May"], [412, 388], [398, 374], [426, 402], name="visits").startswith("<svg")
        True
    """
    if not days or not len(days) == len(values) == len(lows) == len(highs):
        raise InvalidParameter("there must be a value and two ends for each day, and at least one day")
    scale = scale_for([*values, *lows, *highs])
    told = f"{len(days)} days from {days[0]} to {days[-1]}: a line of totals, and a band where the exact total lies."
    band = [*_points(scale, highs), *reversed(_points(scale, lows))]
    # A curve is stretched to the width of its place; its strokes are not.
    curve = (
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="{_TALL}">'
        f'<polygon points="{" ".join(band)}" fill="var(--bar)" fill-opacity="0.25"/>'
        f'<polyline points="{" ".join(_points(scale, values))}" fill="none" stroke="var(--bar)" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
    dates = [_text("0", f"{_TALL + 15}", days[0]), _text("100%", f"{_TALL + 15}", days[-1], "end")]
    shape = f'class="course" width="100%" height="{_TALL + _DATES}"'
    return _svg(shape, [*_levels(scale), curve, *dates], name=name, told=told)


def climb(days: Sequence[str], shares: Sequence[float], *, name: str, told: str) -> str:
    """Draw which share of something is used up, day by day, as a filled line below 100 %.

    `told` says in words what is seen, and `name` is a word that occurs once on the page.
    """
    if not days or len(days) != len(shares) or not all(0 <= share <= 1 for share in shares):
        raise InvalidParameter("there must be a share from 0 to 1 for each day, and at least one day")
    most = next(limit for limit in (0.01, 0.05, 0.1, 0.25, 0.5, 1.0) if limit >= max(shares))
    scale = Scale(0.0, most)
    line = " ".join(_points(scale, shares))
    curve = (
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="{_TALL}">'
        f'<polygon points="0,1000 {line} 1000,1000" fill="var(--bar)" fill-opacity="0.25"/>'
        f'<polyline points="{line}" fill="none" stroke="var(--bar)" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
    dates = [_text("0", f"{_TALL + 15}", days[0]), _text("100%", f"{_TALL + 15}", days[-1], "end")]
    levels = _levels(scale, lambda tick: f"{100 * tick:g} %")
    shape = f'class="course" width="100%" height="{_TALL + _DATES}"'
    return _svg(shape, [curve, *levels, *dates], name=name, told=told)


def _points(scale: Scale, values: Sequence[float]) -> list[str]:
    """Place values on a sheet of a thousand by a thousand; a single day becomes a level line."""
    many = [*values, *values] if len(values) == 1 else list(values)
    step = 1000 / (len(many) - 1)
    return [f"{place * step:.1f},{1000 * (1 - scale.share(value)):.1f}" for place, value in enumerate(many)]


def _levels(scale: Scale, written: Callable[[float], str] = tick_text) -> Iterable[str]:
    """Draw a line at every round number, with the number on it."""
    for tick in scale.ticks:
        y = _TALL * (1 - scale.share(tick))
        yield f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>'
        yield _text("2", f"{max(y - 4, 11):.1f}", written(tick))


# --- lines: Curves between two axes. ---


Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]
_LOOKS = (("--accent", ""), ("--bar", "7 3"), ("--quiet", "2 3"), ("--ink", "9 3 2 3"), ("--warn", "4 4"))
_UNIT = Scale(0.0, 1.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Two axes in pixels, with room for their numbers and words."""

    x: Scale
    y: Scale
    left: int
    top: int
    wide: int
    high: int

    def right(self, value: float) -> float:
        return self.left + self.wide * self.x.share(value)

    def down(self, value: float) -> float:
        return self.top + self.high * (1 - self.y.share(value))

    def points(self, curve: Curve) -> str:
        return " ".join(f"{self.right(a):.1f},{self.down(b):.1f}" for a, b in zip(*curve, strict=True))

    def lines(self) -> str:
        low, end = self.top + self.high, self.left + self.wide
        points = f"{self.left},{self.top} {self.left},{low} {end},{low}"
        return f'<polyline points="{points}" fill="none" stroke="var(--quiet)"/>'

    def x_number(self, value: float, text: str) -> str:
        return _text(f"{self.right(value):g}", f"{self.top + self.high + 18:g}", text, "middle")

    def y_number(self, value: float, text: str) -> str:
        return _text(f"{self.left - 6}", f"{self.down(value) + 4:g}", text, "end")

    def titles(self, across: str, up: str) -> str:
        below = _text(f"{self.left + self.wide / 2:g}", f"{self.top + self.high + 36:g}", across, "middle")
        return below + _turned(12, self.top + self.high / 2, -90, up)

    def picture(self, parts: Iterable[str], *, name: str, told: str) -> str:
        return _picture(self.left + self.wide + 20, self.top + self.high + 44, parts, name=name, told=told)


def _turned(x: float, y: float, degrees: int, text: str) -> str:
    place = f"translate({x:g} {y:g}) rotate({degrees})"
    return f'<text transform="{place}" {_LETTERS} text-anchor="middle">{words(text)}</text>'


def page_lines(curves: Mapping[str, Curve], *, across: str, up: str, name: str) -> str:
    """Draw curves of shares from 0 to 1, each with a dash of its own, and explain them below."""
    if not 1 <= len(curves) <= len(_LOOKS) or any(len(x) != len(y) or len(x) < 2 for x, y in curves.values()):
        raise InvalidParameter(f"a picture takes one to {len(_LOOKS)} curves of at least two points each")
    x = scale_for(value for xs, _ in curves.values() for value in xs)
    axes = _Axes(x=x, y=_UNIT, left=58, top=10, wide=300, high=220)
    looks = dict(zip(curves, _LOOKS, strict=False))
    levels = (
        f'<line x1="{axes.left}" x2="{axes.left + axes.wide}" y1="{axes.down(tick):g}" y2="{axes.down(tick):g}" '
        f'stroke="var(--grid)"/>{axes.y_number(tick, f"{tick:.0%}")}'
        for tick in _UNIT.ticks
    )
    numbers = (axes.x_number(tick, tick_text(tick)) for tick in x.ticks)
    drawn = (_curve(axes.points(curve), *looks[one]) for one, curve in curves.items())
    parts = [axes.lines(), *numbers, *levels, axes.titles(across, up), *drawn]
    explained = ((_sample(_curve("0,7 30,7", *look)), one) for one, look in looks.items())
    told = f"{up} against {across}: {', '.join(curves)}"
    return axes.picture(parts, name=name, told=told) + key(explained)


def _curve(points: str, colour: str, dashes: str) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{points}" fill="none" stroke="var({colour})" stroke-width="2.2"{dashed}/>'


def _sample(drawn: str) -> str:
    return f'<svg width="30" height="14" aria-hidden="true">{drawn}</svg>'


# --- attackers: What the best attacker can gain: a hundred guesses, and all his tests at once. ---


_STEP = 22  # Pixels from one guess to the next.


def hundred(after: int, *, name: str) -> str:
    """Draw a hundred guesses at even odds: half are right anyway, some more with what was published.

    `name` becomes part of identifiers and must be a word that occurs once on the page.

    Args:
        after: How many of a hundred guesses are right with what was published, 50 to 100.
        name: Becomes part of identifiers: a word that occurs once on the page.

    Returns:
        The SVG text.

    Raises:
        InvalidParameter: If `after` is not from 50 to 100.

    Examples:
        >>> dp.plots.hundred(63, name="guesses").startswith("<svg")
        True
    """
    if not 50 <= after <= 100:
        raise InvalidParameter("of a hundred guesses, 50 to 100 are right")
    told = f"Of 100 guesses, 50 are right by tossing a coin and at most {after - 50} more with the published tables."
    return _picture(10 * _STEP, 10 * _STEP, (_dot(number, after) for number in range(100)), name=name, told=told)


def _dot(number: int, after: int) -> str:
    x, y = (number % 10 + 0.5) * _STEP, (number // 10 + 0.5) * _STEP
    if number < 50:
        look = 'fill="var(--quiet)"'
    elif number < after:
        look = 'fill="var(--accent)"'
    else:
        look = 'fill="none" stroke="var(--quiet)" stroke-width="1.5"'
    return f'<circle cx="{x:g}" cy="{y:g}" r="7.5" {look}/>'


def caught(alarms: Sequence[float], found: Sequence[float], *, name: str) -> str:
    """Draw how many of those who are in the data the best attacker finds, for every rate of false alarms.

    Args:
        alarms: The rates of false alarms, from 0 to 1.
        found: The rates of people found, one for each of them.
        name: Becomes part of identifiers: a word that occurs once on the page.

    Returns:
        The SVG text.

    Raises:
        InvalidParameter: If the two differ in length, are fewer than two, or are no rates.

    Examples:
        >>> dp.plots.caught([0, 0.5, 1], [0, 0.8, 1], name="attack").startswith("<svg")
        True
    """
    if len(alarms) != len(found) or len(alarms) < 2:
        raise InvalidParameter("there must be as many rates of alarms as of people found, and at least two")
    if not all(0 <= rate <= 1 for rate in (*alarms, *found)):
        raise InvalidParameter("rates lie between 0 and 1")
    axes = _Axes(x=_UNIT, y=_UNIT, left=60, top=12, wide=230, high=230)
    curve, (zero, one) = axes.points((alarms, found)), (f"{axes.right(end):g},{axes.down(end):g}" for end in (0, 1))
    parts = [
        f'<polygon points="{curve} {one} {zero}" fill="var(--accent)" fill-opacity="0.18"/>',
        f'<polyline points="{zero} {one}" fill="none" stroke="var(--quiet)" stroke-width="1.5" '
        'stroke-dasharray="4 4"/>',
        f'<polyline points="{curve}" fill="none" stroke="var(--accent)" stroke-width="2.5"/>',
        axes.lines(),
        *(number(share, f"{share:.0%}") for share in (0, 0.5, 1) for number in (axes.x_number, axes.y_number)),
        axes.titles("false alarms", "people found"),
        _turned(axes.right(0.56), axes.down(0.47), -45, "guessing blindly"),
    ]
    told = "The best attacker: the share of people in the data that is found, for every share of false alarms."
    return axes.picture(parts, name=name, told=told)


# --- heat maps: A square of cells, one row and one column a name, coloured by a number from -1 to 1. ---


_SIDE, _SMALLEST, _LARGEST = 240, 17, 32  # Pixels of the square and of a cell.
_LETTER, _LONGEST = 6.7, 16  # Pixels of a letter, and letters of a name that are shown.
_ABOVE = 18
_SMALL = _LETTERS.replace("12", "11")


def heatmap(
    values: Sequence[Sequence[float | None]], names: Sequence[str], *, name: str, told: str, most: float = 1.0
) -> str:
    """Draw a square; cells above 0 in the colour of bars, below 0 in that of accents, full at `most`.

    Columns have the numbers of the rows, whose names stand on the left. `told` says in words what is seen, and `name`
    is a word that occurs once on the page. Who hovers over a cell reads its number.
    """
    if not names or len(values) != len(names) or any(len(row) != len(names) for row in values) or most <= 0:
        raise InvalidParameter("a heatmap needs a name for each of as many rows as columns")
    labels = [f"{shortened(one, _LONGEST)} {place}" for place, one in enumerate(names, 1)]
    left = math.ceil(max(len(label) for label in labels) * _LETTER) + 8
    cell = max(_SMALLEST, min(_LARGEST, _SIDE // len(names)))
    side = cell * len(names)
    parts = [*_names(labels, left, cell), *_cells(values, names, left, cell, most)]
    return _picture(left + side + 2, _ABOVE + side + 2, parts, name=name, told=told)


def _names(labels: Sequence[str], left: int, cell: int) -> Iterable[str]:
    for place, label in enumerate(labels):
        y = _ABOVE + (place + 0.5) * cell - 0.5 + 4
        yield f'<text x="{left - 5}" y="{y:g}" {_SMALL} text-anchor="end">{words(label)}</text>'
    for place in range(len(labels)):
        x = left + (place + 0.5) * cell - 0.5
        yield f'<text x="{x:g}" y="{_ABOVE - 5}" {_SMALL} text-anchor="middle">{place + 1}</text>'


def _cells(
    values: Sequence[Sequence[float | None]], names: Sequence[str], left: int, cell: int, most: float
) -> Iterable[str]:
    for down, row in enumerate(values):
        for right, value in enumerate(row):
            place = f'x="{left + right * cell}" y="{_ABOVE + down * cell}" width="{cell - 1}" height="{cell - 1}"'
            if value is None:
                yield f'<rect {place} fill="var(--grid)" fill-opacity="0.35"/>'
            else:
                title = words(f"{names[down]} × {names[right]}: {value:.2f}".replace("-", "−"))
                yield f"<rect {place} {_colour(value, most)}><title>{title}</title></rect>"


def _colour(value: float, most: float) -> str:
    strength = min(1.0, abs(value) / most)
    return f'fill="var({"--accent" if value < 0 else "--bar"})" fill-opacity="{0.06 + 0.94 * strength:.2f}"'


# --- overlaid: Two tables in one drawing: filled bars for one, a line or thin bars for the other. ---


_WIDE, _HIGH = 10, 100  # Of a bin and of the picture, before both are stretched to their place.
_PALE = 'fill="var(--quiet)" fill-opacity="0.38"'


def overlaid_steps(filled: Sequence[float], line: Sequence[float]) -> str:
    """Draw shares of ordered bins: one table as filled bars, the other as a line of steps."""
    if not filled or len(filled) != len(line):
        raise InvalidParameter("there must be as many shares of one table as of the other, and at least one")
    most = max(*filled, *line, 1e-12)
    bars = "".join(
        f'<rect x="{place * _WIDE}" y="{_HIGH * (1 - share / most):.2f}" width="{_WIDE}" '
        f'height="{_HIGH * share / most:.2f}" {_PALE}/>'
        for place, share in enumerate(filled)
    )
    corners = [
        f"{(place + side) * _WIDE},{_HIGH * (1 - share / most):.2f}"
        for place, share in enumerate(line)
        for side in (0, 1)
    ]
    steps = (
        f'<polyline points="{" ".join(corners)}" fill="none" stroke="var(--accent)" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/>'
    )
    return stretched(f"0 -2 {len(filled) * _WIDE} {_HIGH + 4}", [bars, steps], kind="overlaid")


def overlaid_bars(filled: float, thin: float, most: float) -> str:
    """Draw two shares from the left: one table as a broad pale bar, the other as a thin one upon it."""
    if most <= 0:
        raise InvalidParameter("the longest bar must be above 0")
    parts = (
        f'<rect width="{100 * filled / most:.2f}%" y="1" height="14" {_PALE}/>',
        f'<rect width="{100 * thin / most:.2f}%" y="5.5" height="5" fill="var(--accent)"/>',
    )
    return _across(16, parts)


def overlaid_key(filled: str, thin: str) -> str:
    """Explain which table is which."""
    bars = (f'<rect width="30" height="14" {_PALE}/>', '<rect width="30" y="4.5" height="5" fill="var(--accent)"/>')
    return key((_sample(bar), name) for bar, name in zip(bars, (filled, thin), strict=True))
