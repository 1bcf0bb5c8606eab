"""Graphical models fitted to noisy marginals, and sampled: the estimator behind MST and AIM. Plain numpy."""

from __future__ import annotations

from discreet.synth.tables.graphical.belief_propagation import Clique, junction_cells
from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.graphical.entropy_fit import Impossible, fit
from discreet.synth.tables.graphical.graphical_model import Graphical

__all__ = ["Clique", "Graphical", "Impossible", "NoisyMarginal", "fit", "junction_cells"]
