"""Robust statistics: estimates that a few bad values cannot move far, and their private versions.

Robust and private go together: what one value cannot move, tells little about one value. Exact fits and influence
functions of data are `NotPrivate`.
"""

from __future__ import annotations

from discreet.robust.adassp import AdaSSP
from discreet.robust.coefficients import predict
from discreet.robust.design import Columns, Design
from discreet.robust.fits import (
    Fit,
    location_fit,
    median_absolute_deviation_of,
    proposal_2,
    regression_fit,
)
from discreet.robust.functionals import (
    Functional,
    HodgesLehmann,
    Mean,
    MedianAbsoluteDeviation,
    MLocation,
    TrimmedMean,
    WinsorisedMean,
)
from discreet.robust.influence import breakdown_point, gross_error_sensitivity, influence_function
from discreet.robust.noisy_statistics import NoisyStatistics
from discreet.robust.psi import Huber, Logistic, Psi, Quantile, Tukey
from discreet.robust.refined import RefinedRegression
from discreet.robust.utility import Expectation, asymptotic_noise, chaudhuri_hsu

__all__ = [
    "AdaSSP",
    "Columns",
    "Design",
    "Expectation",
    "Fit",
    "Functional",
    "HodgesLehmann",
    "Huber",
    "Logistic",
    "MLocation",
    "Mean",
    "MedianAbsoluteDeviation",
    "NoisyStatistics",
    "Psi",
    "Quantile",
    "RefinedRegression",
    "TrimmedMean",
    "Tukey",
    "WinsorisedMean",
    "asymptotic_noise",
    "breakdown_point",
    "chaudhuri_hsu",
    "gross_error_sensitivity",
    "influence_function",
    "location_fit",
    "median_absolute_deviation_of",
    "predict",
    "proposal_2",
    "regression_fit",
]
