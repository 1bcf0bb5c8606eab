"""Convex fits with a proven bound on what one row tells: exact gradients, certified minima, noisy sums."""

from __future__ import annotations

from discreet.learn.convex.logistic_gradient import LogisticCurvature, LogisticScores
from discreet.learn.convex.objective_perturbation import Calibration, ObjectivePerturbation, delta_bound

__all__ = ["Calibration", "LogisticCurvature", "LogisticScores", "ObjectivePerturbation", "delta_bound"]
