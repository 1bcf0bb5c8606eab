"""One noisy step: the clipped sum gets its noise, becomes a gradient, and the optimiser moves the weights by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from discreet.learn.torch.adam import DPAdamBC
from discreet.learn.torch.averaging import WeightAverage
from discreet.learn.torch.clipping import ClippedSums
from discreet.learn.torch.projections import Projection
from discreet.learn.training import FollowedClip, RunNoise, RunPlan

__all__ = ["NoisyStep", "Scheduler", "gradient_noise"]


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
