"""Two tables in one picture, for a page: filled bars for one, a line or thin bars for the other.

Like `strips` they are as wide as their place and have the colours of the page.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.errors import InvalidParameter

__all__ = ["overlaid_bars", "overlaid_steps"]

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
