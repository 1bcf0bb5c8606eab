"""Convex fits with a proven bound on what one row tells: exact gradients, certified minima, noisy sums."""

from __future__ import annotations

from discreet.learn.convex.objective_perturbation import delta_bound

__all__ = ["delta_bound"]
