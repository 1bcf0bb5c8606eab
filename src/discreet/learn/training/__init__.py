"""What private training is made of, without any framework: the plan, the clip rules, the sampler and the noise."""

from __future__ import annotations

from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Flat, PerLayer
from discreet.learn.training.stream_plan import plan_stream
from discreet.learn.training.training_plan import TrainingPlan, plan_training

__all__ = [
    "AdaptiveClip",
    "Automatic",
    "Flat",
    "PerLayer",
    "TrainingPlan",
    "plan_stream",
    "plan_training",
]
