"""Per-example gradient rules of layers: from a call's input and its output's gradient to those of all rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from discreet.errors import Refused
from discreet.learn.torch.clipping.gradient_forms import Part, Picks, Positions, RowGradients
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = [
    "convolution",
    "embedding",
    "fallback",
    "group_norm",
    "has_rule",
    "instance_norm",
    "layer_norm",
    "linear",
    "parts_of",
    "rms_norm",
    "transposed_linear",
]

# --- rules ---
# One rule for each kind of layer: from what a call saw and its output's gradient to the parts of its parameters.


# --- convolution: Convolutions: unfolded, they are linear layers with one position for each place of the kernel. ---


def convolution(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Unfold the input into patches, (rows, groups, patch, places), and pair them with the output's gradient."""
    module = cast(_ConvNd, call.module)
    groups = module.groups
    left = gradient.float().reshape(len(gradient), groups, module.out_channels // groups, -1)
    parts: dict[str, Part] = {}
    if "weight" in call.trained:
        right = _unfolded(module, call.input.float()).reshape(len(gradient), groups, -1, left.shape[3])
        parts["weight"] = _weight(left, right)
    if "bias" in call.trained:
        parts["bias"] = RowGradients(left.sum(3).flatten(1))
    return parts


def _weight(left: Tensor, right: Tensor) -> Part:
    if left.shape[1] == 1:
        return Positions(left[:, 0].transpose(1, 2), right[:, 0].transpose(1, 2))
    # One group's outputs never meet another group's inputs, so groups are rows of their own while products form.
    formed = torch.bmm(left.flatten(0, 1), right.flatten(0, 1).transpose(1, 2))
    return RowGradients(formed.reshape(len(left), -1))


def _unfolded(module: _ConvNd, values: Tensor) -> Tensor:
    """Return all patches, (rows, channels x kernel, places): a strided view, copied once."""
    kernel, stride, dilation = (_numbers(each) for each in (module.kernel_size, module.stride, module.dilation))
    values = _padded(module, values)
    for axis, (size, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True), start=2):
        values = values.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
    axes = len(kernel)
    order = (0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    places = prod(values.shape[2 : 2 + axes])
    return values.permute(order).reshape(len(values), -1, places)


def _padded(module: _ConvNd, values: Tensor) -> Tensor:
    if module.padding == "valid" or not any(module._reversed_padding_repeated_twice):
        return values
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    return functional.pad(values, module._reversed_padding_repeated_twice, mode)


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(cast("tuple[int, ...]", value))


# --- embedding: Embeddings: the gradient of a picked row is the output's gradient there. ---


def embedding(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Pair each position's index with its gradient; the padding index gets none."""
    module = cast(nn.Embedding, call.module)
    if module.scale_grad_by_freq or module.max_norm is not None:
        raise _unusable(call.name)
    picked = call.input.long().reshape(len(gradient), -1)
    right = gradient.float().reshape(len(gradient), -1, gradient.shape[-1])
    if module.padding_idx is not None:
        right = right.masked_fill((picked == module.padding_idx)[:, :, None], 0.0)
    return {"weight": Picks(picked, right, module.num_embeddings)}


def _unusable(name: str) -> Refused:
    return Refused(
        f"the embedding {name!r} uses scale_grad_by_freq or max_norm",
        reason="both let one record change what another one contributes",
        way_out="leave scale_grad_by_freq=False and max_norm=None",
    )


# --- linear: Linear layers: the gradient is the sum over positions of output gradient times input. ---


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


def transposed_linear(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Do the same for `Conv1D` of transformers, whose weight has inputs first and outputs last."""
    left, right = _positions(call.input), _positions(gradient)
    parts: dict[str, Part] = {}
    if "weight" in call.trained:
        parts["weight"] = Positions(left, right)
    if "bias" in call.trained:
        parts["bias"] = RowGradients(right[:, 0] if right.shape[1] == 1 else right.sum(1))
    return parts


# --- normalisation ---
# Layers that normalise within a row: gradients of scale and shift are short, and formed row by row.


def layer_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale and shift, and sum over all but the normalised dimensions."""
    module = cast(nn.LayerNorm, call.module)
    shape = list(module.normalized_shape)
    given = call.input.float()
    # With a scale of ones and a shift of zeros torch takes half the time that it takes without.
    one, zero = given.new_ones(shape), given.new_zeros(shape)
    return _trailing(call, functional.layer_norm(given, shape, one, zero, module.eps), gradient, len(shape))


def rms_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale, and sum over all but the normalised dimensions."""
    module = cast(nn.RMSNorm, call.module)
    shape = list(module.normalized_shape)
    return _trailing(call, functional.rms_norm(call.input.float(), shape, eps=module.eps), gradient, len(shape))


def group_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale and shift, and sum over the places of each channel."""
    module = cast(nn.GroupNorm, call.module)
    return _channels(call, functional.group_norm(call.input.float(), module.num_groups, eps=module.eps), gradient)


def instance_norm(call: LayerCall, gradient: Tensor) -> dict[str, Part]:
    """Normalise the input again without scale and shift, and sum over the places of each channel."""
    module = cast(nn.InstanceNorm2d, call.module)
    if module.track_running_stats:
        raise Refused(
            f"the layer {call.name!r} keeps running statistics",
            reason="they are averages over records that leave the model without noise",
            way_out="use track_running_stats=False, or GroupNorm",
        )
    return _channels(call, functional.instance_norm(call.input.float(), eps=module.eps), gradient)


def _trailing(call: LayerCall, normal: Tensor, gradient: Tensor, axes: int) -> dict[str, Part]:
    """Sum over positions: (rows, positions, size) -> (rows, size)."""
    size = gradient.shape[gradient.dim() - axes :].numel()
    return _parts(call, *(each.float().reshape(len(gradient), -1, size) for each in (normal, gradient)), axis=1)


def _channels(call: LayerCall, normal: Tensor, gradient: Tensor) -> dict[str, Part]:
    """Sum over places: (rows, channels, places) -> (rows, channels)."""
    channels = gradient.shape[1]
    return _parts(call, *(each.float().reshape(len(gradient), channels, -1) for each in (normal, gradient)), axis=2)


def _parts(call: LayerCall, normal: Tensor, gradient: Tensor, *, axis: int) -> dict[str, Part]:
    sums = {"weight": lambda: torch.mul(normal, gradient).sum(axis), "bias": lambda: gradient.sum(axis)}
    return {name: RowGradients(sums[name]()) for name in call.trained}


# --- choosing: Which rule a layer gets. ---


Rule: TypeAlias = Callable[[LayerCall, Tensor], dict[str, Part]]

_RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.Conv3d: convolution,
    nn.Embedding: embedding,
    nn.LayerNorm: layer_norm,
    nn.GroupNorm: group_norm,
    nn.RMSNorm: rms_norm,
    nn.InstanceNorm1d: instance_norm,
    nn.InstanceNorm2d: instance_norm,
    nn.InstanceNorm3d: instance_norm,
}


def has_rule(module: nn.Module) -> bool:
    """Whether a layer has a rule of its own; all others go through `torch.func`."""
    return _rule(module) is not None


def parts_of(call: LayerCall, gradients: tuple[Tensor | None, ...]) -> dict[str, Part]:
    """Return what a call contributes to each parameter of its layer, given the gradients of its outputs."""
    if call.copied:
        return {name: RowGradients(_flat(gradients[0])) for name in call.trained}
    rule = _rule(call.module)
    only = gradients[0] if len(gradients) == 1 else None
    return fallback(call, gradients) if rule is None or only is None else rule(call, only)


def _flat(gradient: Tensor | None) -> Tensor:
    assert gradient is not None  # A call whose outputs all lack one is left out.
    return gradient.float().reshape(len(gradient), -1)


def _rule(module: nn.Module) -> Rule | None:
    """A subclass whose forward is its own may compute anything, and a parametrised layer is such a subclass."""
    transposed = getattr(sys.modules.get("transformers.pytorch_utils"), "Conv1D", None)
    kind = _kind_of(type(module), transposed)  # type: ignore[arg-type]
    if kind is None or type(module).forward is not kind.forward or "forward" in vars(module):
        return None
    own = isinstance(module, _ConvNd) and type(module)._conv_forward is not kind._conv_forward  # type: ignore[attr-defined]
    if own or not _plain(module):
        return None
    return transposed_linear if kind is transposed else _RULES[kind]


@lru_cache(1024)
def _kind_of(layer: type[nn.Module], transposed: type[nn.Module] | None) -> type[nn.Module] | None:
    """Find what a type of layers is derived from; `transposed` is that of transformers, where the library is loaded."""
    kinds = (*_RULES, transposed)
    return next((kind for kind in kinds if kind is not None and issubclass(layer, kind)), None)


def _plain(module: nn.Module) -> bool:
    """Whether weight and bias are the layer's own parameters, not computed by a parametrisation or a hook."""
    own = module._parameters
    return all(own.get(name) is not None or getattr(module, name, None) is None for name in ("weight", "bias"))


_ROOM = 1 << 25  # numbers that the gradients of one chunk of rows may take


def fallback(call: LayerCall, gradients: tuple[Tensor | None, ...]) -> dict[str, Part]:
    """Form each row's gradient: that of the sum of outputs times their gradients, for one row at a time.

    The whole layer runs again, its children included; children are constants here, since the tape has them too.
    """
    rows = next(len(gradient) for gradient in gradients if gradient is not None)
    own = {name: value.detach() for name, value in call.trained.items()}
    leaves, tree = tree_flatten(tree_map_only(Tensor, _widened, (call.args, dict(call.kwargs))))
    moving = [_moves(call, leaf, rows) for leaf in leaves]

    def of_row(values: dict[str, Tensor], row: list[Tensor], outer: list[Tensor]) -> Tensor:
        several = iter(row)
        again = [next(several)[None] if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)]
        return _matched(call, values, tree_unflatten(again, tree), outer)

    row_leaves = [leaf for leaf, moves in zip(leaves, moving, strict=True) if moves]
    known = [_or_zero(gradient, output) for gradient, output in zip(gradients, call.outputs, strict=True)]
    try:
        formed = _for_all_rows(of_row, own, row_leaves, known, rows)
    except RuntimeError:  # torch.func met chance, a write in place or control flow that looks at data.
        raise _fallback_unusable(call) from None
    return {name: RowGradients(value.float().reshape(rows, -1)) for name, value in formed.items()}


def _for_all_rows(of_row: Any, own: dict[str, Tensor], inputs: Any, outer: Any, rows: int) -> dict[str, Tensor]:
    """Take rows in equal chunks: a chunk of another length could round in another way."""
    most = max(1, _ROOM // sum(value.numel() for value in own.values()))
    chunk = rows if most >= rows else max(size for size in range(1, most + 1) if rows % size == 0)
    formed: dict[str, Tensor] = vmap(grad(of_row), (None, 0, 0), chunk_size=chunk)(own, inputs, outer)
    return formed


def _matched(call: LayerCall, values: dict[str, Tensor], inputs: Any, outer: list[Tensor]) -> Tensor:
    args, kwargs = inputs
    named = {f"layer.{name}": value for name, value in values.items()}
    # Not tied: where a child owns the same parameter, the child's calls are on the tape themselves.
    said, _ = tree_flatten(functional_call(_Forward(call.module), named, args, kwargs, tie_weights=False))
    if any(len(said[at]) != 1 for at in call.places):  # It found rows of the whole batch, in an attribute say.
        raise RuntimeError("a layer that is run on one row gives another number of rows")
    return torch.stack([(said[at][0] * other).sum() for at, other in zip(call.places, outer, strict=True)]).sum()


class _Forward(nn.Module):
    """Runs a layer without its hooks: what the tape has went through them already."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer.forward(*args, **kwargs)


def _widened(leaf: Tensor) -> Tensor:
    """Half precision of autocast as float32, which the layer's own weights have."""
    return leaf.float() if leaf.dtype is torch.bfloat16 else leaf


def _moves(call: LayerCall, leaf: Any, rows: int) -> bool:
    """Whether an input has a row for each record; what has none must not hold several records at once."""
    if not isinstance(leaf, Tensor) or not leaf.dim():
        return False
    if leaf.shape[0] == rows:
        return True
    if rows in leaf.shape:
        raise _fallback_unusable(call)
    return False


def _or_zero(gradient: Tensor | None, output: Tensor) -> Tensor:
    return torch.zeros_like(output) if gradient is None else gradient


def _fallback_unusable(call: LayerCall) -> Refused:
    return Refused(
        f"the layer {call.name!r} ({type(call.module).__name__}) cannot be run row by row",
        reason="it has no rule of its own, so `torch.func` must be able to run it for one record: batch first in all "
        "inputs and outputs, no random numbers, nothing written in place, no branch on data",
        way_out="build it from Linear, Conv, Embedding and normalisation layers, or move the parameters that it owns "
        "directly into a small layer of their own",
    )
