"""Record what the layers of a model saw and said during a forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, final

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList, is_parametrized
from torch.utils._pytree import tree_flatten, tree_map_only

from discreet.errors import Refused

__all__ = [
    "LayerCall",
    "RowCopies",
    "RunHook",
    "Tape",
    "all_modules",
    "autocast_now",
    "one_row_each",
    "owned",
    "shared_by_rows",
    "tensors",
]


@final
class RunHook:
    """A hook of a run on its model. It holds rows of the batch, so it is never written with the model.

    A deep copy of the model shares it, instead of a copy of those rows; it sees nothing there. In a model that is
    pickled or saved whole, something that does nothing stands in its place.
    """

    def __init__(self, see: Callable[..., Any]) -> None:
        self._see = see

    def __call__(self, *seen: Any) -> Any:
        return self._see(*seen)

    def __deepcopy__(self, memo: object) -> RunHook:
        return self

    @property
    def __name__(self) -> NoReturn:
        """torch.jit.script compiles hooks by their names; this one must not be compiled into a model."""
        raise Refused(
            "a model that a private run is training cannot be compiled",
            reason="the run's hooks on it hold rows of the batch",
            way_out="do it after the last step, or after private.close()",
        )

    def __reduce__(self) -> tuple[type[_NoHook], tuple[()]]:
        return _NoHook, ()


@final
class _NoHook:
    """What is left of a hook of a run in a model that was saved."""

    def __call__(self, *_: object) -> None:
        """Do nothing."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LayerCall:
    """One call of a layer that owns trainable parameters: what went in and what came out."""

    name: str  # of the layer in the model
    module: nn.Module
    trained: Mapping[str, nn.Parameter]  # the layer's own, by their names in it
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: tuple[Tensor, ...]  # those that carry a gradient
    places: tuple[int, ...]  # of these among all that came out
    versions: tuple[tuple[Tensor, int], ...]  # of all that went in and came out: how often each was written to
    copied: bool = False  # No layer ran: what came out are copies of a parameter, one for each row.

    @property
    def input(self) -> Tensor:
        """The first input, for layers that have one."""
        first: Tensor = self.args[0] if self.args else next(iter(self.kwargs.values()))
        return first

    def check_unchanged(self) -> None:
        """Refuse if something wrote into an input or an output after the layer was called."""
        if any(tensor._version != version for tensor, version in self.versions):
            raise Refused(
                f"input or output of the layer {self.name!r} ({type(self.module).__name__}) was changed in place later",
                reason="its gradient can no longer be told from what the layer computed",
                way_out="use inplace=False in the layer that follows, and x = x + y instead of x += y",
            )

    def check_rows(self, rows: int, gradients: tuple[Tensor | None, ...]) -> None:
        """Refuse a layer whose output has not one row for each record."""
        if any(gradient is not None and (not gradient.dim() or len(gradient) != rows) for gradient in gradients):
            raise Refused(
                f"the layer {self.name!r} ({type(self.module).__name__}) has an output without {rows} rows",
                reason="a gradient that several records share cannot be clipped for each of them",
                way_out="put the batch first, and give the layer an input for each record: "
                "positions(torch.arange(n).expand(len(x), n))",
            )


@final
class Tape:
    """Calls of all layers that own trainable parameters, in order, while gradients are on."""

    def __init__(self, model: nn.Module, rows: int) -> None:
        self.calls: list[LayerCall] = []
        self._model, self._rows = model, rows
        self._paused = False
        self._autocast, self._kernels = autocast_now(), _kernels_now()
        # First of all hooks: a hook of the user's may return something else than the layer computed.
        self._handles = [
            module.register_forward_hook(RunHook(self._hook(name, module, trained)), with_kwargs=True, prepend=True)
            for name, module in model.named_modules()
            if (trained := _of_the_layer(module))
        ]
        self._handles.append(model.register_forward_pre_hook(RunHook(self._begin), prepend=True))
        self._copies = [
            RowCopies(module, rows, self._copier(name, module))
            for name, module in model.named_modules()
            if shared_by_rows(module)
        ]

    def clear(self) -> None:
        """Forget all calls."""
        self.calls = []

    def close(self) -> None:
        """Take the hooks off the model."""
        for handle in self._handles:
            handle.remove()
        for copies in self._copies:
            copies.close()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing: for layers that are run again."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def _hook(self, name: str, hooked: nn.Module, trained: dict[str, nn.Parameter]) -> Any:
        def record(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
            # A deep copy of the model has this hook too, and other parameters.
            if self._paused or not torch.is_grad_enabled() or module is not hooked:
                return output
            self._check_autocast()
            args, kwargs = _detached(args, kwargs)
            if (spread := one_row_each(module, output, self._rows)) is not output:
                args, kwargs = _spread((args, kwargs), self._rows)
                output = spread
            self._append(name, module, trained, args, kwargs, output)
            return output

        return record

    def _copier(self, layer: str, module: nn.Module) -> Callable[[str, Tensor], Tensor]:
        def record(name: str, copies: Tensor) -> Tensor:
            if not self._paused:
                own, versions = {name: owned(module)[name]}, ((copies, copies._version),)
                call = LayerCall(f"{layer}.{name}", module, own, (), {}, (copies,), (0,), versions, copied=True)
                self.calls.append(call)
            return copies

        return record

    def _check_autocast(self) -> None:
        if autocast_now() != self._autocast:
            raise Refused(
                "the model runs under torch.autocast now, and did not when it was made private, or the other way round",
                reason="whether rows stay apart bit for bit was tried on other kernels",
                way_out="make it private and train it alike: both under autocast or neither",
            )

    def _begin(self, model: nn.Module, _args: tuple[Any, ...]) -> None:
        """Look at what is switched on around the model; what it switches itself, it switched when it was tried."""
        if self._paused or not torch.is_grad_enabled() or model is not self._model:
            return
        if _kernels_now() != self._kernels:
            raise Refused(
                "torch computes with other kernels than when the model was made private",
                reason="oneDNN, a way to compute attention, or deterministic algorithms were switched on or off, and "
                "whether rows stay apart bit for bit was tried without that",
                way_out="set torch.backends, sdpa_kernel and use_deterministic_algorithms before make_private",
            )

    def _append(self, name: str, module: nn.Module, trained: Any, args: Any, kwargs: Any, output: Any) -> None:
        leaves = [output] if isinstance(output, Tensor) else tree_flatten(output)[0]
        places = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad)
        if places:
            outputs = tuple(leaves[place] for place in places)
            entered = args if not kwargs and _are_tensors(args) else tensors((args, kwargs))
            versions = tuple((tensor, tensor._version) for tensor in (*entered, *outputs))
            self.calls.append(LayerCall(name, module, trained, args, kwargs, outputs, places, versions))


def autocast_now() -> torch.dtype | None:
    """Return in what floats layers compute under torch.autocast, or nothing where it is off."""
    kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    if kind not in (None, torch.bfloat16):
        raise Refused(
            f"torch.autocast is set to {kind}",
            reason="beside float32, layers were tried in bfloat16 only",
            way_out='use torch.autocast("cpu", dtype=torch.bfloat16), or none',
        )
    return kind


def _kernels_now() -> tuple[bool, ...]:
    """What is switched on that decides, beside shapes and types, which kernels run; attention on the CPU asks these."""
    attention: Any = torch.backends.cuda
    ways = attention.flash_sdp_enabled(), attention.math_sdp_enabled()
    return (*ways, bool(torch.backends.mkldnn.enabled), torch.are_deterministic_algorithms_enabled())


def all_modules(model: nn.Module) -> list[nn.Module]:
    """List a model and all that it is made of, each once: what `modules()` lists, in a quarter of the time."""
    found, seen = [model], {id(model)}
    for module in found:  # It grows meanwhile.
        for child in module._modules.values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                found.append(child)
    return found


def owned(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trainable parameters that a module owns itself, not through its children.

    What a parametrisation (weight norm, say) is made of belongs to the layer that it serves: it never sees a record.
    Neither do lists and dictionaries of parameters, which belong to the module that holds them.
    """
    if isinstance(module, ParametrizationList | nn.ParameterList | nn.ParameterDict):
        return {}
    own = dict(module.named_parameters(recurse=False, remove_duplicate=False))
    if is_parametrized(module):
        inner = module.parametrizations.named_parameters(prefix="parametrizations", remove_duplicate=False)  # type: ignore[union-attr]
        own.update(inner)
    for name, child in module.named_children():
        if isinstance(child, nn.ParameterList | nn.ParameterDict):
            own.update(child.named_parameters(prefix=name, remove_duplicate=False))
    return {name: value for name, value in own.items() if value.requires_grad}


def _detached(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Cut inputs off the graph; most layers have tensors only, which is quicker than a walk through nested ones."""
    if not kwargs and _are_tensors(args):
        return tuple(each.detach() for each in args), kwargs
    cut: tuple[tuple[Any, ...], dict[str, Any]] = tree_map_only(Tensor, Tensor.detach, (args, kwargs))
    return cut


def _are_tensors(args: tuple[Any, ...]) -> bool:
    return all(isinstance(each, Tensor) for each in args)


def tensors(tree: Any) -> list[Tensor]:
    """Return all tensors of nested inputs or outputs, in order."""
    leaves, _ = tree_flatten(tree)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def one_row_each(module: nn.Module, output: Any, rows: int) -> Any:
    """Give every row its own copy of an embedding that was looked up once for all (positions, say).

    The gradient of one shared copy is a sum over rows, and no row's part can be told from it.
    """
    if not isinstance(module, nn.Embedding) or output.shape[0] != 1 or rows == 1:
        return output
    return _spread(output, rows)


def _spread(tree: Any, rows: int) -> Any:
    return tree_map_only(Tensor, lambda leaf: leaf.expand(rows, *leaf.shape[1:]), tree)


def shared_by_rows(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return trainable parameters of (1, ..., ...) that a module of somebody's own uses for all rows of a batch.

    Class tokens and positions are such. Weights of torch's layers, and of layers derived from these, are not.
    """
    homes = (kind.__module__ for kind in type(module).__mro__ if kind not in (nn.Module, object))
    if is_parametrized(module) or hasattr(module, "gives_copies") or any(home.startswith("torch.") for home in homes):
        return {}
    own = module.named_parameters(recurse=False, remove_duplicate=False)
    return {name: value for name, value in own if value.requires_grad and value.dim() >= 3 and len(value) == 1}


def _of_the_layer(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return what a layer owns and uses by itself: all but what is copied for each row."""
    copied = shared_by_rows(module)
    return {name: value for name, value in owned(module).items() if name not in copied}


@final
class RowCopies:
    """While a module runs, its parameters of (1, ..., ...) look like one copy for each row of the batch.

    Where such a parameter is broadcast against the batch, which is what it is made for, nothing else changes, and each
    row has a gradient of its own. An attribute hides the parameter meanwhile; the parameter itself stays where it is.
    """

    def __init__(self, module: nn.Module, rows: int, record: Callable[[str, Tensor], Tensor]) -> None:
        self._module, self._rows, self._record = module, rows, record
        self._handles = [
            module.register_forward_pre_hook(RunHook(self._show), with_kwargs=True),
            module.register_forward_hook(RunHook(self._hide), prepend=True, always_call=True),
        ]

    def close(self) -> None:
        """Take the hooks off the module."""
        self._hide(self._module)
        for handle in self._handles:
            handle.remove()

    def _show(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._hide(module)  # What an interrupted pass may have left.
        given = tensors((args, kwargs))
        if module is not self._module or not torch.is_grad_enabled() or not given or given[0].dim() == 0:
            return
        if len(given[0]) == self._rows:  # Not where the user tries the model on a few rows.
            for name, value in shared_by_rows(module).items():
                copies = value.expand(self._rows, *value.shape[1:])
                module.__dict__[name] = self._record(name, copies)

    def _hide(self, module: nn.Module, *_: object) -> None:
        for name in shared_by_rows(self._module):
            module.__dict__.pop(name, None)
