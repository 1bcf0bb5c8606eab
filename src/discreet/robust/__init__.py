"""Robust statistics: estimates that a few bad values cannot move far, and their private versions.

Robust and private go together: what one value cannot move, tells little about one value. Exact fits and influence
functions of data are `NotPrivate`.
"""

from __future__ import annotations

from discreet.robust.adassp import AdaSSP
from discreet.robust.functionals import (
    HodgesLehmann,
    Mean,
    MedianAbsoluteDeviation,
    MLocation,
    TrimmedMean,
    WinsorisedMean,
)
from discreet.robust.huber_query import huber_query, propose_huber
from discreet.robust.influence_functions import (
    Expectation,
    asymptotic_noise,
    breakdown_point,
    chaudhuri_hsu,
    gross_error_sensitivity,
    influence_function,
)
from discreet.robust.least_squares import NoisyStatistics, predict
from discreet.robust.locations import GradientDescent, Newton, location
from discreet.robust.loss_functions import Huber, Logistic, Quantile, Tukey
from discreet.robust.m_estimates import location_fit, median_absolute_deviation_of, proposal_2, regression_fit
from discreet.robust.means_without_bounds import coinpress_mean, location_and_scale
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design
from discreet.robust.regression_queries import RegressionGradientDescent, RegressionNewton
from discreet.robust.regressions import regression
from discreet.robust.robustness_report import robustness_report
from discreet.robust.tukey_em import TukeyRegression

__all__ = [
    "AdaSSP",
    "Design",
    "Expectation",
    "GradientDescent",
    "HodgesLehmann",
    "Huber",
    "Logistic",
    "MLocation",
    "Mean",
    "MedianAbsoluteDeviation",
    "Newton",
    "NoisyStatistics",
    "Quantile",
    "RefinedRegression",
    "RegressionGradientDescent",
    "RegressionNewton",
    "TrimmedMean",
    "Tukey",
    "TukeyRegression",
    "WinsorisedMean",
    "asymptotic_noise",
    "breakdown_point",
    "chaudhuri_hsu",
    "coinpress_mean",
    "gross_error_sensitivity",
    "huber_query",
    "influence_function",
    "location",
    "location_and_scale",
    "location_fit",
    "median_absolute_deviation_of",
    "predict",
    "proposal_2",
    "propose_huber",
    "regression",
    "regression_fit",
    "robustness_report",
]
