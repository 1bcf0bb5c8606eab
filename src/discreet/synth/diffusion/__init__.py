"""Diffusion models of images, trained by DP-SGD. Learning and drawing need the extra `torch`."""

from __future__ import annotations

from discreet.synth.diffusion.diffusion_method import Convolutional, Ddim, Diffusion, Heun, Linear, WarmUp

__all__ = ["Convolutional", "Ddim", "Diffusion", "Heun", "Linear", "WarmUp"]
