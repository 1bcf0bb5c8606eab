"""What the best attacker can gain, in two pictures for a page: a hundred guesses, and all his tests at once.

They follow the colours of the page like `strips`, and carry their own words for those who do not see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.errors import InvalidParameter

__all__ = ["caught", "hundred"]

_SIDE, _LEFT, _TOP = 230, 60, 12  # Pixels of the square of tests, and of what stands beside it.
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
    width, height = _LEFT + _SIDE + 20, _TOP + _SIDE + 44
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
        f'<polyline points="{_LEFT},{_TOP} {_LEFT},{_TOP + _SIDE} {_LEFT + _SIDE},{_TOP + _SIDE}" fill="none" '
        'stroke="var(--quiet)"/>'
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
    return _LEFT + _SIDE * share


def _y(share: float) -> float:
    return _TOP + _SIDE * (1 - share)


def _word(name: str) -> str:
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    return name
