"""Pictures by diffusion, learnt from noisy gradients. Learning and drawing need the extra `torch`."""

from __future__ import annotations

from discreet.synth.diffusion.method import Diffusion
from discreet.synth.diffusion.model import DiffusionModel
from discreet.synth.diffusion.options import Convolutional, Ddim, Heun, Linear, WarmUp
from discreet.synth.diffusion.planning import DiffusionPlan

__all__ = ["Convolutional", "Ddim", "Diffusion", "DiffusionModel", "DiffusionPlan", "Heun", "Linear", "WarmUp"]
