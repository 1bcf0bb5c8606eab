"""Pictures by diffusion, learnt from noisy gradients. Learning and drawing need the extra `torch`."""

from __future__ import annotations

from discreet.synth.diffusion.diffusion_method import Convolutional, Ddim, Diffusion, Heun, Linear, WarmUp
from discreet.synth.diffusion.diffusion_model import DiffusionModel
from discreet.synth.diffusion.diffusion_plan import DiffusionPlan

__all__ = ["Convolutional", "Ddim", "Diffusion", "DiffusionModel", "DiffusionPlan", "Heun", "Linear", "WarmUp"]
