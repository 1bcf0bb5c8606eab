"""Successes of an attack beside each other, with their limits and what no attacker exceeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.attacks.results import Success

if TYPE_CHECKING:
    import altair as alt

__all__ = ["success_bars"]


def success_bars(
    shares: Mapping[str, Success], *, ceiling: float | None, across: str, title: str | None = None
) -> alt.LayerChart:
    """Draw a row for each success, and one for the ceiling if there is one."""
    from discreet import plots

    rows = [(name, success.share, *success.interval()) for name, success in shares.items()]
    if ceiling is not None:
        rows.append(("no attacker exceeds", ceiling, ceiling, ceiling))
    names, values, lows, highs = (list(column) for column in zip(*rows, strict=True))
    return plots.error_bars(names, values, lows, highs, across=across, title=title)
