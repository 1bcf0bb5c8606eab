"""Uses of parameters that hooks could miss: each is either clipped with the right gradient or refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from learn_zoo import PLAIN, WORDS, cross_entropy
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint

from discreet.errors import Refused
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers import prepare, probe

torch.set_num_threads(1)

ROWS, GRID, CLIP = 8, 2.0**-30, 2**10


class Built(nn.Module):
    """A module from parts and a forward that uses them."""

    def __init__(self, run: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        self.run = run
        self.a, self.h = nn.Linear(6, 6), nn.Linear(6, 2)
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


class Centred(nn.Linear):
    """A subclass whose rule would be another one."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight - self.weight.mean(1, keepdim=True), self.bias)


class Doubled(nn.Linear):
    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) * 2


class Symmetric(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight + weight.T


class Scaled(nn.Module):
    """Owns a parameter and has a layer inside; takes more than tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(6)), nn.Linear(6, 6)

    def forward(self, x: Tensor, flag: bool = True, *, factor: float = 2.0, options: Any = None) -> Tensor:
        return self.inner(x) * self.scale * factor


def plain(model: Any, x: Tensor) -> Tensor:
    return model.h(torch.tanh(model.a(x)))


def tied(run: Callable[[Any, Tensor], Tensor], **parts: Any) -> nn.Module:
    model = Built(run, **parts)
    model.w = model.a.weight
    return model


def two_layers_with_one_weight() -> nn.Module:
    model = Built(lambda m, x: m.h(torch.tanh(m.b(torch.tanh(m.a(x))))), b=nn.Linear(6, 6))
    model.b.weight = model.a.weight
    return model


def owner_first() -> nn.Module:
    """The same parameter on a module and on its child, which both use it."""
    model = Built(lambda m, x: m.h(m.a(torch.tanh(functional.linear(x, m.w)))), w=nn.Parameter(torch.randn(6, 6)))
    model.a.weight = model.w
    return model


def hooked(where: str, kind: str, change: Callable[..., Any]) -> nn.Module:
    model = Built(lambda m, x: m.h(torch.tanh(m.p(m.a(x)))), p=nn.PReLU())
    getattr(model.get_submodule(where), kind)(change)
    return model


def without_gradients(model: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        seen = model.a(x)
    return model.h(torch.tanh(seen))


def other_forward() -> nn.Module:
    model = Built(plain)
    model.a.forward = lambda x: functional.linear(x, 2 * model.a.weight, model.a.bias)
    return model


def one_storage() -> nn.Module:
    model = Built(plain)
    model.h.weight = nn.Parameter(model.a.weight.data[:2])
    return model


def symmetric() -> nn.Module:
    model = Built(plain)
    parametrize.register_parametrization(model.a, "weight", Symmetric())
    return model


def shared_part() -> nn.Module:
    part = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
    return Built(lambda m, x: m.h(m.u(m.v(x))), u=part, v=part)


RIGHT: dict[str, Callable[[], nn.Module]] = {
    "a layer that is called twice": lambda: Built(lambda m, x: m.h(torch.tanh(m.a(torch.tanh(m.a(x)))))),
    "two layers with one weight": two_layers_with_one_weight,
    "a module that is there twice": shared_part,
    "a parameter of a module and of its child": lambda: tied(
        lambda m, x: m.h(torch.tanh(functional.linear(x, m.w) + m.a(x)))
    ),
    "the same, the module first": owner_first,
    "a parameter beside layers": lambda: Built(
        lambda m, x: m.h(torch.tanh(m.a(x)) * m.scale), scale=nn.Parameter(torch.ones(6))
    ),
    "a nested owner with other arguments": lambda: Built(
        lambda m, x: m.h(m.n(m.n(x), False, factor=0.5, options={"none": None})), n=Scaled()
    ),
    "a view of a parameter": lambda: Built(
        lambda m, x: functional.linear(torch.tanh(m.a(x)), m.flat[:12].view(2, 6)), flat=nn.Parameter(torch.randn(20))
    ),
    "two parameters in one storage": one_storage,
    "a list of parameters": lambda: Built(
        lambda m, x: m.h(torch.tanh(m.a(x)) * m.many[0] + m.many[1]),
        many=nn.ParameterList([nn.Parameter(torch.ones(6)), nn.Parameter(torch.zeros(6))]),
    ),
    "a dictionary of parameters": lambda: Built(
        lambda m, x: m.h(m.a(x) * m.many["g"]), many=nn.ParameterDict({"g": nn.Parameter(torch.ones(6))})
    ),
    "a parametrised layer": symmetric,
    "weight normalisation": lambda: Built(plain, a=parametrizations.weight_norm(nn.Linear(6, 6))),
    "a subclass with its own forward": lambda: Built(plain, a=Centred(6, 6)),
    "a subclass with its own call": lambda: Built(plain, a=Doubled(6, 6)),
    "a forward that was put on the instance": other_forward,
    "a hook that changes an output": lambda: hooked("a", "register_forward_hook", lambda _m, _i, out: out * 2),
    "a hook that changes an input": lambda: hooked("a", "register_forward_pre_hook", lambda _m, i: (i[0] * 3,)),
    "a hook on a layer without a rule": lambda: hooked("p", "register_forward_hook", lambda _m, _i, out: out * 2),
    "an input hook there": lambda: hooked("p", "register_forward_pre_hook", lambda _m, i: (i[0] * 3,)),
    "a hook in the backward pass": lambda: hooked(
        "h", "register_full_backward_hook", lambda _m, inputs, _o: tuple(2 * each for each in inputs)
    ),
    "a part without gradients": lambda: Built(without_gradients),
    "a detached part": lambda: Built(lambda m, x: m.h(torch.tanh(m.a(x).detach()))),
    "a layer whose output is not used": lambda: Built(
        lambda m, x: (m.unused(x), plain(m, x))[1], unused=nn.Linear(6, 2)
    ),
    "a checkpointed part": lambda: Built(
        lambda m, x: m.h(checkpoint(lambda z: torch.tanh(m.a(z)), m.b(x), use_reentrant=False)), b=nn.Linear(6, 6)
    ),
    "rows that become positions": lambda: Built(lambda m, x: m.h(m.a(x)[:, None].expand(-1, 3, -1)).sum(1)),
    "two inputs": lambda: Built(lambda m, x: m.b(m.a(x), x), b=nn.Bilinear(6, 6, 2)),
    "a transposed convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.ConvTranspose1d(1, 2, 3), nn.Flatten(), nn.Linear(16, 2)
    ),
}


def batch(example: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    x, _ = example
    values = torch.randn(ROWS, *x.shape) if x.is_floating_point() else torch.randint(0, 2, (ROWS, *x.shape))
    return values, torch.arange(ROWS) % 2


def share_of(sums: ClippedSums, losses: Tensor, row: int) -> Tensor:
    sums.add(losses, torch.arange(ROWS) == row)
    return torch.from_numpy(sums.take().whole()) * GRID


def gradient_of(sums: ClippedSums, losses: Tensor, row: int) -> Tensor:
    found = torch.autograd.grad(losses[row], sums.parameters, allow_unused=True)
    sums.reset()
    parts = zip(sums.parameters, found, strict=True)
    return torch.cat([torch.zeros(p.numel()) if g is None else g.flatten() for p, g in parts]).double()


def assert_right(model: nn.Module, loss: Any = cross_entropy, example: Any = PLAIN) -> None:
    """What is summed for a row is the gradient of its loss as autograd has it."""
    probe(prepare(model).model, loss, example, ROWS)
    sums = ClippedSums(model, clip=CLIP, grid=GRID, physical_batch=ROWS)
    x, y = batch(example)
    for row in (0, ROWS - 1):
        found = share_of(sums, loss(model(x), y), row)
        torch.testing.assert_close(found, gradient_of(sums, loss(model(x), y), row), rtol=1e-5, atol=1e-7)
    sums.close()


@pytest.mark.parametrize("name", RIGHT)
def test_gradients_are_right_however_a_parameter_is_used(name):
    assert_right(RIGHT[name]())


@pytest.mark.filterwarnings("ignore:.*functorch.*")
def test_bags_of_words_are_right():
    assert_right(nn.Sequential(nn.EmbeddingBag(5, 4), nn.Linear(4, 2)), example=WORDS)


def test_several_outputs_are_right():
    model = Built(lambda m, x: (m.h(torch.tanh(m.a(x))), m.k(m.a(x))), k=nn.Linear(6, 2))
    assert_right(model, lambda out, y: cross_entropy(out[0], y) + cross_entropy(out[1], 1 - y))


def write_input(model: Any, x: Tensor) -> Tensor:
    seen = model.a(x)
    out = model.h(seen)
    seen.add_(1.0)
    return out


def penalised(model: Any, x: Tensor) -> Tensor:
    """A penalty on the gradient by the input uses the weights in a backward pass inside of the forward one."""
    x = x.detach().requires_grad_()
    out = plain(model, x)
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return out * (1 + slope.square().sum(1, keepdim=True))


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a weight used outside of its layer": (
        lambda: Built(lambda m, x: m.h(functional.linear(x, m.a.weight))), "outside of the layer",
    ),
    "a weight used inside and outside": (
        lambda: Built(lambda m, x: m.h(m.a(x) + functional.linear(x, m.a.weight))), "outside of the layer",
    ),
    "forward called past the hooks": (lambda: Built(lambda m, x: m.h(m.a.forward(x))), "outside of the layer"),
    "a penalty on gradients": (lambda: Built(penalised), "outside of the layer"),
    "dropout inside an owner": (
        lambda: Built(lambda m, x: m.h(m.d(m.a(x) * m.scale)), d=nn.Dropout(), scale=nn.Parameter(torch.ones(6))),
        "drawn a second time",
    ),
    "dropout inside a checkpointed part": (
        lambda: Built(lambda m, x: m.h(checkpoint(lambda z: m.d(m.a(z)), x, use_reentrant=False)), d=nn.Dropout()),
        "drawn a second time",
    ),
    "an old checkpoint": (
        lambda: Built(lambda m, x: m.h(checkpoint(m.a, m.b(x), use_reentrant=True)), b=nn.Linear(6, 6)),
        "could not run",
    ),
    "double precision": (lambda: Built(lambda m, x: plain(m, x.double())).double(), "float64"),
    "half precision": (lambda: Built(lambda m, x: plain(m, x.bfloat16()).float()).bfloat16(), "bfloat16"),
    "the batch as one row": (lambda: Built(lambda m, x: plain(m, x[None])[0]), "for a batch of 8 rows"),
    "positions as rows": (
        lambda: Built(lambda m, x: plain(m, x.repeat(2, 1)).reshape(2, len(x), 2).sum(0)), "for a batch of 8 rows",
    ),
    "an output changed in place": (lambda: Built(lambda m, x: m.h(m.a(x).tanh_())), "in place"),
    "an input changed in place later": (lambda: Built(write_input), "in place"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_told_row_by_row_is_refused(name):
    make, words = REFUSED[name]
    with pytest.raises(Refused, match=words):
        assert_right(make())


def test_a_loss_that_uses_weights_itself_is_refused():
    model = Built(plain)
    with pytest.raises(Refused, match="outside of the layer"):
        assert_right(model, lambda out, y: cross_entropy(out, y) + 0.1 * model.a.weight.square().sum())


def test_several_forward_passes_before_one_step_are_right():
    model = Built(plain)
    assert_right(model, lambda out, y: cross_entropy(out, y) + cross_entropy(model(out.detach().repeat(1, 3)), y))


def test_autocast_must_be_as_it_was_tried():
    model = Built(plain)
    sums = ClippedSums(model, clip=CLIP, grid=GRID, physical_batch=ROWS)
    x, _ = batch(PLAIN)
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(Refused, match="autocast"):
        model(x)
    sums.close()


def test_a_copy_of_the_model_is_not_taken_for_the_model():
    """A teacher that was copied and is not frozen: its layers are not those that are trained."""
    model = Built(plain)
    sums = ClippedSums(model, clip=CLIP, grid=GRID, physical_batch=ROWS)
    teacher = copy.deepcopy(model)
    x, y = batch(PLAIN)

    def losses() -> Tensor:
        return cross_entropy(model(x), y) + (model(x) - teacher(x)).square().sum(1)

    torch.testing.assert_close(share_of(sums, losses(), 0), gradient_of(sums, losses(), 0), rtol=1e-5, atol=1e-7)
    sums.close()


SLOTTED = {
    "odd widths": (lambda: Built(lambda m, x: m.o(torch.tanh(m.i(x))), i=nn.Linear(6, 7), o=nn.Linear(7, 3)), PLAIN),
    "one output": (
        lambda: Built(lambda m, x: functional.pad(m.o(torch.tanh(m.a(x))), (0, 1)), o=nn.Linear(6, 1)),
        PLAIN,
    ),
    "fallback": (lambda: Built(lambda m, x: m.h(m.p(m.a(x))), p=nn.PReLU(6)), PLAIN),
    "positions": (lambda: nn.Sequential(nn.Embedding(3, 5), nn.Linear(5, 7), Mean(), nn.Linear(7, 2)), WORDS),
    "lstm": (lambda: nn.Sequential(nn.Embedding(3, 5), Last(nn.LSTM(5, 6, batch_first=True)), nn.Linear(6, 2)), WORDS),
}


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


class Last(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0][:, -1]


@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("name", SLOTTED)
def test_the_share_of_a_record_is_the_same_in_every_slot_among_any_companions(name, rows):
    """The proof moves one record to another slot and needs the very same number there: bit for bit, as it is summed."""
    make, example = SLOTTED[name]
    model = prepare(make()).model
    probe(model, cross_entropy, example, rows)
    sums = ClippedSums(model, clip=2.0**-4, grid=2.0**-40, physical_batch=rows)
    torch.manual_seed(5)
    record, target = (part[:1] for part in batch(example))
    shares = []
    for slot in range(0, rows, 3):
        x, y = (part.repeat(4, *(1,) * (part.dim() - 1))[:rows] for part in batch(example))
        x[slot], y[slot] = record[0], target[0]
        sums.add(cross_entropy(model(x), y), torch.arange(rows) == slot)
        shares.append(torch.from_numpy(sums.take().whole()))
    sums.close()
    assert shares[0].norm() * 2.0**-40 <= 2.0**-4
    assert shares[0].any()
    assert all(torch.equal(share, shares[0]) for share in shares)
