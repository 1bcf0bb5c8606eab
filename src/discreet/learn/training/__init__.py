"""What private training is made of, without any framework: the plan, the clip rules, the sampler and the noise."""

from __future__ import annotations

from discreet.learn.training.ahead import NoiseAhead
from discreet.learn.training.clips import AdaptiveClip, Automatic, Clip, Flat, PerLayer, read_clip
from discreet.learn.training.following import FollowedClip
from discreet.learn.training.grids import grid_for
from discreet.learn.training.plan import TrainingPlan, plan_training
from discreet.learn.training.runs import RunNoise, RunPlan, RunSampler
from discreet.learn.training.sampling import NOBODY, PhysicalBatch, PoissonSampler
from discreet.learn.training.stream_plan import StreamPlan, plan_stream
from discreet.learn.training.streams import Stream

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
