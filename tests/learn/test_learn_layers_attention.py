"""Attention from Linear cells computes what torch's own does, and saves and loads the same."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.layers import prepare
from discreet.learn.torch.layers.attention import Attention

torch.set_num_threads(1)

KINDS = {
    "plain": {},
    "no bias": {"bias": False},
    "time first": {"batch_first": False},
    "other widths": {"kdim": 5, "vdim": 6},
    "other widths, no bias": {"kdim": 5, "vdim": 6, "bias": False},
    "extra rows": {"add_bias_kv": True},
    "zero row": {"add_zero_attn": True},
    "all extra": {"add_bias_kv": True, "add_zero_attn": True, "kdim": 3},
}


def pair(**options) -> tuple[nn.MultiheadAttention, Attention]:
    options = {"batch_first": True, **options}
    plain = nn.MultiheadAttention(8, 2, **options).double()
    copied = nn.MultiheadAttention(8, 2, **options).double()
    copied.load_state_dict(plain.state_dict())
    return plain, Attention(copied)


def inputs(plain: nn.MultiheadAttention) -> list[Tensor]:
    sizes = ((3, 4, 8), (3, 5, plain.kdim), (3, 5, plain.vdim))
    return [_turned(torch.randn(size, dtype=torch.float64), plain) for size in sizes]


def _turned(x: Tensor, plain: nn.MultiheadAttention) -> Tensor:
    return (x if plain.batch_first else x.transpose(0, 1)).requires_grad_()


def same(plain: nn.MultiheadAttention, ours: Attention, given: list[Tensor], **options) -> None:
    (a, weights), (b, own) = plain(*given, **options), ours(*given, **options)
    torch.testing.assert_close(b, a, rtol=0, atol=1e-12)
    assert (weights is None) == (own is None)
    if weights is not None:
        torch.testing.assert_close(own, weights, rtol=0, atol=1e-12)
    wanted = torch.autograd.grad(a.square().sum(), [*given, *plain.parameters()], allow_unused=True)
    got = torch.autograd.grad(b.square().sum(), [*given, *_in_order(plain, ours)], allow_unused=True)
    for first, second in zip(wanted, got, strict=True):
        torch.testing.assert_close(second, first, rtol=0, atol=1e-10)


def _in_order(plain: nn.Module, ours: nn.Module) -> list[nn.Parameter]:
    """Our parameters in the order of torch's, by the names under which they are saved."""
    saved = ours.state_dict(keep_vars=True)
    return [saved[name] for name, _ in plain.named_parameters()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_agrees_with_torch_forward_and_backward(kind, need_weights):
    plain, ours = pair(**KINDS[kind])
    same(plain, ours, inputs(plain), need_weights=need_weights)
    if need_weights:
        same(plain, ours, inputs(plain), average_attn_weights=False)


@pytest.mark.parametrize("kind", ["plain", "time first", "all extra"])
def test_masks_agree_with_torch(kind):
    plain, ours = pair(**KINDS[kind])
    given = inputs(plain)
    causal = torch.ones(4, 5, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False] * 5, [False, False, True, True, True], [False] * 4 + [True]])
    floats = torch.randn(6, 4, 5, dtype=torch.float64)
    for mask, pad, weights in itertools.product((None, causal, floats), (None, padding), (True, False)):
        if mask is floats and pad is not None:  # torch wants both of one kind.
            pad = torch.where(pad, -1.5, 0.0).double()
        same(plain, ours, given, attn_mask=mask, key_padding_mask=pad, need_weights=weights)


def test_self_attention_projects_once():
    plain, ours = pair()
    (x, *_) = inputs(plain)
    seen: list[tuple[int, ...]] = []
    ours.in_proj.register_forward_hook(lambda _module, given, _output: seen.append(tuple(given[0].shape)))
    same(plain, ours, [x, x, x])
    memory = x.detach()[:, :3].requires_grad_()
    same(plain, ours, [x, memory, memory])
    assert seen == [(3, 4, 8), (3, 7, 8)]  # Query, and what is both key and value.


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_checkpoint_loads_and_what_is_saved_is_plain(kind):
    plain, ours = pair(**KINDS[kind])
    assert list(ours.state_dict()) == list(plain.state_dict())
    other = nn.MultiheadAttention(8, 2, **{"batch_first": True, **KINDS[kind]}).double()
    ours.load_state_dict(other.state_dict())
    given = inputs(plain)
    torch.testing.assert_close(ours(*given)[0], other(*given)[0])
    plain.load_state_dict(ours.state_dict())
    torch.testing.assert_close(plain(*given)[0], other(*given)[0])


def test_parameters_are_the_very_same_objects():
    plain = nn.MultiheadAttention(8, 2, kdim=5, add_bias_kv=True)
    assert {id(p) for p in Attention(plain).parameters()} == {id(p) for p in plain.parameters()}


def test_dropout_keeps_its_rate():
    plain = nn.MultiheadAttention(8, 2, dropout=0.25, batch_first=True)
    x = torch.randn(40, 50, 8)
    _, weights = Attention(plain)(x, x, x, average_attn_weights=False)
    dropped = (weights == 0).double().mean().item()
    assert abs(dropped - 0.25) < 0.01  # 200,000 coins: ten standard deviations.
    _, weights = Attention(plain.eval())(x, x, x)
    assert (weights > 0).all()


def test_what_is_no_batch_is_refused():
    _, ours = pair()
    x = torch.zeros(4, 8, dtype=torch.float64)
    with pytest.raises(Refused, match="2 dimensions"):
        ours(x, x, x)
    with pytest.raises(Refused, match="is_causal"):
        ours(x[None], x[None], x[None], is_causal=True)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
def test_whole_transformers_agree_with_torch(batch_first, norm_first):
    options = {"dropout": 0.0, "batch_first": batch_first, "norm_first": norm_first, "dtype": torch.float64}
    torch_own, ours = nn.Transformer(8, 2, 1, 1, 16, **options), nn.Sequential()
    ours.t = nn.Transformer(8, 2, 1, 1, 16, **options)
    ours.t.load_state_dict(torch_own.state_dict())
    parameters = list(ours.parameters())
    prepare(ours)
    assert {id(p) for p in parameters} == {id(p) for p in ours.parameters()}
    src, tgt = torch.randn(5, 3, 8, dtype=torch.float64), torch.randn(4, 3, 8, dtype=torch.float64)
    src, tgt = (x.transpose(0, 1) if batch_first else x for x in (src, tgt))
    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    for model in (torch_own.eval(), torch_own.train()):
        wanted = model(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        got = ours.t(src=src, tgt=tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-10)
        ours.eval()
    assert list(ours.t.state_dict()) == list(torch_own.state_dict())
