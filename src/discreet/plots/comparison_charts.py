"""Two tables in one picture, for a page: heat maps of cells, and overlaid bars or lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from discreet.errors import InvalidParameter

__all__ = ["caught", "heatmap", "hundred", "overlaid_bars", "overlaid_steps"]

# --- heatmaps ---
# A square of cells for a page: one row and one column a name, coloured by a number from 0 to 1 or from -1 to 1.
#
# Like `strips` it has the colours of the page and loads nothing; who hovers over a cell reads its number.


_SIDE, _SMALLEST, _LARGEST = 240, 17, 32  # Pixels of the square and of a cell.
_LETTER, _SHORTEN = 6.7, 16  # Pixels of a letter, and letters of a name that are shown.
_ABOVE = 18


def heatmap(
    values: Sequence[Sequence[float | None]], names: Sequence[str], *, name: str, told: str, most: float = 1.0
) -> str:
    """Draw a square; cells above 0 in the colour of bars, below 0 in that of accents, full at `most`.

    Columns have the numbers of the rows, whose names stand on the left. `told` says in words what is seen, and `name`
    is a word that occurs once on the page.
    """
    if not names or len(values) != len(names) or any(len(row) != len(names) for row in values) or most <= 0:
        raise InvalidParameter("a heatmap needs a name for each of as many rows as columns")
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    labels = [f"{_short(one)} {place}" for place, one in enumerate(names, 1)]
    left = math.ceil(max(len(label) for label in labels) * _LETTER) + 8
    cell = max(_SMALLEST, min(_LARGEST, _SIDE // len(names)))
    side = cell * len(names)
    return (
        f'<svg class="picture" viewBox="0 0 {left + side + 2} {_ABOVE + side + 2}" width="{left + side + 2}" '
        f'height="{_ABOVE + side + 2}" role="img" aria-labelledby="{name}-told"><title id="{name}-told">'
        f"{escape(told)}</title>{_names(labels, left, cell)}{_cells(values, names, left, cell, most)}</svg>"
    )


def _names(labels: Sequence[str], left: int, cell: int) -> str:
    letters = 'font-size="11" fill="var(--quiet)"'
    rows = [
        f'<text x="{left - 5}" y="{_middle(place, _ABOVE, cell) + 4:g}" {letters} text-anchor="end">'
        f"{escape(label)}</text>"
        for place, label in enumerate(labels)
    ]
    columns = [
        f'<text x="{_middle(place, left, cell):g}" y="{_ABOVE - 5}" {letters} text-anchor="middle">{place + 1}</text>'
        for place in range(len(labels))
    ]
    return "".join([*rows, *columns])


def _cells(values: Sequence[Sequence[float | None]], names: Sequence[str], left: int, cell: int, most: float) -> str:
    drawn = []
    for down, row in enumerate(values):
        for right, value in enumerate(row):
            place = f'x="{left + right * cell}" y="{_ABOVE + down * cell}" width="{cell - 1}" height="{cell - 1}"'
            if value is None:
                drawn.append(f'<rect {place} fill="var(--grid)" fill-opacity="0.35"/>')
            else:
                title = escape(f"{names[down]} × {names[right]}: {value:.2f}".replace("-", "−"))
                drawn.append(f"<rect {place} {_colour(value, most)}><title>{title}</title></rect>")
    return "".join(drawn)


def _colour(value: float, most: float) -> str:
    strength = min(1.0, abs(value) / most)
    return f'fill="var({"--accent" if value < 0 else "--bar"})" fill-opacity="{0.06 + 0.94 * strength:.2f}"'


def _middle(place: int, start: int, cell: int) -> float:
    return start + (place + 0.5) * cell - 0.5


def _short(name: str) -> str:
    return name if len(name) <= _SHORTEN else f"{name[: _SHORTEN - 1]}…"


# --- overlaid: Two tables in one picture, for a page: filled bars for one, a line or thin bars for the other. ---
#
# Like `strips` they are as wide as their place and have the colours of the page.


_WIDE, _HIGH = 10, 100  # Of a bin and of the picture, before both are stretched to their place.


def overlaid_steps(filled: Sequence[float], line: Sequence[float]) -> str:
    """Draw shares of ordered bins: one table as filled bars, the other as a line of steps."""
    if not filled or len(filled) != len(line):
        raise InvalidParameter("there must be as many shares of one table as of the other, and at least one")
    most = max(*filled, *line, 1e-12)
    bars = "".join(
        f'<rect x="{place * _WIDE}" y="{_HIGH * (1 - share / most):.2f}" width="{_WIDE}" '
        f'height="{_HIGH * share / most:.2f}" fill="var(--quiet)" fill-opacity="0.38"/>'
        for place, share in enumerate(filled)
    )
    corners = [
        f"{(place + side) * _WIDE},{_HIGH * (1 - share / most):.2f}"
        for place, share in enumerate(line)
        for side in (0, 1)
    ]
    return (
        f'<svg class="overlaid" viewBox="0 -2 {len(filled) * _WIDE} {_HIGH + 4}" preserveAspectRatio="none" '
        f'aria-hidden="true">{bars}<polyline points="{" ".join(corners)}" fill="none" stroke="var(--accent)" '
        'stroke-width="2" vector-effect="non-scaling-stroke"/></svg>'
    )


def overlaid_bars(filled: float, thin: float, most: float) -> str:
    """Draw two shares from the left: one table as a broad pale bar, the other as a thin one upon it."""
    if most <= 0:
        raise InvalidParameter("the longest bar must be above 0")
    return (
        '<svg width="100%" height="16" aria-hidden="true" focusable="false">'
        f'<rect width="{100 * filled / most:.2f}%" y="1" height="14" fill="var(--quiet)" fill-opacity="0.38"/>'
        f'<rect width="{100 * thin / most:.2f}%" y="5.5" height="5" fill="var(--accent)"/></svg>'
    )


# --- attacker_charts ---
# What the best attacker can gain, in two pictures for a page: a hundred guesses, and all his tests at once.
#
# They follow the colours of the page like `strips`, and carry their own words for those who do not see them.


_ATTACKER_SIDE, _LEFT, _TOP = 230, 60, 12  # Pixels of the square of tests, and of what stands beside it.
_STEP = 22  # Pixels from one guess to the next.


def hundred(after: int, *, name: str) -> str:
    """Draw a hundred guesses at even odds: half are right anyway, some more with what was published.

    `name` becomes part of identifiers and must be a word that occurs once on the page.
    """
    if not 50 <= after <= 100:
        raise InvalidParameter("of a hundred guesses, 50 to 100 are right")
    told = f"Of 100 guesses, 50 are right by tossing a coin and at most {after - 50} more with the published tables."
    dots = "".join(_dot(number, after) for number in range(100))
    size = 10 * _STEP
    return (
        f'<svg class="picture" viewBox="0 0 {size} {size}" width="{size}" height="{size}" role="img" '
        f'aria-labelledby="{_word(name)}-told"><title id="{name}-told">{escape(told)}</title>{dots}</svg>'
    )


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
    """Draw how many of those who are in the data the best attacker finds, for every rate of false alarms."""
    if len(alarms) != len(found) or len(alarms) < 2:
        raise InvalidParameter("there must be as many rates of alarms as of people found, and at least two")
    if not all(0 <= rate <= 1 for rate in (*alarms, *found)):
        raise InvalidParameter("rates lie between 0 and 1")
    told = "The best attacker: the share of people in the data that is found, for every share of false alarms."
    width, height = _LEFT + _ATTACKER_SIDE + 20, _TOP + _ATTACKER_SIDE + 44
    curve = " ".join(f"{_x(a):.1f},{_y(f):.1f}" for a, f in zip(alarms, found, strict=True))
    return (
        f'<svg class="picture" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{_word(name)}-told"><title id="{name}-told">{escape(told)}</title>'
        f'<polygon points="{curve} {_x(1):g},{_y(1):g} {_x(0):g},{_y(0):g}" fill="var(--accent)" fill-opacity="0.18"/>'
        f'<polyline points="{_x(0):g},{_y(0):g} {_x(1):g},{_y(1):g}" fill="none" stroke="var(--quiet)" '
        'stroke-width="1.5" stroke-dasharray="4 4"/>'
        f'<polyline points="{curve}" fill="none" stroke="var(--accent)" stroke-width="2.5"/>{_frame()}</svg>'
    )


def _frame() -> str:
    """Draw the two axes with their words."""
    letters = 'font-size="12" fill="var(--quiet)"'
    marks = []
    for share in (0, 0.5, 1):
        marks.append(f'<text x="{_x(share):g}" y="{_y(0) + 18:g}" {letters} text-anchor="middle">{share:.0%}</text>')
        marks.append(f'<text x="{_LEFT - 6}" y="{_y(share) + 4:g}" {letters} text-anchor="end">{share:.0%}</text>')
    axes = (
        f'<polyline points="{_LEFT},{_TOP} {_LEFT},{_TOP + _ATTACKER_SIDE} '
        f'{_LEFT + _ATTACKER_SIDE},{_TOP + _ATTACKER_SIDE}" fill="none" stroke="var(--quiet)"/>'
    )
    below = f'<text x="{_x(0.5):g}" y="{_y(0) + 36:g}" {letters} text-anchor="middle">false alarms</text>'
    beside = (
        f'<text transform="translate(12 {_y(0.5):g}) rotate(-90)" {letters} text-anchor="middle">people found</text>'
    )
    along = (
        f'<text transform="translate({_x(0.56):g} {_y(0.47):g}) rotate(-45)" {letters} text-anchor="middle">'
        "guessing blindly</text>"
    )
    return axes + "".join(marks) + below + beside + along


def _x(share: float) -> float:
    return _LEFT + _ATTACKER_SIDE * share


def _y(share: float) -> float:
    return _TOP + _ATTACKER_SIDE * (1 - share)


def _word(name: str) -> str:
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    return name
