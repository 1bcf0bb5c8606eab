"""A few curves in a frame, for a page: in its colours, with a dash of its own for each, and a key in words.

It loads nothing and runs nothing; `lines` makes the like with altair for files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TypeAlias

from discreet.errors import InvalidParameter
from discreet.plots.page_strips import Scale, scale_for

__all__ = ["page_lines"]

Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]
_WIDE, _HIGH, _LEFT, _TOP, _BELOW, _RIGHT = 300, 220, 58, 10, 44, 12
_LOOKS = (("--accent", ""), ("--bar", "7 3"), ("--quiet", "2 3"), ("--ink", "9 3 2 3"), ("--warn", "4 4"))


def page_lines(curves: Mapping[str, Curve], *, across: str, up: str, name: str, percent: bool = True) -> str:
    """Draw curves, from 0 on, with a key below. With `percent`, the vertical axis is of shares from 0 to 1."""
    if not 1 <= len(curves) <= len(_LOOKS) or any(len(x) != len(y) or len(x) < 2 for x, y in curves.values()):
        raise InvalidParameter(f"a picture takes one to {len(_LOOKS)} curves of at least two points each")
    if not (name.isascii() and name.replace("-", "").isalnum()):
        raise InvalidParameter("name must be a word of letters, digits and -")
    x = scale_for(value for xs, _ in curves.values() for value in xs)
    y = Scale(0.0, 1.0) if percent else scale_for(value for _, ys in curves.values() for value in ys)
    width, height = _LEFT + _WIDE + _RIGHT, _TOP + _HIGH + _BELOW
    told = escape(f"{up} against {across}: {', '.join(curves)}")
    drawn = "".join(_curve(curve, look, x, y) for curve, look in zip(curves.values(), _LOOKS, strict=False))
    return (
        f'<svg class="picture" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-told"><title id="{name}-told">{told}</title>{_frame(x, y, across, up, percent)}'
        f'{drawn}</svg><p class="key-to note">{_key(curves)}</p>'
    )


def _curve(curve: Curve, look: tuple[str, str], x: Scale, y: Scale) -> str:
    points = " ".join(f"{_right(x, a):.1f},{_down(y, b):.1f}" for a, b in zip(*curve, strict=True))
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
            f'<line x1="{_LEFT}" x2="{_LEFT + _WIDE}" y1="{_down(y, tick):.1f}" y2="{_down(y, tick):.1f}" '
            f'stroke="var(--grid)"/><text x="{_LEFT - 6}" y="{_down(y, tick) + 4:.1f}" {letters} text-anchor="end">'
            f"{escape(written)}</text>"
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


def _down(scale: Scale, value: float) -> float:
    return _TOP + _HIGH * (1 - (value - scale.low) / (scale.high - scale.low))
