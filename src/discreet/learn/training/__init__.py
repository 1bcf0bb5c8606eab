"""What private training is made of, without any framework: the plan, the clip rules, the sampler and the noise."""

from __future__ import annotations

from discreet.learn.training.adaptive_clip import FollowedClip
from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, Flat, PerLayer, read_clip
from discreet.learn.training.prefetched_noise import NoiseAhead
from discreet.learn.training.sampling import (
    NOBODY,
    PhysicalBatch,
    PoissonSampler,
    RunNoise,
    RunPlan,
    RunSampler,
    Stream,
)
from discreet.learn.training.training_plan import StreamPlan, TrainingPlan, grid_for, plan_stream, plan_training

__all__ = [
    "NOBODY",
    "AdaptiveClip",
    "Automatic",
    "Clip",
    "Flat",
    "FollowedClip",
    "NoiseAhead",
    "PerLayer",
    "PhysicalBatch",
    "PoissonSampler",
    "RunNoise",
    "RunPlan",
    "RunSampler",
    "Stream",
    "StreamPlan",
    "TrainingPlan",
    "grid_for",
    "plan_stream",
    "plan_training",
    "read_clip",
]
