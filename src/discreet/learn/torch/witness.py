"""Whether losses that come back are the loss of the model on the batch that was handed out, and nothing else.

What was tried on made-up rows is `loss(model(x), y)`. A loop that mixes rows on the way (mix-up, a batch mean, another
order, random changes from a seed that the world knows) would train on something that was never tried. So the model must
have been called with the batch as it is, and the losses must be, bit for bit, what the given loss makes of its output.
"""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.layers.watching import bits
from discreet.learn.torch.losses import RowLosses, as_pair
from discreet.learn.torch.trees import Tree, leaves

__all__ = ["Witness"]


@final
class Witness:
    """Remembers the batch at hand, what the model was called with since, and what it said."""

    def __init__(self, losses: RowLosses) -> None:
        self._losses = losses
        self._batch: Tree = ()
        self._versions: list[int] = []
        self._calls: list[tuple[list[Tensor], Any]] = []
        self._vouched: Tensor | None = None
        self._hook = losses.model.register_forward_hook(self._see, with_kwargs=True)

    def expect(self, batch: Tree) -> None:
        """Forget what was; wait for the losses of this batch."""
        self._batch, self._versions = batch, _versions(batch)
        self._calls, self._vouched = [], None

    def compute(self, batch: Tree) -> Tensor:
        """Compute the losses of a batch, or of views of it, and vouch for them if it is the batch at hand."""
        found = self._losses.of(batch)
        if _same(leaves(batch), leaves(self._batch)):
            self._vouched = found
        return found

    def check(self, losses: Tensor) -> None:
        """Refuse losses of anything else than the batch at hand; then let go of what was seen."""
        self._check(losses)
        self._calls, self._vouched = [], None

    def _check(self, losses: Tensor) -> None:
        if self._versions != _versions(self._batch):
            raise _refused("the batch was changed in place")
        if losses is self._vouched:
            return
        if self._losses.augment is not None:
            raise _refused("these losses are not of views of the batch", "private.step(private.losses(batch))")
        x, y = as_pair(self._batch)
        said = [output for seen, output in self._calls if _same(seen, leaves(x))]
        if not said:
            raise _refused("the model was not called with the batch as it was handed out")
        if not any(_same([losses], [self._again(output, y)]) for output in said):
            raise _refused("these losses are not what the loss given to make_private makes of the model's output")

    def close(self) -> None:
        """Take the hook off the model."""
        self._hook.remove()
        self.expect(())

    def _see(self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if torch.is_grad_enabled():
            self._calls.append(([leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)], output))

    @torch.no_grad()
    def _again(self, output: Any, y: Tree) -> object:
        return self._losses.loss(output, y)


def _versions(batch: Tree) -> list[int]:
    return [leaf._version for leaf in leaves(batch) if isinstance(leaf, Tensor)]


def _same(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists hold the same tensors, bit for bit."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: object, other: object) -> bool:
    if one is other:
        return True
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    return one.dtype == other.dtype and torch.equal(bits(one[None]), bits(other[None]))


def _refused(problem: str, instead: str = "private.step(loss(model(x), y))") -> Refused:
    return Refused(
        problem,
        reason="only loss(model(x), y) on the rows of the batch as they are was tried and keeps rows apart",
        way_out=f"write {instead} with the loss given to make_private; put what prepares a row into the data set or "
        "the model, what varies it into augment=…, and what weighs it into the loss",
    )
