"""Private convex optimisation: exact gradients, certified minima, objective perturbation."""

from __future__ import annotations

from discreet.learn.convex.objective_perturbation import delta_bound

__all__ = ["delta_bound"]
