"""One run of a model and its loss on made-up rows, with everything that its layers saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map_only

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.clipping.tape import RowCopies, one_row_each, owned, shared_by_rows
from discreet.learn.torch.layers.secret_draws import SecretDropout, SecretFunctions, SecretNormal, known_masks

__all__ = [
    "KINDS",
    "Loss",
    "MadeUp",
    "WatchedCall",
    "WatchedRun",
    "bits",
    "call_model",
    "losses_of",
    "mapped",
    "said_once",
    "tensors",
    "watch",
    "watch_loss",
]

# --- made_up: Made-up rows with the shape and type of an example: no value of a private row is looked at. ---


Tree = Any  # A tensor, or a tuple, list or dict of trees.


def mapped(change: Callable[..., Tensor], *trees: Tree) -> Tree:
    """The same tree with each tensor changed; several trees of one form go side by side."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: mapped(change, *(tree[key] for tree in trees)) for key in first}
    if isinstance(first, tuple | list):
        return tuple(mapped(change, *parts) for parts in zip(*trees, strict=True))
    return change(*trees)


def tensors(tree: Tree) -> list[Tensor]:
    """All tensors of a tree, in order."""
    found: list[Tensor] = []
    mapped(lambda leaf: found.append(leaf) or leaf, tree)  # type: ignore[func-returns-value]
    return found


@final
@dataclass(frozen=True, slots=True)
class MadeUp:
    """Rows like an example: floats between 0 and 1, whole numbers 0 or 1; or drawn from public rows."""

    example: Tree
    public: Tree | None = None

    def rows(self, count: int) -> Tree:
        if self.public is None:
            return mapped(lambda leaf: _drawn(torch.as_tensor(leaf), count), self.example)
        sizes = {len(leaf) for leaf in tensors(self.public)}
        if len(sizes) != 1 or min(sizes) < 2:
            raise InvalidParameter("public rows must be a batch of at least two rows, the same number in each part")
        chosen = torch.from_numpy(noise.uniform(min(sizes), count))
        return mapped(lambda leaf: leaf[chosen].clone(), self.public)

    def others(self, count: int, kind: int) -> Tree:
        """Companions: made-up ones, zeros as padding is, large ones, not-a-number, and very large negative ones."""
        return mapped(_CHANGES[kind % KINDS], self.rows(count))

    def alike(self, rows: Tree, *, highest: bool) -> Tree:
        """The same rows with all whole numbers as high, or as low, as they come: a mask that hides nothing, or all."""
        return mapped(
            lambda leaf, known: leaf if leaf.is_floating_point() else _end(known, highest, leaf), rows, self.public
        )


def _drawn(leaf: Tensor, count: int) -> Tensor:
    shape = (count, *leaf.shape)
    if not leaf.is_floating_point():
        return torch.from_numpy(noise.uniform(2, prod(shape))).reshape(shape).to(leaf)
    steps = torch.from_numpy(noise.uniform(1 << 23, prod(shape))).reshape(shape)
    return ((steps + 0.5) / (1 << 23)).to(leaf)


def _end(known: Tensor, highest: bool, like: Tensor) -> Tensor:
    found: Tensor = known.amax(0) if highest else known.amin(0)
    return found.to(like.dtype).expand_as(like).clone()


def _large(leaf: Tensor) -> Tensor:
    return leaf * 1e4 if leaf.is_floating_point() else leaf


def _hugely_negative(leaf: Tensor) -> Tensor:
    return leaf * -1e30 if leaf.is_floating_point() else leaf


def _not_a_number(leaf: Tensor) -> Tensor:
    return torch.full_like(leaf, float("nan")) if leaf.is_floating_point() else leaf


_CHANGES: tuple[Callable[[Tensor], Tensor], ...] = (
    torch.clone,
    torch.zeros_like,
    _large,
    _not_a_number,
    _hugely_negative,
)
KINDS = len(_CHANGES)


Loss = Callable[[Any, Any], Tensor]


@final
@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A layer ran: where it is, the tensors it took, the tensor it gave, and how often that had been written to."""

    path: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    version: int


@final
@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The losses of all rows, the calls of all layers in their order, and the gradient of each output."""

    batch: Tree
    losses: Tensor
    calls: tuple[WatchedCall, ...]
    gradients: tuple[Tensor | None, ...]

    def seen(self) -> Iterator[tuple[str, str, Tensor]]:
        """Everything that must depend on its own row only: layer, what it is, and the tensor, in the order of work."""
        for call in self.calls:
            yield from ((call.path, "what goes into it", part) for part in call.inputs)
            yield call.path, "what comes out of it", call.output
        yield "the loss", "its value", self.losses
        for call, gradient in zip(reversed(self.calls), reversed(self.gradients), strict=True):
            if gradient is not None:
                yield call.path, "the gradient of what comes out of it", gradient


def watch(
    model: nn.Module, loss: Loss, batch: Tree, masks: Tensor, *, copied: bool = True, blank: Tensor | None = None
) -> WatchedRun:
    """Run forward and loss; refuse what draws from torch's generator. Gradients are those of the sum of the losses.

    Where dropout would draw a mask for a row, the row is multiplied by the number that `masks` has for its slot; where
    noise would be drawn, each row gets the same numbers times that one. What all rows share is `copied` for each row,
    as it is when the model is trained. In slots that are `blank` copies, and what layers make of whole numbers, are
    not a number: times a weight that is zero, too.
    """
    with _recorded(model, len(masks), copied, blank) as calls, torch.enable_grad(), known_masks(masks), _no_chance():
        x, y = batch
        losses = loss(call_model(model, x), y)
        _require_tensor(losses)
        ran = tuple(calls)  # A checkpointed part runs again in the backward pass; that is no other call.
        gradients = _gradients(losses, ran)
    return WatchedRun(batch, losses, ran, gradients)


def losses_of(model: nn.Module, loss: Loss, batch: Tree, rows: int) -> Tensor:
    """Run forward and loss, with gradients on as in training, and no backward pass."""
    with closing(SecretFunctions(model)), torch.enable_grad(), known_masks(torch.ones(rows)), _no_chance():
        x, y = batch
        return loss(call_model(model, x), y)


def said_once(model: nn.Module, x: Tree, rows: int) -> Any:
    """What the model says, cut off: losses of other targets need no other run of it."""
    with closing(SecretFunctions(model)), torch.enable_grad(), known_masks(torch.ones(rows)), _no_chance():
        said = call_model(model, x)
    return tree_map_only(
        Tensor, lambda leaf: leaf.detach().requires_grad_() if leaf.is_floating_point() else leaf, said
    )


def watch_loss(loss: Loss, said: Any, batch: Tree) -> WatchedRun:
    """Run the loss only; gradients are those of what the model said."""
    with torch.enable_grad(), _no_chance():
        losses = loss(said, batch[1])
        calls = tuple(
            WatchedCall("the loss", (), leaf, leaf._version)
            for leaf in tree_flatten(said)[0]
            if isinstance(leaf, Tensor) and leaf.requires_grad
        )
        return WatchedRun(batch, losses, calls, _gradients(losses, calls))


def call_model(model: nn.Module, x: Tree) -> Any:
    """As a training loop calls it: a tuple gives several arguments, a dict named ones."""
    if isinstance(x, dict):
        return model(**x)
    return model(*x) if isinstance(x, tuple) else model(x)


def bits(values: Tensor) -> Tensor:
    """The bytes of each row, so that zeros differ by their sign and not-a-number equals itself."""
    rows = values.detach().contiguous()
    return rows.reshape(len(rows), -1).view(torch.uint8) if rows.numel() else rows.new_zeros(len(rows), 0)


def _require_tensor(losses: object) -> None:
    if not isinstance(losses, Tensor) or not losses.is_floating_point():
        raise Refused(
            f"the loss gave a {type(losses).__name__}" if not isinstance(losses, Tensor) else "the loss gave no floats",
            reason="it must give one number for each row of the batch",
            way_out="return a float tensor of shape (batch,), for example cross_entropy(output, y, reduction='none')",
        )


def _gradients(losses: Tensor, calls: tuple[WatchedCall, ...]) -> tuple[Tensor | None, ...]:
    outputs = [call.output for call in calls]
    wanted = [output for output in outputs if output.requires_grad]
    if not losses.requires_grad or not wanted:
        return (None,) * len(outputs)
    with torch.autocast("cpu", enabled=False):  # As where rows are clipped.
        found = iter(torch.autograd.grad(losses.sum(), wanted, allow_unused=True, retain_graph=True))
    return tuple(next(found) if output.requires_grad else None for output in outputs)


@contextmanager
def _recorded(model: nn.Module, rows: int, copied: bool, blank: Tensor | None) -> Iterator[list[WatchedCall]]:
    calls: list[WatchedCall] = []
    with ExitStack() as hooks:
        hooks.callback(SecretFunctions(model).close)
        for path, module in model.named_modules():
            where = path or "the model"
            if owned(module) or isinstance(module, SecretDropout | SecretNormal):
                recorder = _recorder(where, calls, rows if copied else 1, blank)
                hooks.callback(module.register_forward_hook(recorder, with_kwargs=True, prepend=True).remove)
            if copied and shared_by_rows(module):
                hooks.callback(RowCopies(module, rows, _copier(where, calls, blank)).close)
        yield calls


def _recorder(path: str, calls: list[WatchedCall], rows: int, blank: Tensor | None) -> Callable[..., Any]:
    def record(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
        inputs = tuple(part for part in _tensors((given, named)))
        output = one_row_each(module, output, rows)
        if not any(part.is_floating_point() for part in inputs):
            output = tree_map_only(Tensor, lambda part: _blanked(part, blank), output)
        calls.extend(WatchedCall(path, inputs, part, part._version) for part in _tensors(output))
        return output

    return record


def _copier(path: str, calls: list[WatchedCall], blank: Tensor | None) -> Callable[[str, Tensor], Tensor]:
    def record(name: str, copies: Tensor) -> Tensor:
        shown = _blanked(copies, blank)
        calls.append(WatchedCall(f"{path}.{name}", (), shown, shown._version))
        return shown

    return record


def _blanked(values: Tensor, blank: Tensor | None) -> Tensor:
    """Not a number in the slots that are blank."""
    if blank is None or not values.is_floating_point() or values.dim() == 0 or len(values) != len(blank):
        return values
    return values.masked_fill(blank.reshape(-1, *(1,) * (values.dim() - 1)), float("nan"))


def _tensors(tree: Any) -> list[Tensor]:
    """Tensors only: layers also take flags, sizes and nothing at all."""
    if isinstance(tree, dict):
        return [found for part in tree.values() for found in _tensors(part)]
    if isinstance(tree, tuple | list):
        return [found for part in tree for found in _tensors(part)]
    return [tree] if isinstance(tree, Tensor) else []


@contextmanager
def _no_chance() -> Iterator[None]:
    """Refuse whatever draws from torch's generator: it leaves the generator in another state."""
    before = torch.get_rng_state()
    yield
    if not torch.equal(before, torch.get_rng_state()):
        torch.set_rng_state(before)
        raise Refused(
            "the model or its loss draws random numbers from torch",
            reason="torch's generator starts from a number that everybody knows, and what it gives depends on the "
            "place of a row in the batch",
            way_out="use nn.Dropout, functional.dropout or attention with dropout_p, which get secret masks; draw "
            "normal numbers by discreet.learn.torch.layers.SecretNormal, and nothing else in forward",
        )
