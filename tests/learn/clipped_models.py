"""Small models, one for each way in which a layer can be used, with rows that suit them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["MODELS", "squares"]


def squares(output: Tensor | tuple[Tensor, ...], target: Tensor) -> Tensor:
    """Return one uneven loss for each row, of whatever comes out."""
    outputs = output if isinstance(output, tuple) else (output,)
    return sum((((each - 0.3) ** 2).flatten(1).sum(1) * (1 + target) for each in outputs), torch.zeros(()))


class Tied(nn.Module):
    """An embedding whose weight is also that of the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.middle = nn.Linear(6, 6)
        self.head = nn.Linear(6, 11)
        self.head.weight = self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(torch.tanh(self.middle(self.table(ids))))
        return out


class Twice(nn.Module):
    """Layers that are called several times: with one position, with many, a convolution and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.conv = nn.Conv1d(3, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(torch.tanh(self.conv(torch.tanh(self.conv(x)))))
        x = self.norm(torch.tanh(self.linear(x))).mean(1)
        return torch.tanh(self.linear(torch.tanh(self.linear(x))))


class Unrolled(nn.Module):
    """A recurrence: the same two layers at each time."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(5, 5), nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(len(x), 5, dtype=x.dtype)
        for at in range(x.shape[1]):
            state = torch.tanh(self.inner(state) + self.outer(x[:, at]))
        return state


class Own(nn.Module):
    """A module with parameters of its own, children, two inputs by name and several outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4) + 0.5)
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor, *, other: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return self.inner(x) * self.scale, {"more": other @ (self.scale[:, None] * self.scale), "none": x.detach()}


class WithOwn(nn.Module):
    """A module around `Own`, with a parameter at the root."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.rand(3, 4))
        self.own = Own()

    def forward(self, x: Tensor) -> Tensor:
        first, rest = self.own(x + self.shift, other=x)
        return torch.tanh(first + rest["more"])


class Partly(nn.Module):
    """Frozen parameters, a layer that the loss never uses, and one without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.unused, self.last = nn.Linear(5, 6), nn.Linear(5, 2), nn.Linear(6, 3, bias=False)
        self.first.weight.requires_grad_(False)
        self.norm = nn.LayerNorm(6)
        self.norm.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        self.unused(x)
        out: Tensor = self.last(self.norm(torch.tanh(self.first(x))))
        return out


class Places(nn.Module):
    """Tokens with positions that are looked up once for all rows, and a block that mixes positions."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(9, 6, padding_idx=2), nn.Embedding(5, 6)
        self.queries = nn.Linear(6, 12)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1])[None])
        left, right = self.queries(x).chunk(2, -1)
        mixed: Tensor = functional.scaled_dot_product_attention(left, right, x)
        return mixed


def _floats(*shape: int) -> Callable[[int], Tensor]:
    return lambda rows: torch.randn(rows, *shape)


def _ids(most: int, *shape: int) -> Callable[[int], Tensor]:
    return lambda rows: torch.randint(0, most, (rows, *shape))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(70, 9), nn.Tanh(), nn.Linear(9, 3)), _floats(70)),
    "linear with positions": (lambda: nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)), _floats(5, 6)),
    "linear with few positions": (
        lambda: nn.Sequential(nn.Linear(60, 90), nn.Tanh(), nn.Linear(90, 50)),
        _floats(2, 60),
    ),
    "linear with two dimensions": (lambda: nn.Linear(4, 3), _floats(2, 3, 4)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), _floats(4, 11)),
    "conv1d circular": (lambda: nn.Conv1d(2, 3, 3, padding=1, padding_mode="circular"), _floats(2, 7)),
    "conv2d": (lambda: nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), _floats(2, 7, 6)),
    "conv2d same": (lambda: nn.Conv2d(2, 3, (4, 3), padding="same", dilation=2), _floats(2, 7, 6)),
    "conv2d valid, grouped": (lambda: nn.Conv2d(4, 4, 2, padding="valid", groups=4, bias=False), _floats(4, 4, 5)),
    "conv2d reflected": (lambda: nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="reflect"), _floats(2, 5, 6)),
    "conv2d of one place": (lambda: nn.Conv2d(2, 3, 4), _floats(2, 4, 4)),
    "conv3d": (lambda: nn.Conv3d(2, 4, (2, 3, 2), stride=(1, 2, 1), padding=(1, 1, 0), groups=2), _floats(2, 4, 5, 4)),
    "conv3d same": (lambda: nn.Conv3d(1, 2, (2, 3, 2), padding="same", padding_mode="replicate"), _floats(1, 4, 5, 4)),
    "embedding": (lambda: nn.Embedding(7, 5, padding_idx=3), _ids(7, 6)),
    "embedding of one": (lambda: nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 2)), _ids(7)),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm((3, 4)), nn.Linear(4, 2)), _floats(2, 3, 4)),
    "group norm": (lambda: nn.Sequential(nn.GroupNorm(2, 6), nn.Conv1d(6, 2, 1)), _floats(6, 5)),
    "rms norm": (lambda: nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4)), _floats(3, 4)),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), _floats(3, 4, 4)),
    "instance norm 1d": (lambda: nn.Sequential(nn.InstanceNorm1d(3, affine=True), nn.Linear(6, 2)), _floats(3, 6)),
    "prelu (fallback)": (lambda: nn.Sequential(nn.Linear(4, 4), nn.PReLU(4), nn.Linear(4, 2)), _floats(4)),
    "transposed (fallback)": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), _floats(2, 4, 4)),
    "weight norm (fallback)": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), _floats(4)),
    "tied": (Tied, _ids(11, 4)),
    "used twice": (Twice, _floats(3, 8)),
    "unrolled": (Unrolled, _floats(6, 4)),
    "own parameters": (WithOwn, _floats(3, 4)),
    "frozen and unused": (Partly, _floats(5)),
    "places": (Places, _ids(9, 5)),
}
