"""Layers that cannot be trained privately, known by their type: why, and what to do instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal, final

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from discreet.errors import Refused
from discreet.learn.torch.clipping.layer_rules import has_rule
from discreet.learn.torch.clipping.tape import owned, shared_by_rows

__all__ = [
    "DROPOUTS",
    "FUSED",
    "Handling",
    "Layer",
    "LayerReport",
    "LayerTrouble",
    "groups_for",
    "is_frozen_norm",
    "keeps_buffers",
    "trouble_of",
]

# --- report: What each layer of a model is, how it is handled, and how to fix what is refused. ---


Handling = Literal["book-keeping", "fallback", "replaced", "changed", "frozen", "refused"]

_MEANING: dict[Handling, str] = {
    "book-keeping": "one backward pass, norms from inputs and output gradients",
    "fallback": "gradients of each row by torch.func: right for any layer, slower",
    "replaced": "built from Linear cells: same parameters, same state_dict",
    "changed": "no parameters; see the note",
    "frozen": "not trained",
    "refused": "",
}


@final
@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: where it is, its type, how many parameters it has, how it is handled and what to know about that."""

    path: str
    kind: str
    parameters: int
    handling: Handling
    note: str
    way_out: str = ""


@final
@dataclass(frozen=True, slots=True)
class LayerReport:
    """A table of all layers that have parameters, are changed or are refused. It prints; `to_json` is for machines."""

    layers: tuple[Layer, ...]

    @classmethod
    def of(cls, model: nn.Module) -> LayerReport:
        """Look at the types of all layers. No example is needed and nothing is changed."""
        return cls(tuple(_rows(model)))

    @property
    def refused(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.layers if layer.handling == "refused")

    def require(self) -> None:
        """Refuse if a layer is refused; all of them are named at once."""
        if not self.refused:
            return
        places = [f"{layer.path}: {layer.kind}" for layer in self.refused]
        raise Refused(
            f"{_counted(len(places), 'layer')} cannot be trained privately: {'; '.join(places)}",
            reason="; ".join(f"{layer.path}: {layer.note}" for layer in self.refused),
            way_out="; ".join(f"{layer.path}: {layer.way_out}" for layer in self.refused),
        )

    def to_json(self) -> str:
        return json.dumps({"layers": [asdict(layer) for layer in self.layers]}, indent=2)

    def __str__(self) -> str:
        heads = ("layer", "type", "parameters", "handled", "what to know")
        rows = [(row.path, row.kind, f"{row.parameters:,}", row.handling, _told(row)) for row in self.layers]
        widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(4)]
        return "\n".join(_line(row, widths) for row in [heads, *rows])

    __repr__ = __str__


def _told(layer: Layer) -> str:
    return f"{layer.note}; way out: {layer.way_out}" if layer.way_out else layer.note


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    path, kind, count, handling, note = row
    cells = (path.ljust(widths[0]), kind.ljust(widths[1]), count.rjust(widths[2]), handling.ljust(widths[3]), note)
    return "  ".join(cells).rstrip()


def _rows(model: nn.Module) -> Iterator[Layer]:
    inside: list[str] = []  # A fused layer is one row: what it is made of is torch's affair.
    for path, module in model.named_modules():
        if any(path.startswith(f"{fused}.") for fused in inside):
            continue
        if isinstance(module, FUSED):
            inside.append(path)
        row = _row(path or "the model", module)
        if row is not None:
            yield row


def _row(path: str, module: nn.Module) -> Layer | None:
    trouble = trouble_of(module)
    own = _own(module)
    count = sum(p.numel() for p in own if not is_lazy(p))
    if trouble is not None:
        return Layer(path, type(module).__name__, count, "refused", trouble.reason, trouble.way_out)
    if own:
        handling = _handling(module, any(p.requires_grad for p in own))
        return Layer(path, type(module).__name__, count, handling, _MEANING[handling])
    note = _change(module)
    return None if note is None else Layer(path, type(module).__name__, 0, "changed", note)


def _own(module: nn.Module) -> list[nn.Parameter]:
    """What a layer is answerable for: its trained parameters as clipping sees them, and its frozen ones."""
    if isinstance(module, FUSED):
        return list(module.parameters())
    return [*owned(module).values(), *(p for p in module.parameters(recurse=False) if not p.requires_grad)]


def _change(module: nn.Module) -> str | None:
    if type(module) in DROPOUTS:
        return "masks from the secure source"
    return "in-place switched off" if getattr(module, "inplace", False) is True else None


def _handling(module: nn.Module, trained: bool) -> Handling:
    if isinstance(module, FUSED):
        return "replaced"
    if not trained:
        return "frozen"
    copied = owned(module).keys() <= shared_by_rows(module).keys()
    return "book-keeping" if copied or has_rule(module) else "fallback"


# One fused function hides what their weights are multiplied by; `prepare` builds them from Linear cells.
FUSED: tuple[type[nn.Module], ...] = (
    nn.MultiheadAttention,
    nn.LSTM,
    nn.GRU,
    nn.RNN,
    nn.LSTMCell,
    nn.GRUCell,
    nn.RNNCell,
)
# torch's generator is no secret; `prepare` lets them draw from the secure source.
DROPOUTS: tuple[type[nn.Module], ...] = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_WRAPPERS = (nn.DataParallel, nn.parallel.DistributedDataParallel)
_BY_FIX = "discreet.learn.torch.layers.fix(model) does it"


@final
@dataclass(frozen=True, slots=True)
class LayerTrouble:
    """Why a layer is refused, and the way out."""

    reason: str
    way_out: str


def trouble_of(module: nn.Module) -> LayerTrouble | None:
    """The first reason why this layer cannot be trained privately, or nothing."""
    return next((found for check in _CHECKS if (found := check(module)) is not None), None)


def groups_for(channels: int) -> int:
    """How many groups GroupNorm gets where BatchNorm was: four channels or more each, at most 32 groups."""
    return next(groups for groups in range(min(32, max(1, channels // 4)), 0, -1) if channels % groups == 0)


def _lazy(module: nn.Module) -> LayerTrouble | None:
    if not isinstance(module, LazyModuleMixin) or not module.has_uninitialized_params():
        return None
    return LayerTrouble(
        "it has no parameters yet", "call the model once on made-up rows of the right shape, then prepare it"
    )


def _batch_norm(module: nn.Module) -> LayerTrouble | None:
    if not isinstance(module, _BatchNorm) or is_frozen_norm(module):
        return None
    channels = module.num_features
    return LayerTrouble(
        "it mixes the rows of a batch: what one row gets depends on all others",
        f"replace {type(module).__name__}({channels}) by GroupNorm({groups_for(channels)}, {channels}): {_BY_FIX}; or, "
        "if its statistics are of public rows, freeze it: eval() and requires_grad_(False) on it",
    )


def is_frozen_norm(module: nn.Module) -> bool:
    """Whether a BatchNorm only applies statistics that it has, to each row alike, and neither they nor it learn."""
    if not isinstance(module, _BatchNorm) or module.training or module.running_mean is None:
        return False
    return not any(p.requires_grad for p in module.parameters())


def _running_instance_norm(module: nn.Module) -> LayerTrouble | None:
    if not isinstance(module, _InstanceNorm) or not module.track_running_stats:
        return None
    return LayerTrouble(
        "it keeps running statistics of the rows it saw, without noise",
        f"make it with track_running_stats=False: {_BY_FIX}",
    )


def keeps_buffers(module: nn.Module) -> bool:
    """Whether a parametrisation of this layer keeps something of its own, as spectral_norm does."""
    return parametrize.is_parametrized(module) and any(True for _ in module.parametrizations.buffers())  # type: ignore[union-attr]


def _parametrised(module: nn.Module) -> LayerTrouble | None:
    """A parametrisation without buffers goes through the fallback; one with buffers changes them while it runs."""
    old = any(isinstance(hook, WeightNorm | SpectralNorm) for hook in module._forward_pre_hooks.values())
    if not old and not keeps_buffers(module):
        return None
    return LayerTrouble(
        "its weight is computed before it runs, from what it keeps in buffers or by a hook (spectral_norm, old "
        "weight_norm)",
        f"remove the parametrisation: {_BY_FIX}; build the optimizer after that",
    )


def _embedding(module: nn.Module) -> LayerTrouble | None:
    if not isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return None
    if module.max_norm is not None:
        return LayerTrouble(
            "max_norm changes its rows while it runs, by which rows were looked up", "make it without max_norm"
        )
    if module.scale_grad_by_freq:
        return LayerTrouble(
            "scale_grad_by_freq divides by how often an index is in the whole batch",
            "make it with scale_grad_by_freq=False",
        )
    if module.sparse:
        return LayerTrouble("sparse gradients would show which rows were looked up", "make it with sparse=False")
    return None


def _routes_rows(module: nn.Module) -> LayerTrouble | None:
    if not isinstance(module, nn.AdaptiveLogSoftmaxWithLoss):
        return None
    return LayerTrouble(
        "it sends the rows of a batch to parts of different size, by their labels",
        "use a Linear layer and cross_entropy",
    )


def _own_fused(module: nn.Module) -> LayerTrouble | None:
    """A subclass of a fused layer may compute anything, and its kernel hides the parameters all the same."""
    fused = next((kind for kind in FUSED if isinstance(module, kind)), None)
    if fused is None or type(module) in FUSED:
        return None
    return LayerTrouble(
        f"it is a kind of {fused.__name__} of your own, whose fused kernel hides what its parameters do",
        f"hold a plain {fused.__name__} inside a module instead of deriving from it",
    )


def _hooked(module: nn.Module) -> LayerTrouble | None:
    if type(module) not in (*FUSED, *DROPOUTS) or not (
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
    ):
        return None
    return LayerTrouble("it is replaced, and hooks on it would be lost", "register hooks after prepare")


def _random(module: nn.Module) -> LayerTrouble | None:
    if not isinstance(
        module, nn.RReLU | nn.AlphaDropout | nn.FeatureAlphaDropout | nn.FractionalMaxPool2d | nn.FractionalMaxPool3d
    ):
        return None
    return LayerTrouble(
        "it draws random numbers from torch's generator, which is no secret",
        "use nn.Dropout, or a layer without chance",
    )


def _wrapped(module: nn.Module) -> LayerTrouble | None:
    if isinstance(module, torch.jit.ScriptModule):
        return LayerTrouble(
            "a scripted module does not tell what its layers see", "pass the module from before torch.jit"
        )
    if hasattr(module, "_orig_mod"):
        return LayerTrouble(
            "a compiled module does not tell what its layers see", "pass the model from before torch.compile"
        )
    if isinstance(module, _WRAPPERS):
        return LayerTrouble(
            "a batch that is spread over devices is summed without clipping", "pass the wrapped .module itself"
        )
    return None


def _quantised(module: nn.Module) -> LayerTrouble | None:
    names = (kind.__module__ for kind in type(module).__mro__)
    if not any(name.startswith(("torch.ao.", "torch.nn.quantized", "torch.nn.qat")) for name in names):
        return None
    return LayerTrouble("it is quantised, and such layers cannot be trained", "train first, quantise what was trained")


def _hooked_parameters(module: nn.Module) -> LayerTrouble | None:
    if not any(p._backward_hooks or p._post_accumulate_grad_hooks for p in module.parameters(recurse=False)):
        return None
    return LayerTrouble(
        "hooks on its parameters change or use gradients, and would never run: rows' gradients are not formed there",
        "remove them; what should be done with a noisy gradient belongs into the optimizer",
    )


def _numbers(module: nn.Module) -> LayerTrouble | None:
    own = [p for p in module.parameters(recurse=False) if p.requires_grad]
    if any(p.is_complex() for p in own):
        return LayerTrouble("it has complex parameters", "hold real and imaginary part as two real parameters")
    if any(p.layout is not torch.strided or p.is_meta for p in own):
        return LayerTrouble("its parameters are sparse or have no values yet", "make them ordinary tensors")
    return None


_CHECKS: tuple[Callable[[nn.Module], LayerTrouble | None], ...] = (
    _lazy,
    _wrapped,
    _quantised,
    _batch_norm,
    _running_instance_norm,
    _parametrised,
    _embedding,
    _routes_rows,
    _own_fused,
    _random,
    _hooked,
    _hooked_parameters,
    _numbers,
)
