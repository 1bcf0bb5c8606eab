"""DP-SGD for PyTorch: `make_private`, and what goes with it."""

from __future__ import annotations

import discreet.learn.needs_torch  # noqa: F401 - says what to install, if that is missing
from discreet.learn.torch.export import load_weights
from discreet.learn.torch.noisy_step import Box, DPAdamBC, L2Ball
from discreet.learn.torch.poisoning import poisoning_check
from discreet.learn.torch.private_training import make_private, make_private_stream
from discreet.learn.torch.training_run import PrivateTraining

__all__ = [
    "Box",
    "DPAdamBC",
    "L2Ball",
    "PrivateTraining",
    "load_weights",
    "make_private",
    "make_private_stream",
    "poisoning_check",
]
