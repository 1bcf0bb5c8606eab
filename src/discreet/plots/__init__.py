"""Pictures of guarantees: plain arrays in, chart out. The only home of altair, which is loaded when a chart is made.

`strip`, `ruler`, `course`, `hundred` and `caught` are SVG texts for a page, in its own colours, without altair.
"""

from discreet.pages.svg import caught, course, hundred, ruler, scale_for, strip
from discreet.plots.chart_files import Curves, save
from discreet.plots.charts import accuracy, lines, neighbours, profile, shifts, tradeoff
from discreet.plots.error_bars import boxes, error_bars, shares

__all__ = [
    "Curves",
    "accuracy",
    "boxes",
    "caught",
    "course",
    "error_bars",
    "hundred",
    "lines",
    "neighbours",
    "profile",
    "ruler",
    "save",
    "scale_for",
    "shares",
    "shifts",
    "strip",
    "tradeoff",
]
