"""What must hold before rows are clipped; nothing here looks at a value."""

from __future__ import annotations

import os

import torch
from torch import Tensor, nn

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch.clipping import bounds
from discreet.learn.torch.clipping.tape import LayerCall

__all__ = ["check_arithmetic", "check_losses", "check_model", "check_rows_apart"]

_MODES = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")  # By these oneDNN computes in half precision.


def check_model(model: nn.Module, physical_batch: int) -> None:
    """Refuse a batch that is too large, and parameters that are not float32 on the CPU."""
    if not 1 <= physical_batch <= bounds.LARGEST_BATCH:
        raise InvalidParameter(f"physical_batch must lie between 1 and {bounds.LARGEST_BATCH}")
    trained = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    if not trained:
        raise Refused("the model has no trainable parameters", way_out="set requires_grad on what should be trained")
    for name, each in trained:
        if each.dtype != torch.float32 or each.device.type != "cpu":
            raise Refused(
                f"the parameter {name!r} is {each.dtype} on {each.device.type}",
                reason="the error of clipped sums is proven for float32 on the CPU",
                way_out="use model.float().cpu()",
            )


def check_losses(losses: Tensor, inside: Tensor, rows: int) -> None:
    """Refuse anything but one loss and one mark for each row."""
    if losses.shape != (rows,):
        raise InvalidParameter(
            f"expected one loss for each of {rows} rows, not the shape {tuple(losses.shape)}: use reduction='none' and "
            "add up what belongs to one row"
        )
    if inside.shape != (rows,) or inside.dtype != torch.bool:
        raise InvalidParameter(f"inside must hold one bool for each of {rows} rows")


def check_arithmetic() -> None:
    """Refuse settings under which torch multiplies float32 numbers less precisely than float32."""
    if not _multiplies_precisely():
        raise Refused(
            "torch is set to multiply float32 matrices with less precision",
            reason="the error of clipped sums is proven for float32",
            way_out='call torch.set_float32_matmul_precision("highest"), leave fp32_precision of torch.backends as it '
            f"was, and start Python without {' and '.join(_MODES)}",
        )


def _multiplies_precisely() -> bool:
    if any(os.environ.get(name, "STRICT").upper() != "STRICT" for name in _MODES):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # Settings of the old and of the new kind disagree.
        return False


def check_rows_apart(calls: list[LayerCall], of_last_loss: list[tuple[Tensor | None, ...]]) -> None:
    """Refuse a layer where the loss of the last row has a gradient in the place of another row.

    So it is if the first dimension counts something else, time say. No number says nothing: it is 0 times infinity.
    """
    for call, gradients in zip(calls, of_last_loss, strict=True):
        if any(each is not None and bool(each[:-1].nan_to_num(0.0, 0.0, 0.0).any()) for each in gradients):
            raise Refused(
                f"the layer {call.name!r} ({type(call.module).__name__}) mixes records, or its first dimension is not "
                "the batch",
                reason="the loss of the last record has a gradient in the place of another one",
                way_out="put the batch first in every layer, and let no layer or loss look at other records",
            )
