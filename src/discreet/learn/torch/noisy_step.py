"""One noisy step: the clipped sum gets its noise, becomes a gradient, and the optimiser moves the weights by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.learn.torch.clipping import ClippedSums
from discreet.learn.torch.optimizers import DPAdamBC
from discreet.learn.training import FollowedClip, RunNoise, RunPlan

__all__ = ["Box", "L2Ball", "NoisyStep", "Projection", "Scheduler", "WeightAverage", "gradient_noise"]

# --- averaging ---
# A moving average of the weights: free, since it looks at nothing but weights that are private already.


@final
class WeightAverage:
    """Weights averaged over steps, with a decay that grows to its final value as min(decay, (1 + t) / (10 + t))."""

    def __init__(self, weights: Sequence[Tensor], decay: float) -> None:
        if not 0 < decay < 1:
            raise InvalidParameter("ema must be a decay between 0 and 1, such as 0.999; None switches it off")
        self.decay = float(decay)
        self.updates = 0
        self.averages = [weight.detach().clone() for weight in weights]

    def update(self, weights: Sequence[Tensor]) -> None:
        """Take the weights after a step in."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        with torch.no_grad():
            for average, weight in zip(self.averages, weights, strict=True):
                average.lerp_(weight, 1 - decay)


# --- projections ---
# Weights kept inside a convex set that is chosen beforehand: free, since it looks at noisy weights only.
#
# Projected gradient descent is what most theorems on private learning are about. [BST14]


class Projection(Protocol):
    """What brings weights back into a set, after every step."""

    def apply(self, weights: Sequence[Tensor]) -> None:
        """Move the weights to the nearest point of the set, in place."""


@final
@dataclass(frozen=True, slots=True)
class L2Ball:
    """All weights together have at most this l2 norm."""

    radius: Number

    def __post_init__(self) -> None:
        positive(self.radius, name="radius")

    def apply(self, weights: Sequence[Tensor]) -> None:
        """Shrink all weights by one factor if their norm is above the radius."""
        with torch.no_grad():
            norm = torch.stack([weight.double().norm() for weight in weights]).norm()
            factor = min(1.0, float(exact(self.radius)) / max(float(norm), 1e-300))
            if factor < 1:
                torch._foreach_mul_(list(weights), factor)


@final
@dataclass(frozen=True, slots=True)
class Box:
    """Every weight lies between `low` and `high`."""

    low: Number
    high: Number

    def __post_init__(self) -> None:
        if exact(self.low, name="low") >= exact(self.high, name="high"):
            raise InvalidParameter("low must be below high")

    def apply(self, weights: Sequence[Tensor]) -> None:
        """Clamp every weight."""
        with torch.no_grad():
            for weight in weights:
                weight.clamp_(float(exact(self.low)), float(exact(self.high)))


class Scheduler(Protocol):
    """A scheduler of learning rates, as in torch.optim.lr_scheduler."""

    def step(self) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


def gradient_noise(plan: RunPlan, clip: float = 1.0) -> float:
    """Return the standard deviation of the noise on one coordinate of the gradient that the optimiser gets."""
    return plan.deviation * float(plan.grid / plan.divisor) * clip


@final
@dataclass(frozen=True, slots=True)
class NoisyStep:
    """What happens when a logical batch is complete. All that follows the noise is post-processing, and free."""

    plan: RunPlan
    sums: ClippedSums
    noise: RunNoise
    optimizer: Optimizer
    scheduler: Scheduler | None
    projection: Projection | None
    average: WeightAverage | None
    followed: FollowedClip | None

    @property
    def weights(self) -> tuple[nn.Parameter, ...]:
        return self.sums.parameters

    @property
    def clip(self) -> float:
        """The largest norm of one row's gradient in the next step, which is public."""
        return float(self.plan.clip.bound) if self.followed is None else self.followed.current

    def run(self) -> None:
        """Release the noisy sum of this logical batch, and learn from it."""
        unit, count = 1.0 if self.followed is None else self.followed.current, self.sums.count
        gradient = self._released() * (float(self.plan.grid / self.plan.divisor) * unit)
        if self.followed is not None:
            self.sums.threshold = self.followed.follow(count)
        self._set_gradients(gradient)
        if isinstance(self.optimizer, DPAdamBC):
            self.optimizer.expect_noise(gradient_noise(self.plan, unit) ** 2)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._tidy()

    def _released(self) -> Tensor:
        """The sum of clipped gradients with its noise, in grid steps: whole numbers, added exactly."""
        return torch.from_numpy(self.noise.released(self.sums.take().to(torch.int64).numpy()))

    def _set_gradients(self, gradient: Tensor) -> None:
        # What a loss.backward() before left on frozen weights has no noise, and the optimiser would step by it.
        self.optimizer.zero_grad(set_to_none=True)
        parts = torch.split_with_sizes(gradient, [weight.numel() for weight in self.weights])
        for weight, part in zip(self.weights, parts, strict=True):
            weight.grad = part.reshape(weight.shape).to(weight.dtype)

    def _tidy(self) -> None:
        if self.projection is not None:
            self.projection.apply(self.weights)
        if self.average is not None:
            self.average.update(self.weights)
        if self.scheduler is not None:
            self.scheduler.step()
