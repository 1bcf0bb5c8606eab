"""One noisy step: the clipped sum gets its noise, becomes a gradient, and the optimiser moves the weights by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, positive
from discreet.formatting import record
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.training.adaptive_clip import FollowedClip
from discreet.learn.training.sampling import RunNoise, RunPlan

__all__ = ["Box", "DPAdamBC", "L2Ball", "NoisyStep", "Projection", "Scheduler", "WeightAverage", "gradient_noise"]

# --- optimizers: Adam without the bias that noise brings into its second moment. ---


@final
class DPAdamBC(Optimizer):
    """Adam whose second moment is freed of the variance of the noise, which is public.

    Theorem     E[v] = E[g^2] + the variance of the noise, since both are independent; so the difference estimates
                E[g^2]. [TSL24] It is post-processing of noisy gradients: privacy does not depend on it, nor on the
                floor, only how well it learns does.
    Utility     After t steps v fluctuates by about sqrt(2 (1 - beta2) / (1 + beta2)) of the variance, 3 % at 0.999;
                the floor keeps what is left above `floor` standard deviations of the noise.

    Args:
        params: The parameters, as every optimiser of torch takes them.
        lr: The learning rate.
        betas: The decays of the first and of the second moment.
        floor: The least denominator, in standard deviations of the noise.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = dp.learn.torch.DPAdamBC(model.parameters(), lr=0.01)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 0.2,
    ) -> None:
        if not lr >= 0 or not all(0 <= beta < 1 for beta in betas) or not floor > 0:
            raise InvalidParameter("DPAdamBC needs lr >= 0, betas in [0, 1) and a floor above 0")
        super().__init__(params, {"lr": lr, "betas": betas, "floor": floor})
        self._noise_variance: float | None = None

    def expect_noise(self, variance: float) -> None:
        """Say how much variance the noise adds to each coordinate of a gradient; `make_private` does."""
        self._noise_variance = float(variance)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every weight by its corrected moment; there is nothing to evaluate again."""
        if closure is not None or self._noise_variance is None:
            raise Refused(
                "DPAdamBC steps with noisy gradients of known variance",
                way_out="hand it to make_private, which calls it after every logical batch",
            )
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group, self._noise_variance)

    def _move(self, weight: Tensor, group: dict[str, Any], noise: float) -> None:
        state, (beta1, beta2) = self.state[weight], group["betas"]
        if not state:
            state.update(step=torch.tensor(0.0), exp_avg=torch.zeros_like(weight), exp_avg_sq=torch.zeros_like(weight))
        state["step"] += 1
        state["exp_avg"].lerp_(weight.grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(weight.grad, weight.grad, value=1 - beta2)
        count = float(state["step"])
        second = state["exp_avg_sq"] / (1 - beta2**count) - noise
        second.clamp_(min=max(group["floor"] ** 2 * noise, 1e-30))
        weight.addcdiv_(state["exp_avg"], second.sqrt_(), value=-group["lr"] / (1 - beta1**count))


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
    """All weights together have at most this l2 norm.

    Args:
        radius: The largest l2 norm of all weights together.

    Examples:
        >>> import torch
        >>> weights = torch.tensor([3.0, 4.0])
        >>> dp.learn.torch.L2Ball(1).apply([weights])
        >>> round(float(weights.norm()), 3)
        1.0
    """

    radius: Number

    __repr__ = record

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
    """Every weight lies between `low` and `high`.

    Args:
        low: The least that a weight may be.
        high: The most that a weight may be.

    Raises:
        InvalidParameter: If `low` is not below `high`.

    Examples:
        >>> import torch
        >>> weights = torch.tensor([-3.0, 0.5])
        >>> dp.learn.torch.Box(-1, 1).apply([weights])
        >>> weights.tolist()
        [-1.0, 0.5]
    """

    low: Number
    high: Number

    __repr__ = record

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
        gradient = self._released(float(self.plan.grid / self.plan.divisor) * unit)
        if self.followed is not None:
            self.sums.threshold = self.followed.follow(count)
        self._set_gradients(gradient)
        if isinstance(self.optimizer, DPAdamBC):
            self.optimizer.expect_noise(gradient_noise(self.plan, unit) ** 2)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._tidy()

    def _released(self, unit: float) -> Tensor:
        """The sum of clipped gradients with its noise: whole numbers of grid steps, added exactly, times `unit`."""
        return torch.from_numpy(self.noise.released(self.sums.take(), unit))

    def _set_gradients(self, gradient: Tensor) -> None:
        # What a loss.backward() before left on frozen weights has no noise, and the optimiser would step by it.
        for group in self.optimizer.param_groups:
            for held in group["params"]:
                held.grad = None
        parts = torch.split_with_sizes(gradient, [weight.numel() for weight in self.weights])
        for weight, part in zip(self.weights, parts, strict=True):
            weight.grad = part.view(weight.shape)

    def _tidy(self) -> None:
        if self.projection is not None:
            self.projection.apply(self.weights)
        if self.average is not None:
            self.average.update(self.weights)
        if self.scheduler is not None:
            self.scheduler.step()
