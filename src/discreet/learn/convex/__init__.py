"""Convex fits with a proven bound on what one row tells: exact gradients, certified minima, noisy sums."""

from __future__ import annotations

from discreet.learn.convex.calibration import Calibration, delta_bound
from discreet.learn.convex.noisy_derivatives import LogisticCurvature, LogisticScores
from discreet.learn.convex.objective_perturbation import ObjectivePerturbation

__all__ = ["Calibration", "LogisticCurvature", "LogisticScores", "ObjectivePerturbation", "delta_bound"]
