"""Pictures of guarantees: plain arrays in, chart out. The only home of altair, which is loaded when a chart is made.

`strip`, `ruler`, `course`, `hundred`, `caught`, `heatmap`, `overlaid_bars`, `overlaid_steps` and `page_lines` are SVG
texts for a page, in its own colours, without altair.
"""

from discreet.plots.chart_files import Curves, save
from discreet.plots.charts import accuracy, lines, profile, shifts, tradeoff
from discreet.plots.comparison_charts import caught, heatmap, hundred, overlaid_bars, overlaid_steps
from discreet.plots.error_bars import error_bars, shares
from discreet.plots.page_charts import Scale, course, page_lines, ruler, scale_for, strip

__all__ = [
    "Curves",
    "Scale",
    "accuracy",
    "caught",
    "course",
    "error_bars",
    "heatmap",
    "hundred",
    "lines",
    "overlaid_bars",
    "overlaid_steps",
    "page_lines",
    "profile",
    "ruler",
    "save",
    "scale_for",
    "shares",
    "shifts",
    "strip",
    "tradeoff",
]
