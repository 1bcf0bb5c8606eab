"""How every chart of the house looks: for paper, for a phone, and for eyes that do not see every colour."""

from __future__ import annotations

from typing import Any

from discreet.plots.curves import MOST

__all__ = ["COLOURS", "CONFIG", "DASHES", "HEIGHT", "INKS", "QUIET", "SQUARE", "WIDTH"]

WIDTH, HEIGHT, SQUARE = 460, 320, 360  # Pixels; a phone shows them without scrolling sideways.

# The palette of Okabe and Ito, without its yellow, which white paper swallows; the dashes tell the same story in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
DASHES = ((1, 0), (8, 3), (3, 3), (10, 3, 2, 3), (5, 5), (2, 2), (12, 4))
# Letters are thinner than lines and need more contrast: the same hues, a quarter darker.
INKS = tuple("#" + "".join(f"{int(c[i : i + 2], 16) * 3 // 4:02X}" for i in (1, 3, 5)) for c in COLOURS)
assert len(COLOURS) == len(DASHES) == MOST

_FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
_INK = "#222222"
QUIET = "#6B6B6B"
_GRID = "#E3E3E3"

CONFIG: dict[str, Any] = {
    "font": _FONT,
    "background": "white",
    "padding": 12,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 13,
        "titleFontSize": 14,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelColor": _INK,
        "titleColor": _INK,
        "gridColor": _GRID,
        "domainColor": _INK,
        "tickColor": _INK,
        "labelOverlap": True,
    },
    "title": {"fontSize": 16, "fontWeight": "bold", "anchor": "start", "color": _INK, "offset": 12},
    "line": {"strokeWidth": 2.5, "strokeCap": "butt"},
    "text": {"fontSize": 13},
    "legend": {
        "labelFontSize": 13,
        "labelColor": _INK,
        "labelLimit": 320,
        "symbolSize": 500,
        "symbolStrokeWidth": 2.5,
        "symbolType": "stroke",
        "offset": 0,
    },
}
