"""One-call statistics: a column in, a `Release` out.

Every function names what it spends and who is a neighbour; nothing is charged by default and nothing is guessed from
the data. With a `session` the cost is charged before the first value is read.
"""

from __future__ import annotations

from discreet.frames.column import as_column
from discreet.statistics.comparison import Comparison, FitComparison, ModeComparison, compare
from discreet.statistics.expected import Expected
from discreet.statistics.guarantee_charts import plot_accuracy, plot_neighbours, plot_profile, plot_tradeoff
from discreet.statistics.means_and_quantiles import mean, median, quantile, quantiles, std, variance, vector_mean
from discreet.statistics.one_call import (
    count,
    histogram,
    mode,
    proportion,
    randomized_response,
    select,
    sum,
    top_k,
)
from discreet.statistics.population_means import difference, two_sample_test
from discreet.statistics.regressions import correlation, covariance, regression
from discreet.statistics.table_tests import fit_test, independence_test
from discreet.statistics.workloads import workload

__all__ = [
    "Comparison",
    "Expected",
    "FitComparison",
    "ModeComparison",
    "as_column",
    "compare",
    "correlation",
    "count",
    "covariance",
    "difference",
    "fit_test",
    "histogram",
    "independence_test",
    "mean",
    "median",
    "mode",
    "plot_accuracy",
    "plot_neighbours",
    "plot_profile",
    "plot_tradeoff",
    "proportion",
    "quantile",
    "quantiles",
    "randomized_response",
    "regression",
    "select",
    "std",
    "sum",
    "top_k",
    "two_sample_test",
    "variance",
    "vector_mean",
    "workload",
]
