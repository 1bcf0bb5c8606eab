"""Privacy accounting: the neighbouring relation, events (what was spent), and what they mean."""

from __future__ import annotations

from discreet.privacy import compose, convert, group, subsample
from discreet.privacy.calibration import calibrate
from discreet.privacy.events import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomlyStopped,
    Repeated,
    SampledWithoutReplacement,
    from_json,
)
from discreet.privacy.gaussian import classic_gaussian_sigma, gaussian_sigma
from discreet.privacy.guarantee import delta, epsilon, epsilon_bounds, renyi
from discreet.privacy.meaning import best_guess, deployments, explain, explain_epsilon
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.privacy.tradeoffs import best_tpr, gdp_mu, tradeoff

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "Grouped",
    "Laplace",
    "NotPrivate",
    "Parallel",
    "Payer",
    "PoissonSampled",
    "PureDP",
    "RandomizedResponse",
    "RandomlyStopped",
    "Relation",
    "Repeated",
    "SampledWithoutReplacement",
    "best_guess",
    "best_tpr",
    "calibrate",
    "classic_gaussian_sigma",
    "compose",
    "convert",
    "delta",
    "deployments",
    "epsilon",
    "epsilon_bounds",
    "explain",
    "explain_epsilon",
    "from_json",
    "gaussian_sigma",
    "gdp_mu",
    "group",
    "renyi",
    "subsample",
    "tradeoff",
]
