"""Replace what mixes rows or computes its weight by layers that can be trained privately."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrize, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from discreet.learn.torch.layers.troubles import groups_for, keeps_buffers

__all__ = ["fix"]


def fix(model: nn.Module) -> tuple[str, ...]:
    """Mend in place what can be mended without asking, and return what was done, line by line.

    BatchNorm becomes GroupNorm with the same weight and bias (the very same parameters); InstanceNorm forgets its
    running statistics; spectral_norm and its kin are removed and leave the weight they last computed, which is a *new*
    parameter: build the optimizer after that. The model computes something else than before, so fix it before training,
    not after.
    """
    return (*_norms(model), *_instance_norms(model), *_parametrisations(model))


def _norms(model: nn.Module) -> Iterator[str]:
    made: dict[int, nn.GroupNorm] = {}
    for path, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            if not isinstance(child, _BatchNorm) or isinstance(child, LazyModuleMixin):
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
