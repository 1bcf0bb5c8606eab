"""Private statistics for people in a hurry: a column in, a `Release` out.

Every function names what it spends and who is a neighbour; nothing is charged by default and nothing is guessed from
the data. With a `session` the cost is charged before the first value is read.
"""

from __future__ import annotations

from discreet.statistics.choices import mode, select, top_k
from discreet.statistics.columns import as_column
from discreet.statistics.comparing import Comparison, ModeComparison, compare
from discreet.statistics.comparing_fits import FitComparison
from discreet.statistics.counts import count, proportion
from discreet.statistics.expected import Expected
from discreet.statistics.figures import plot_accuracy, plot_profile, plot_tradeoff
from discreet.statistics.means import mean, variance
from discreet.statistics.ranks import median, quantile
from discreet.statistics.regressions import regression
from discreet.statistics.sums import sum
from discreet.statistics.surveys import randomized_response
from discreet.statistics.tables import histogram
from discreet.statistics.vectors import vector_mean

__all__ = [
    "Comparison",
    "Expected",
    "FitComparison",
    "ModeComparison",
    "as_column",
    "compare",
    "count",
    "histogram",
    "mean",
    "median",
    "mode",
    "plot_accuracy",
    "plot_profile",
    "plot_tradeoff",
    "proportion",
    "quantile",
    "randomized_response",
    "regression",
    "select",
    "sum",
    "top_k",
    "variance",
    "vector_mean",
]
