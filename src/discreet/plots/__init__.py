"""Pictures of guarantees: plain arrays in, chart out. The only home of altair, which is loaded when a chart is made."""

from discreet.plots.bars import error_bars
from discreet.plots.charts import accuracy, lines, profile, shifts, tradeoff
from discreet.plots.curves import Curves
from discreet.plots.files import save

__all__ = ["Curves", "accuracy", "error_bars", "lines", "profile", "save", "shifts", "tradeoff"]
