"""What the probe finds wrong: where, why, and the way out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.layers.even_kernels import MODE
from discreet.learn.torch.layers.made_up import Tree, tensors
from discreet.learn.torch.layers.watching import WatchedRun, bits

__all__ = [
    "Finding",
    "buffers_changed",
    "by_place",
    "cannot_run",
    "coupled",
    "only_rounding",
    "remembers",
    "require_alike",
    "require_losses",
    "require_rows",
    "require_unwritten",
    "rounding",
    "stops",
]

Finding = Callable[[str, str], Refused]


def cannot_run(error: BaseException) -> Refused:
    return Refused(
        "the model or its loss could not run on made-up rows",
        reason=f"it raised {type(error).__name__} (above); made-up floats are between 0 and 1, whole numbers 0 or 1",
        way_out="mend the model; if it needs other values, pass public=(x, y) with two or more rows that are no secret",
    )


def stops() -> Refused:
    return Refused(
        "the model or its loss stops with an error when a row holds zeros, large numbers or not-a-number",
        reason="whether training stops would tell about a row",
        way_out="take such rows without an error: binary_cross_entropy_with_logits instead of BCELoss, no assertions "
        "on values, torch.nan_to_num at the start of forward",
    )


def require_losses(losses: Tensor, rows: int) -> None:
    """One finite loss for each row."""
    if losses.shape != (rows,):
        raise Refused(
            f"the loss has shape {tuple(losses.shape)} for a batch of {rows} rows",
            reason="there must be one loss for each row, so that each row's gradient can be clipped",
            way_out=_loss_way_out(losses, rows),
        )
    if not losses.requires_grad:
        raise Refused(
            "the loss does not depend on any trained parameter",
            reason="it was computed without gradients",
            way_out="compute it from the output of the model, outside of torch.no_grad and without detach",
        )
    if not bool(losses.isfinite().all()):
        raise Refused(
            "the loss is infinite or not a number on made-up rows",
            reason="rows cannot be compared there",
            way_out="pass public=(x, y) with two or more rows that are no secret",
        )


def _loss_way_out(losses: Tensor, rows: int) -> str:
    if losses.dim() == 0:
        return "use reduction='none', for example nn.CrossEntropyLoss(reduction='none')"
    if len(losses) == rows:
        return "average what belongs to one row: losses.flatten(1).mean(dim=1)"
    return "return losses with one number for each row, rows first"


def require_rows(run: WatchedRun, rows: int) -> None:
    """Each layer works on rows of the batch, and some layer is used at all."""
    for call in run.calls:
        if call.output.dim() == 0 or len(call.output) != rows:
            raise Refused(
                f"layer {call.path} gives shape {tuple(call.output.shape)} for a batch of {rows} rows",
                reason="the first dimension must be the batch, or a row's own gradient cannot be told from the others'",
                way_out="keep the batch first inside the model; give positions for each row: "
                "self.positions(torch.arange(T).expand(len(x), T)); send all rows through a layer, not some of them",
            )


def require_unwritten(run: WatchedRun, before: Tree) -> None:
    for call in run.calls:
        if call.output._version != call.version:
            raise Refused(
                f"what layer {call.path} gave was changed in place",
                reason="its gradient would be that of something else",
                way_out="write x = x + y instead of x += y, relu(x) instead of relu_(x), and so on",
            )
    for old, new in zip(tensors(before), tensors(run.batch), strict=True):
        if not torch.equal(bits(old), bits(new)):
            raise Refused(
                "the model or its loss changes the batch in place",
                reason="what one pass leaves behind would be seen by the next",
                way_out="work on a copy: x = x.clone(), or write x = x * 2 instead of x *= 2",
            )


def buffers_changed(model: nn.Module, before: list[Tensor]) -> Refused:
    after = [bits(buffer.reshape(1, -1)) for buffer in model.buffers()]
    names = [name for name, _ in model.named_buffers()]
    changed = [name for name, old, new in zip(names, before, after, strict=True) if not torch.equal(old, new)] or [
        "a parameter"
    ]
    return Refused(
        f"running the model changes {', '.join(changed)}",
        reason="what it keeps of the rows it saw leaves with the model, without noise",
        way_out="use layers without running statistics; change parameters by the optimizer only",
    )


def coupled(path: str, what: str) -> Refused:
    return Refused(
        f"rows of a batch are mixed at {path}: {what} depends on other rows",
        reason="then one record changes the gradients of others, and clipping does not bound what it can do",
        way_out="compute with one row at a time: no mean, softmax, sort or norm over dimension 0, no loss that "
        "compares rows, no scaling by the batch; GroupNorm or LayerNorm instead of statistics of the batch",
    )


def by_place(path: str, what: str) -> Refused:
    return Refused(
        f"a row is treated by its place in the batch at {path}: {what} differs",
        reason="one record more moves another one to another place, which must not change its gradient",
        way_out="treat all rows of a batch alike: nothing that depends on the index of a row",
    )


def remembers(path: str, what: str) -> Refused:
    return Refused(
        f"the same rows give something else the second time, at {path}: {what} differs",
        reason="the model remembers earlier rows, or draws random numbers outside of torch",
        way_out="keep nothing between batches (hidden states, counters), and leave chance to nn.Dropout",
    )


def only_rounding(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors that should be equal differ by no more than rounding does."""
    if not first.is_floating_point():
        return False
    size = first.detach().abs().amax()
    return bool(((first - second).detach().abs() <= 1e-5 * size).all())


def rounding(path: str, rows: int) -> Refused:
    return Refused(
        f"at {path} the last bits of a row depend on its place in the batch of {rows}, or on its companions",
        reason="the kernels of this machine treat rows by their address, or split this size unevenly among threads",
        way_out=f"choose a physical_batch that is a multiple of 32; start Python with {MODE}=AUTO in its environment "
        "or import discreet.learn.torch before anything is multiplied; torch.set_num_threads(1)",
    )


def require_alike(first: WatchedRun, second: WatchedRun) -> None:
    """Both runs called the same layers on the same shapes."""
    if [(c.path, c.output.shape) for c in first.calls] != [(c.path, c.output.shape) for c in second.calls] or [
        g is None for g in first.gradients
    ] != [g is None for g in second.gradients]:
        raise Refused(
            "which layers run, or on which shapes, depends on the values of the rows",
            reason="what one row takes part in must not depend on the others",
            way_out="run the same layers for all rows and choose by torch.where",
        )
