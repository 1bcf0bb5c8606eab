"""Linear layers: the gradient is the sum over positions of output gradient times input."""

from __future__ import annotations

from torch import Tensor

from discreet.learn.torch.clipping.forms import RowGradients
from discreet.learn.torch.clipping.parts import Part, Positions
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["linear"]


def linear(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Flatten all dimensions between the first and the last into positions; one position if there are none."""
    left, right = _positions(gradient), _positions(call.input)
    parts: dict[str, Part] = {}
    if "weight" in call.trained:
        parts["weight"] = Positions(left, right)
    if "bias" in call.trained:
        parts["bias"] = RowGradients(left[:, 0] if left.shape[1] == 1 else left.sum(1))
    return parts


def _positions(values: Tensor) -> Tensor:
    return values.float().reshape(len(values), -1, values.shape[-1])
