"""Pictures of guarantees: plain arrays in, chart out. The only home of altair, which is loaded when a chart is made.

`strip`, `ruler`, `course`, `hundred`, `caught`, `heatmap`, `overlaid_bars`, `overlaid_steps` and `page_lines` are SVG
texts for a page, in its own colours, without altair.
"""

from discreet.plots.attackers import caught, hundred
from discreet.plots.bars import error_bars
from discreet.plots.charts import accuracy, lines, profile, shifts, tradeoff
from discreet.plots.courses import course
from discreet.plots.curves import Curves
from discreet.plots.files import save
from discreet.plots.heatmaps import heatmap
from discreet.plots.overlaid import overlaid_bars, overlaid_steps
from discreet.plots.page_lines import page_lines
from discreet.plots.shares import shares
from discreet.plots.strips import Scale, ruler, scale_for, strip

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
