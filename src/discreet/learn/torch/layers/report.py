"""What each layer of a model is, how it is handled, and how to fix what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, final

from torch import nn
from torch.nn.parameter import is_lazy

from discreet.errors import Refused
from discreet.learn.torch.clipping.rules import has_rule
from discreet.learn.torch.clipping.tape import owned
from discreet.learn.torch.layers.troubles import DROPOUTS, FUSED, trouble_of

__all__ = ["Handling", "Layer", "LayerReport"]

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
    return "book-keeping" if has_rule(module) else "fallback"
