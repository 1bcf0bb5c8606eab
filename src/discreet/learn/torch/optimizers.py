"""Adam without the bias that noise brings into its second moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from torch import Tensor
from torch.optim import Optimizer

from discreet.errors import InvalidParameter, Refused

__all__ = ["DPAdamBC"]


@final
class DPAdamBC(Optimizer):
    """Adam whose second moment is freed of the variance of the noise, which is public.

    Theorem     E[v] = E[g^2] + the variance of the noise, since both are independent; so the difference estimates
                E[g^2]. [TSL24] It is post-processing of noisy gradients: privacy does not depend on it, nor on the
                floor, only how well it learns does.
    Utility     After t steps v fluctuates by about sqrt(2 (1 - beta2) / (1 + beta2)) of the variance, 3 % at 0.999;
                the floor keeps what is left above `floor` standard deviations of the noise.
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
