"""Make a model ready for private training: what hides its parameters is rebuilt, what mixes rows is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrize, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from discreet.errors import Refused
from discreet.learn.torch.layers.attention import Attention
from discreet.learn.torch.layers.layer_report import (
    DROPOUTS,
    FUSED,
    LayerReport,
    groups_for,
    is_frozen_norm,
    keeps_buffers,
)
from discreet.learn.torch.layers.recurrent import Recurrent, RecurrentCell
from discreet.learn.torch.layers.secret_draws import SecretDropout

__all__ = ["PreparedModel", "fix", "prepare"]

_STACKS = (
    nn.Transformer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
)
# Arguments of the stacks that have a batch; masks of (time, time) and padding masks (batch, time) keep their shape.
_BATCHED = ("src", "tgt", "memory")


@final
@dataclass(frozen=True, slots=True)
class PreparedModel:
    """The model that was passed, ready; what was changed in it; and the table of its layers as they were."""

    model: nn.Module
    changes: tuple[str, ...]
    report: LayerReport

    def __str__(self) -> str:
        changed = [f"- {change}" for change in self.changes] or ["- nothing"]
        return "\n".join([str(self.report), "", "Changed in the model:", *changed])

    __repr__ = __str__


def prepare(model: nn.Module) -> PreparedModel:
    """Change `model` in place so that each parameter's use is seen, or refuse it with the way out for each layer.

    All parameters stay the very same objects, so an optimizer that was built before stays right, and `state_dict` keeps
    its keys and shapes. Where a layer is refused, nothing at all is changed.
    """
    report = LayerReport.of(model)
    report.require()
    _require_trained(model)
    _require_inside(model)
    changes = [*_inplace_off(model), *_batch_first(model), *_replace(model)]
    return PreparedModel(model, tuple(changes), report)


def _require_trained(model: nn.Module) -> None:
    if not any(p.requires_grad for p in model.parameters()):
        raise Refused(
            "the model has no parameters to train",
            reason="none has requires_grad=True",
            way_out="call requires_grad_() on the layers that should learn",
        )


def _require_inside(model: nn.Module) -> None:
    if type(model) in FUSED:
        raise Refused(
            f"the model itself is a {type(model).__name__}",
            reason="it must be replaced, which can be done only where it is part of another module",
            way_out="hold it in a module of your own whose forward returns what the loss takes",
        )


def _inplace_off(model: nn.Module) -> Iterator[str]:
    """What is overwritten in place is no longer what a layer gave, and its gradient would be another one."""
    for path, module in model.named_modules():
        if getattr(module, "inplace", False) is True:
            module.inplace = False
            yield f"{path or 'the model'}: inplace=False"


def _batch_first(model: nn.Module) -> Iterator[str]:
    """The first dimension must be the batch inside of transformers too; the outermost turns its arguments round."""
    turned: list[str] = []
    for path, module in model.named_modules():
        if isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False
        if any(path.startswith(f"{outer}.") for outer in turned) or not _time_first(module):
            continue
        turned.append(path)
        module.register_forward_pre_hook(_turn_arguments, with_kwargs=True)
        module.register_forward_hook(_turn_back)
        for inner in module.modules():
            if isinstance(inner, nn.MultiheadAttention | nn.Transformer):
                inner.batch_first = True
        yield f"{path or 'the model'}: batch first inside; what it takes and gives stays time first"


def _time_first(module: nn.Module) -> bool:
    if not isinstance(module, _STACKS):
        return False
    return not all(part.batch_first for part in module.modules() if isinstance(part, nn.MultiheadAttention))


def _turn_arguments(
    module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    count = 1 if isinstance(module, nn.TransformerEncoder | nn.TransformerEncoderLayer) else 2
    turned = tuple(_turned(part) if place < count else part for place, part in enumerate(given))
    return turned, {name: _turned(part) if name in _BATCHED else part for name, part in named.items()}


def _turn_back(_module: nn.Module, _given: tuple[Any, ...], output: Tensor) -> Tensor:
    return output.transpose(0, 1)


def _turned(part: Any) -> Any:
    if not isinstance(part, Tensor) or part.dim() != 3:
        raise Refused(
            "a transformer got something else than a tensor of (time, batch, features)",
            reason="each example must have its own place in the batch",
            way_out="call the model with a batch of examples",
        )
    return part.transpose(0, 1)


def _replace(model: nn.Module) -> Iterator[str]:
    """Each fused layer by one from Linear cells, each dropout by a secret one; what sits in two places stays one."""
    made: dict[int, nn.Module] = {}
    for path, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            if type(child) not in (*FUSED, *DROPOUTS):
                continue
            if id(child) not in made:
                made[id(child)] = _maker(child)(child)
            setattr(parent, name, made[id(child)])
            how = "draws its masks from the secure source" if type(child) in DROPOUTS else "built from Linear cells"
            yield f"{f'{path}.' if path else ''}{name}: {type(child).__name__} {how}"


def _maker(module: nn.Module) -> Callable[[Any], nn.Module]:
    if isinstance(module, nn.MultiheadAttention):
        return Attention
    if type(module) in DROPOUTS:
        return SecretDropout
    return Recurrent if isinstance(module, nn.RNNBase) else RecurrentCell


# --- fixing: Replace what mixes rows or computes its weight by layers that can be trained privately. ---


def fix(model: nn.Module) -> tuple[str, ...]:
    """Mend in place what can be mended without asking, and return what was done, line by line.

    BatchNorm becomes GroupNorm with the same weight and bias (the very same parameters), unless it is frozen and in
    evaluation mode, where it treats each row alike; InstanceNorm forgets its
    running statistics; spectral_norm and its kin are removed and leave the weight they last computed, which is a *new*
    parameter: build the optimizer after that. The model computes something else than before, so fix it before training,
    not after.
    """
    return (*_norms(model), *_instance_norms(model), *_parametrisations(model))


def _norms(model: nn.Module) -> Iterator[str]:
    made: dict[int, nn.GroupNorm] = {}
    for path, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            if not isinstance(child, _BatchNorm) or isinstance(child, LazyModuleMixin) or is_frozen_norm(child):
                continue
            new = made.setdefault(id(child), _group_norm(child))
            setattr(parent, name, new)
            where = f"{path}.{name}" if path else name
            yield f"{where}: {type(child).__name__} -> GroupNorm({new.num_groups}, {new.num_channels})"


def _group_norm(old: _BatchNorm) -> nn.GroupNorm:
    new = nn.GroupNorm(groups_for(old.num_features), old.num_features, eps=old.eps, affine=False)
    new.affine = old.affine
    new.register_parameter("weight", old.weight if old.affine else None)
    new.register_parameter("bias", old.bias if old.affine else None)
    return new.train(old.training)


def _instance_norms(model: nn.Module) -> Iterator[str]:
    for path, module in model.named_modules():
        if isinstance(module, _InstanceNorm) and module.track_running_stats:
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                module.register_buffer(name, None)
            yield f"{path or 'the model'}: track_running_stats=False"


def _parametrisations(model: nn.Module) -> Iterator[str]:
    for path, module in list(model.named_modules()):
        where = path or "the model"
        if keeps_buffers(module):
            for name in list(module.parametrizations):
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
                yield f"{where}.{name}: parametrisation removed; build the optimizer after this"
        yield from _old_hooks(module, where)


def _old_hooks(module: nn.Module, where: str) -> Iterator[str]:
    for hook in list(module._forward_pre_hooks.values()):
        if isinstance(hook, WeightNorm | SpectralNorm):
            remove = remove_weight_norm if isinstance(hook, WeightNorm) else remove_spectral_norm
            remove(module, hook.name)
            yield f"{where}.{hook.name}: {type(hook).__name__} removed; build the optimizer after this"
