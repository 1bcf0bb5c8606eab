"""Graphical models fitted to noisy marginals, and sampled: the estimator behind MST and AIM. Plain numpy."""
