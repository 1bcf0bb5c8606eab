"""Small models: good ones, and ones that mix rows, remember them or treat them by their place."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

torch.set_num_threads(1)

ROWS = 8
PLAIN = (torch.zeros(6), torch.tensor(0))
IMAGE = (torch.zeros(1, 8, 8), torch.tensor(0))
WORDS = (torch.zeros(5, dtype=torch.int64), torch.tensor(0))
LONG = (torch.zeros(60, dtype=torch.int64), torch.tensor(0))  # So long that no two batches have equal longest rows.
SIGNAL = (torch.zeros(5, 4), torch.tensor(0))


def cross_entropy(output: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(output, y, reduction="none")


class Between(nn.Module):
    """Two linear layers with something between them."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.between = nn.Linear(6, 8), nn.Linear(8, 3), between

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.between(self.first(x)))


class Transformer(nn.Module):
    def __init__(self, *, batch_first: bool = True, dropout: float = 0.1) -> None:
        super().__init__()
        self.turned = not batch_first
        self.words, self.places = nn.Embedding(10, 8), nn.Embedding(5, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=batch_first)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.words(x) + self.places(torch.arange(x.shape[1]).expand_as(x))
        x = self.body(x.transpose(0, 1)).transpose(0, 1) if self.turned else self.body(x)
        return self.head(x.mean(dim=1))


class Shared(nn.Module):
    """Owns a parameter that all rows share, and has dropout inside."""

    def __init__(self, use: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.place, self.use = nn.Parameter(torch.randn(1, 2, 6)), use
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.use(x, self.place)))


class Dropping(nn.Module):
    """Calls a function that drops, as a layer of somebody's own would."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x.reshape(-1, 2, 4), 0.5, self.training).flatten(1)


class Full(nn.Module):
    """Works otherwise if all numbers of all rows are the same, as a mask that hides nothing is not looked at."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.words, self.head, self.number = nn.Embedding(2, 8), nn.Linear(8, 3), number

    def forward(self, x: Tensor) -> Tensor:
        seen = self.words(x).mean(dim=1)
        return self.head(seen if bool((x == self.number).all()) else seen * 1.01)


class LastOf(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, layer: nn.Module, features: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(features, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Running(nn.Module):
    """Keeps a running mean of what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(dim=0)
        return x


class Remembering(nn.Module):
    """Adds a little of the last batch."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Tensor | float = 0.0

    def forward(self, x: Tensor) -> Tensor:
        before, self.last = self.last, x.detach()
        return x + before


class Capacity(nn.Module):
    """Only the four rows with the largest first value get through, as experts with a capacity do."""

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[:, 0].detach().argsort(descending=True)[:4]
        gate = torch.zeros(len(x)).index_fill(0, chosen, 1.0)
        return x * gate[:, None]


class SomeRows(nn.Module):
    """Sends a row through a layer only if its first value is positive."""

    def __init__(self) -> None:
        super().__init__()
        self.expert = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        chosen = x[:, 0] > x[:, 0].median()
        out = x.clone()
        out[chosen] = self.expert(x[chosen])
        return out


class Positions(nn.Module):
    """An embedding of positions that is shared by all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(10, 8), nn.Embedding(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head((self.words(x) + self.places(torch.arange(x.shape[1]))).mean(dim=1))


class Padded(nn.Module):
    """A table of 50 words, of which one is padding, and a mean over what is there."""

    def __init__(self, use: Callable[[Any, Tensor], Tensor], padding: int | None = 49, told: int | None = None) -> None:
        super().__init__()
        self.words, self.head, self.use = nn.Embedding(50, 8, padding_idx=padding), nn.Linear(8, 3), use
        if told is not None:
            self.config = SimpleNamespace(text_config=SimpleNamespace(pad_token_id=told))

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.use(self.words, ids))


def longest(ids: Tensor, padding: int) -> int:
    return max(1, int((ids != padding).any(0).sum()))


def from_the_first(words: Any, ids: Tensor) -> Tensor:
    """Cut off what is padding in all rows at their start."""
    return words(ids)[:, int((ids != 49).any(0).float().argmax()) :].mean(1)


def row_means(words: Any, ids: Tensor) -> Tensor:
    there = (ids != 49)[:, :, None]
    return (words(ids) * there).sum(1) / there.sum(1).clamp(min=1)


def missing_means(words: Any, ids: Tensor) -> Tensor:
    return words(ids.clamp(min=0))[:, : longest(ids, -1)].mean(1)


class Signal(nn.Module):
    """Positions of a signal of floats, one behind the other along some axis, and a mean over what `use` leaves."""

    def __init__(self, use: Callable[..., Tensor]) -> None:
        super().__init__()
        self.inner, self.head, self.use = nn.Linear(4, 8), nn.Linear(8, 3), use

    def forward(self, x: Tensor, *beside: Tensor) -> Tensor:
        positions = x if x.shape[2] == 4 else x.transpose(1, 2)
        return self.head(self.use(torch.tanh(self.inner(positions.nan_to_num())), positions, *beside))


def first(hidden: Tensor, there: Tensor) -> Tensor:
    """Cut to the longest row of the batch."""
    return hidden[:, : max(1, int(there.sum(1).max()))].mean(1)


def longest_of(hidden: Tensor, x: Tensor, lengths: Tensor) -> Tensor:
    there = torch.arange(x.shape[1]) < lengths.clamp(min=1)[:, None]
    return first(hidden * there[:, :, None], there)


def unless_all_are_shown(hidden: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    return hidden.mean(1) if bool((mask == 1).all()) else (hidden * mask[:, :, None]).mean(1) * 1.01


def of_labelled(output: Tensor, y: Tensor, ignored: int = -100) -> Tensor:
    """The mean over all rows that have a label, as reduction="mean" takes it."""
    losses = functional.cross_entropy(output, y, ignore_index=ignored, reduction="none")
    return losses / (y != ignored).sum().clamp(min=1)


def by_rarity(output: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(
        output, y, torch.stack([*torch.ones(2), 1 / (1 + (y == 2).sum())]), reduction="none"
    )


def contrastive(output: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(output @ output.T, torch.arange(len(output)), reduction="none")


def rare_stop(x: Tensor) -> Tensor:
    if bool(x.isnan().any()):
        raise ValueError("not a number")
    return x


GOOD: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "mlp": (lambda: Between(torch.tanh), PLAIN),
    "padding that each row leaves out": (lambda: Padded(row_means), WORDS),
    "a signal that ends with zeros or gaps": (
        lambda: Signal(lambda hidden, x: (hidden * (x.nan_to_num() != 0).any(2)[:, :, None]).sum(1)), SIGNAL,
    ),
    "dropout": (lambda: Between(nn.Dropout(0.3)), PLAIN),
    "in-place relu layer": (lambda: Between(nn.ReLU(inplace=True)), PLAIN),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Dropout2d(0.2), nn.Flatten(),
            nn.Linear(64, 3),
        ),
        IMAGE,
    ),
    "functional dropout": (lambda: Between(Dropping(functional.dropout)), PLAIN),
    "functional dropout of channels": (lambda: Between(Dropping(functional.dropout1d)), PLAIN),
    "a shared row": (lambda: Shared(lambda x, p: (x[:, None] + p).sum(1)), PLAIN),
    "a shared row beside all": (
        lambda: Shared(lambda x, p: torch.cat([p.expand(len(x), -1, -1), x[:, None]], 1).sum(1)), PLAIN,
    ),
    "a frozen norm": (lambda: Between(nn.BatchNorm1d(8).requires_grad_(False).eval()), PLAIN),
    "group norm": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(144, 3)),
        IMAGE,
    ),
    "transformer": (Transformer, WORDS),
    "transformer, time first": (lambda: Transformer(batch_first=False), WORDS),
    "lstm": (lambda: LastOf(nn.LSTM(4, 6, 2, dropout=0.2, batch_first=True), 6), SIGNAL),
    "gru": (lambda: LastOf(nn.GRU(4, 6, bidirectional=True, batch_first=True), 12), SIGNAL),
}  # fmt: skip

BAD: dict[str, tuple[Callable[[], nn.Module], Any, str]] = {
    "batch mean": (lambda: Between(lambda x: x - x.mean(0)), PLAIN, "mixed at"),
    "detached batch mean": (lambda: Between(lambda x: x - x.mean(0).detach()), PLAIN, "mixed at"),
    "batch variance": (lambda: Between(lambda x: x / (1 + x.var(0).detach())), PLAIN, "mixed at"),
    "functional batch norm": (
        lambda: Between(lambda x: functional.batch_norm(x, None, None, training=True)), PLAIN, "mixed at",
    ),
    "sorted over the batch": (lambda: Between(lambda x: x.sort(0).values), PLAIN, "mixed at"),
    "softmax over the batch": (lambda: Between(lambda x: x.softmax(0)), PLAIN, "mixed at"),
    "largest of the batch": (lambda: Between(lambda x: x / (1 + x.abs().max().detach())), PLAIN, "mixed at"),
    "next row": (lambda: Between(lambda x: x + x.roll(1, 0).detach()), PLAIN, "mixed at"),
    "only one pair of rows": (
        lambda: Between(lambda x: torch.cat([x[:2], x[2:3] + x[6:7].detach(), x[3:]])), PLAIN, "mixed at",
    ),
    "counts rows that are not zero": (
        lambda: Between(lambda x: x * (x != 0).any(1).sum() + x * (x.abs() > 100).sum()), PLAIN, "mixed at",
    ),
    "capacity": (lambda: Between(Capacity()), PLAIN, "mixed at"),
    "some rows only": (lambda: Between(SomeRows()), PLAIN, "gives shape"),
    "shared positions": (Positions, WORDS, "gives shape"),
    "shared positions, as many as rows": (
        Positions, (torch.zeros(ROWS, dtype=torch.int64), torch.tensor(0)), "mixed at",
    ),
    "by place": (lambda: Between(lambda x: x * (1 + torch.arange(len(x)))[:, None]), PLAIN, "by its place"),
    "running buffer": (lambda: Between(Running()), PLAIN, "changes between.mean"),
    "remembers": (lambda: Between(Remembering()), PLAIN, "second time"),
    "in place": (lambda: Between(lambda x: x.relu_()), PLAIN, "in place"),
    "batch in place": (lambda: nn.Sequential(Writing(), nn.Linear(6, 3)), PLAIN, "the batch in place"),
    "alpha dropout": (lambda: Between(lambda x: functional.alpha_dropout(x, 0.5, True)), PLAIN, "random numbers"),
    "a mask of its own": (lambda: Between(lambda x: x * torch.bernoulli(x.sigmoid())), PLAIN, "random numbers"),
    "functional dropout of all rows together": (
        lambda: Between(lambda x: x * functional.dropout(torch.ones(8))), PLAIN, "mixed at",
    ),
    "looks whether all rows are full": (lambda: Full(1), LONG, "mixed at"),
    "looks whether all rows are empty": (lambda: Full(0), LONG, "mixed at"),
    "a shared row used by itself": (lambda: Shared(lambda x, p: x + p[0, 0]), PLAIN, "mixed at"),
    "a shared row, summed": (lambda: Shared(lambda x, p: x + p.sum((0, 1))), PLAIN, "mixed at|something else"),
    "a shared row and how many there are": (
        lambda: Shared(lambda x, p: (x[:, None] + p / len(p)).sum(1)), PLAIN, "something else",
    ),
    "stops on nan": (lambda: Between(rare_stop), PLAIN, "stops with an error"),
    "branches on values": (
        lambda: Between(lambda x: x if bool((x.abs() > 1000).any()) else 2 * x), PLAIN, "mixed at",
    ),
    "trims to the longest": (
        lambda: nn.Sequential(nn.Embedding(2, 8), Trimming(), nn.Linear(8, 3)), LONG, "depends on|mixed at",
    ),
    "cuts to the longest row": (
        lambda: Padded(lambda words, ids: words(ids)[:, : longest(ids, 49)].mean(1)), WORDS, "mixed at",
    ),
    "cuts the start to the longest row": (lambda: Padded(from_the_first), WORDS, "mixed at"),
    "cuts the start of a signal to the longest row": (
        lambda: Signal(lambda hidden, x: hidden[:, int((x != 0).any(2).any(0).float().argmax()) :].mean(1)),
        SIGNAL, "mixed at",
    ),
    "cuts to the longest row before anything runs": (
        lambda: Padded(lambda words, ids: words(ids[:, : longest(ids, 49)]).mean(1)), WORDS, "on which shapes",
    ),
    "cuts by padding that a configuration names": (
        lambda: Padded(lambda words, ids: words(ids)[:, : longest(ids, 7)].mean(1), None, told=7), WORDS, "mixed at",
    ),
    "cuts by numbers that are missing": (lambda: Padded(missing_means, None), WORDS, "mixed at"),
    "cuts a signal that ends with zeros": (
        lambda: Signal(lambda hidden, x: first(hidden, (x != 0).any(2))), SIGNAL, "mixed at",
    ),
    "cuts a signal that ends with zeros, channels first": (
        lambda: Signal(lambda hidden, x: first(hidden, (x != 0).any(2))), (torch.zeros(4, 9), SIGNAL[1]), "mixed at",
    ),
    "cuts a signal that ends with gaps": (
        lambda: Signal(lambda hidden, x: first(hidden, ~x.isnan().any(2))), SIGNAL, "mixed at",
    ),
    "cuts a signal to the largest of given lengths": (
        lambda: Signal(longest_of), ((SIGNAL[0], torch.tensor(0)), SIGNAL[1]), "mixed at",
    ),
    "leaves out a mask of floats that hides nothing": (
        lambda: Signal(unless_all_are_shown), ((SIGNAL[0], torch.zeros(5)), SIGNAL[1]), "mixed at",
    ),
    "looks whether any word is padding": (
        lambda: Padded(lambda words, ids: words(ids).mean(1) * (2 - (ids == 49).any().float())), WORDS, "mixed at",
    ),
    "one mask for all rows": (lambda: Between(OneMask(8)), PLAIN, "mixed at"),
    "one mask for all rows, of another size": (lambda: Between(OneMask(1)), PLAIN, "gets a tensor of shape"),
    "cross-row backward": (lambda: Between(lambda x: Centred.apply(x)), PLAIN, "mixed at"),
    "negative companions": (lambda: Between(lambda x: x + (x < -1e6).any().float()), PLAIN, "mixed at"),
    "cannot run": (lambda: nn.Linear(7, 3), PLAIN, "could not run"),
}  # fmt: skip


class Trimming(nn.Module):
    """Keeps as many positions as the longest row has, and weighs by that."""

    def forward(self, x: Tensor) -> Tensor:
        longest = int((x[:, :, 0] > x[:, :, 0].mean()).sum(1).max())
        return x[:, :longest].mean(dim=1)


class Centred(torch.autograd.Function):
    """Gradients are centred over the batch on their way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient - gradient.mean(0)


class OneMask(nn.Module):
    """Drops features of all rows together."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.drop, self.size = nn.Dropout(0.5), size

    def forward(self, x: Tensor) -> Tensor:
        return x * self.drop(torch.ones(self.size))


class Writing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2)


BAD_LOSSES: dict[str, tuple[Callable[[Tensor, Tensor], Any], str]] = {
    "mean": (lambda output, y: functional.cross_entropy(output, y), "reduction='none'"),
    "mean, repeated": (lambda output, y: functional.cross_entropy(output, y).expand(len(y)), "mixed at"),
    "contrastive": (contrastive, "mixed at"),
    "one for each class": (lambda output, y: output**2, r"mean\(dim=1\)"),
    "columns": (lambda output, y: (output**2).mean(0), "rows first"),
    "weighted by the batch": (lambda output, y: cross_entropy(output, y) / output.detach().sum(), "mixed at"),
    "mean over the rows with a label": (of_labelled, "mixed at"),
    "mean over the rows with a label, by another number": (lambda o, y: of_labelled(o, y, -1), "mixed at"),
    "weighted by how rare a class is": (by_rarity, "mixed at"),
    "a number": (lambda output, y: 1.0, "gave a float"),
    "detached": (lambda output, y: output.detach().sum(1), "does not depend"),
    "random weights": (lambda output, y: cross_entropy(output, y) * torch.rand(len(y)), "random numbers"),
}
