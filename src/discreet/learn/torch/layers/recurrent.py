"""LSTM, GRU and RNN from `Linear` cells: each parameter is seen by the book-keeping, the rest is as in torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.layers.secret_draws import drop

__all__ = ["PlainKeys", "Recurrent", "RecurrentCell", "linear"]

# --- plain_keys: Modules that are built otherwise than torch's, but save and load what torch's save and load. ---


class PlainKeys(nn.Module):
    """A module whose parameters live in children, and which has the `state_dict` of the plain module.

    `renamed` has the plain name of a parameter for each name inside, in the order in which torch saves them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.renamed: dict[str, str] = {}
        self.register_state_dict_post_hook(_save_plain)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_load_plain)  # type: ignore[no-untyped-call]


def linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A `Linear` around these very parameters, so that an optimiser that has them keeps them."""
    rows, columns = weight.shape
    made = nn.Linear(columns, rows, bias=bias is not None, device="meta")
    made.register_parameter("weight", _parameter(weight))
    if bias is not None:
        made.register_parameter("bias", _parameter(bias))
    return made


def _parameter(value: Tensor) -> nn.Parameter:
    assert isinstance(value, nn.Parameter)
    return value


def _save_plain(module: nn.Module, state: dict[str, Any], prefix: str, _metadata: object) -> None:
    assert isinstance(module, PlainKeys)
    for inner, plain in module.renamed.items():
        if prefix + inner in state:
            state[prefix + plain] = state.pop(prefix + inner)


def _load_plain(module: nn.Module, state: dict[str, Any], prefix: str, *_others: object) -> None:
    assert isinstance(module, PlainKeys)
    renamed: Mapping[str, str] = module.renamed
    for inner, plain in renamed.items():
        if prefix + plain in state:
            state[prefix + inner] = state.pop(prefix + plain)


State = tuple[Tensor, ...]


class _Gates(nn.Module):
    """The two projections of a cell, and how a state follows from them: one direction of one layer."""

    def __init__(self, kind: str, from_input: nn.Linear, from_state: nn.Linear, project: nn.Linear | None) -> None:
        super().__init__()
        self.kind = kind
        self.ih, self.hh, self.hr = from_input, from_state, project

    def zeros(self, batch: int, like: Tensor) -> State:
        hidden = like.new_zeros(batch, self.hh.in_features)
        return (hidden, like.new_zeros(batch, self.hh.out_features // 4)) if self.kind == "LSTM" else (hidden,)

    def step(self, x: Tensor, state: State) -> State:
        """The next state from an input that went through `ih` before."""
        h = self.hh(state[0])
        if self.kind == "LSTM":
            return self._lstm(x + h, state[1])
        if self.kind == "GRU":
            return (_gru(x, h, state[0]),)
        return (torch.tanh(x + h) if self.kind == "RNN_TANH" else torch.relu(x + h),)

    def _lstm(self, gates: Tensor, memory: Tensor) -> State:
        enter, forget, candidate, leave = gates.chunk(4, dim=1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(enter) * torch.tanh(candidate)
        hidden = torch.sigmoid(leave) * torch.tanh(memory)
        return (hidden if self.hr is None else self.hr(hidden), memory)

    def run(self, x: Tensor, state: State, backwards: bool) -> tuple[Tensor, State]:
        """All outputs (batch, time, features) and the last state."""
        inputs = self.ih(x).unbind(1)
        outputs = []
        for moment in reversed(inputs) if backwards else inputs:
            state = self.step(moment, state)
            outputs.append(state[0])
        return torch.stack(outputs[::-1] if backwards else outputs, dim=1), state


def _gru(x: Tensor, h: Tensor, hidden: Tensor) -> Tensor:
    (x_reset, x_update, x_new), (h_reset, h_update, h_new) = x.chunk(3, dim=1), h.chunk(3, dim=1)
    update = torch.sigmoid(x_update + h_update)
    new = torch.tanh(x_new + torch.sigmoid(x_reset + h_reset) * h_new)
    return (hidden - new) * update + new


@final
class Recurrent(PlainKeys):
    """What `nn.LSTM`, `nn.GRU` and `nn.RNN` compute, with the same parameters and the same `state_dict`.

    torch's modules hand all weights to one fused function, so no hook sees what they were multiplied by. Here each pair
    of weights is two `Linear`: one sees all inputs at once, the other the state of one moment after the other.
    """

    def __init__(self, plain: nn.RNNBase) -> None:
        super().__init__()
        self.mode, self.hidden_size, self.input_size = plain.mode, plain.hidden_size, plain.input_size
        self.num_layers, self.bidirectional, self.batch_first = plain.num_layers, plain.bidirectional, plain.batch_first
        self.dropout, self.proj_size, self.bias = plain.dropout, plain.proj_size, plain.bias
        self.cells = nn.ModuleList()
        for layer in range(plain.num_layers):
            for direction in ("", "_reverse")[: 1 + plain.bidirectional]:
                self._take(plain, f"_l{layer}{direction}")
        self.train(plain.training)

    def _take(self, plain: nn.RNNBase, suffix: str) -> None:
        from_input, from_state = (_shared(plain, name, suffix, plain.bias) for name in ("ih", "hh"))
        project = _shared(plain, "hr", suffix, False) if plain.proj_size else None
        place = len(self.cells)
        self.cells.append(_Gates(plain.mode, from_input, from_state, project))
        names = [("weight", "ih"), ("weight", "hh"), *([("bias", "ih"), ("bias", "hh")] if plain.bias else [])]
        for kind, name in [*names, *([("weight", "hr")] if plain.proj_size else [])]:
            self.renamed[f"cells.{place}.{name}.{kind}"] = f"{kind}_{name}{suffix}"

    def flatten_parameters(self) -> None:
        """Nothing: there is no fused kernel to lay memory out for."""

    def forward(self, x: Tensor, hx: Tensor | State | None = None) -> tuple[Tensor, Tensor | State]:
        _require_batch(x)
        x = x if self.batch_first else x.transpose(0, 1)
        starts = self._starts(x, hx)
        ends: list[State] = []
        directions = 1 + self.bidirectional
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = drop(x, self.dropout, self.training)
            sides = []
            for side in range(directions):
                place = layer * directions + side
                out, end = self._cell(place).run(x, starts[place], backwards=side == 1)
                sides.append(out)
                ends.append(end)
            x = torch.cat(sides, dim=-1)
        final_state = tuple(torch.stack(parts) for parts in zip(*ends, strict=True))
        return x if self.batch_first else x.transpose(0, 1), final_state if self.mode == "LSTM" else final_state[0]

    def _cell(self, place: int) -> _Gates:
        cell = self.cells[place]
        assert isinstance(cell, _Gates)
        return cell

    def _starts(self, x: Tensor, hx: Tensor | State | None) -> list[State]:
        if hx is None:
            return [self._cell(place).zeros(len(x), x) for place in range(len(self.cells))]
        parts = (hx,) if isinstance(hx, Tensor) else hx
        return [tuple(part[place] for part in parts) for place in range(len(self.cells))]


@final
class RecurrentCell(PlainKeys):
    """What `nn.LSTMCell`, `nn.GRUCell` and `nn.RNNCell` compute, with the same parameters and `state_dict`."""

    def __init__(self, plain: nn.RNNCellBase) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = plain.input_size, plain.hidden_size, plain.bias
        from_input, from_state = (_shared(plain, name, "", plain.bias) for name in ("ih", "hh"))
        self.gates = _Gates(_kind(plain), from_input, from_state, None)
        kinds = ("weight", "bias") if plain.bias else ("weight",)
        self.renamed = {f"gates.{name}.{kind}": f"{kind}_{name}" for kind in kinds for name in ("ih", "hh")}
        self.train(plain.training)

    def forward(self, x: Tensor, hx: Tensor | State | None = None) -> Tensor | State:
        state = self.gates.zeros(len(x), x) if hx is None else (hx,) if isinstance(hx, Tensor) else hx
        after = self.gates.step(self.gates.ih(x), state)
        return after if self.gates.kind == "LSTM" else after[0]


def _kind(plain: nn.RNNCellBase) -> str:
    if isinstance(plain, nn.RNNCell):
        return "RNN_TANH" if plain.nonlinearity == "tanh" else "RNN_RELU"
    return "LSTM" if isinstance(plain, nn.LSTMCell) else "GRU"


def _shared(plain: nn.Module, name: str, suffix: str, with_bias: bool) -> nn.Linear:
    return linear(
        getattr(plain, f"weight_{name}{suffix}"), getattr(plain, f"bias_{name}{suffix}") if with_bias else None
    )


def _require_batch(x: object) -> None:
    if not isinstance(x, Tensor):
        raise Refused(
            f"a recurrent layer got a {type(x).__name__}",
            reason="packed sequences mix the rows of a batch, and their lengths shape the work",
            way_out="pad all sequences to one public length and mask what is padded in the loss",
        )
    if x.dim() != 3:
        raise Refused(
            f"a recurrent layer got {x.dim()} dimensions, and needs (batch, time, features)",
            reason="each row of the batch is one example",
            way_out="call the model with a batch of examples",
        )
