"""Robust statistics: estimates that a few bad values cannot move far, and their private versions.

Robust and private go together: what one value cannot move, tells little about one value. Exact fits and influence
functions of data are `NotPrivate`.
"""

from __future__ import annotations

from discreet.robust.adassp import AdaSSP
from discreet.robust.coefficients import predict
from discreet.robust.coinpress import CoinPressMean
from discreet.robust.depth import DeepPoint
from discreet.robust.design import Design, RegressionColumns
from discreet.robust.fits import MEstimateFit, location_fit, median_absolute_deviation_of, proposal_2, regression_fit
from discreet.robust.functionals import (
    Functional,
    HodgesLehmann,
    Mean,
    MedianAbsoluteDeviation,
    MLocation,
    TrimmedMean,
    WinsorisedMean,
)
from discreet.robust.huber_query import HuberQuery, huber_query, propose_huber
from discreet.robust.influence import breakdown_point, gross_error_sensitivity, influence_function
from discreet.robust.location_scale import LocationAndScale
from discreet.robust.locations import location
from discreet.robust.means_without_bounds import coinpress_mean, location_and_scale
from discreet.robust.noisy_statistics import NoisyStatistics
from discreet.robust.private_location import PrivateLocation
from discreet.robust.private_regression import PrivateRegression
from discreet.robust.psi import Huber, Logistic, Psi, Quantile, Tukey
from discreet.robust.refined import RefinedRegression
from discreet.robust.regression_schedules import RegressionGradientDescent, RegressionNewton
from discreet.robust.regressions import regression
from discreet.robust.robustness import RobustnessReport
from discreet.robust.robustness_report import robustness_report
from discreet.robust.schedules import GradientDescent, Newton
from discreet.robust.tukey_em import TukeyRegression
from discreet.robust.utility import Expectation, asymptotic_noise, chaudhuri_hsu

__all__ = [
    "AdaSSP",
    "CoinPressMean",
    "DeepPoint",
    "Design",
    "Expectation",
    "Functional",
    "GradientDescent",
    "HodgesLehmann",
    "Huber",
    "HuberQuery",
    "LocationAndScale",
    "Logistic",
    "MEstimateFit",
    "MLocation",
    "Mean",
    "MedianAbsoluteDeviation",
    "Newton",
    "NoisyStatistics",
    "PrivateLocation",
    "PrivateRegression",
    "Psi",
    "Quantile",
    "RefinedRegression",
    "RegressionColumns",
    "RegressionGradientDescent",
    "RegressionNewton",
    "RobustnessReport",
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
