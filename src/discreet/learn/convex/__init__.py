"""Convex fits with a proven bound on what one row tells: exact gradients, certified minima, noisy sums."""

from __future__ import annotations

from discreet.learn.convex.calibrated import Calibration, delta_bound
from discreet.learn.convex.curvature import LogisticCurvature
from discreet.learn.convex.objective import ObjectivePerturbation
from discreet.learn.convex.scores import LogisticScores

__all__ = ["Calibration", "LogisticCurvature", "LogisticScores", "ObjectivePerturbation", "delta_bound"]
