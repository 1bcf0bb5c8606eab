"""Models are made ready in place, refused by type with a way out, mended, and told about."""

from __future__ import annotations

import copy
import json
import re

import pytest
import torch
from learn_zoo import GOOD, LastOf, Transformer
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

from discreet.errors import Refused
from discreet.learn.torch.layers import LayerReport, fix, prepare
from discreet.learn.torch.layers.secret_draws import SecretDropout

torch.set_num_threads(1)


class OwnLSTM(nn.LSTM):
    """A kind of LSTM of somebody's own."""


class Standardised(nn.Conv2d):
    """Weight standardisation: the rule of Conv2d would be wrong for it."""

    def forward(self, x):
        weight = self.weight - self.weight.mean()
        return self._conv_forward(x, weight, self.bias)


def hooked() -> nn.LSTM:
    layer = nn.LSTM(2, 2)
    layer.register_forward_hook(lambda *_: None)
    return layer


def hooked_parameter() -> nn.Linear:
    layer = nn.Linear(2, 2)
    layer.weight.register_hook(lambda gradient: gradient * 0)
    return layer


REFUSED = {
    "BatchNorm1d": (lambda: nn.BatchNorm1d(32), r"GroupNorm\(8, 32\).*fix\(model\)"),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(6), r"GroupNorm\(1, 6\)"),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(64), r"GroupNorm\(16, 64\)"),
    "InstanceNorm": (lambda: nn.InstanceNorm2d(4, track_running_stats=True), "track_running_stats=False"),
    "lazy": (lambda: nn.LazyLinear(3), "call the model once"),
    "lazy BatchNorm": (lambda: nn.LazyBatchNorm1d(), "call the model once"),
    "old weight_norm": (lambda: weight_norm(nn.Linear(2, 2)), "remove the parametrisation"),
    "spectral_norm": (lambda: parametrizations.spectral_norm(nn.Linear(2, 2)), "remove the parametrisation"),
    "old spectral_norm": (lambda: spectral_norm(nn.Linear(2, 2)), "remove the parametrisation"),
    "Embedding, max_norm": (lambda: nn.Embedding(3, 2, max_norm=1.0), "without max_norm"),
    "Embedding, by frequency": (lambda: nn.Embedding(3, 2, scale_grad_by_freq=True), "scale_grad_by_freq=False"),
    "Embedding, sparse": (lambda: nn.Embedding(3, 2, sparse=True), "sparse=False"),
    "adaptive softmax": (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4]), "cross_entropy"),
    "own LSTM": (lambda: OwnLSTM(2, 2), "plain LSTM inside"),
    "hooks": (hooked, "after prepare"),
    "RReLU": (nn.RReLU, "without chance"),
    "AlphaDropout": (nn.AlphaDropout, "nn.Dropout"),
    "scripted": (lambda: torch.jit.script(nn.Linear(2, 2)), "before torch.jit"),
    "compiled": (lambda: torch.compile(nn.Linear(2, 2)), "before torch.compile"),
    "quantised": (lambda: torch.ao.nn.quantized.Linear(2, 2), "quantise what was trained"),
    "hooked parameter": (hooked_parameter, "into the optimizer"),
    "complex": (lambda: nn.Linear(2, 2, dtype=torch.complex64), "two real parameters"),
    "no values": (lambda: nn.Linear(2, 2, device="meta"), "ordinary tensors"),
}


@pytest.mark.filterwarnings("ignore")  # torch warns that some of these are old.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "compiled" else []) for name in REFUSED]
)
def test_what_cannot_be_trained_privately_is_refused_by_type_with_its_place_and_a_way_out(name):
    make, way_out = REFUSED[name]
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True), nn.Sequential(make()))
    with pytest.raises(Refused, match=r"2\.0: ") as told:
        prepare(model)
    assert told.value.reason
    assert re.search(way_out, told.value.way_out)
    assert model[1].inplace  # Nothing at all was changed.


def test_all_refused_layers_are_named_at_once():
    with pytest.raises(Refused, match=r"2 layers .* 0: BatchNorm1d; 1: RReLU"):
        prepare(nn.Sequential(nn.BatchNorm1d(4), nn.RReLU(), nn.Linear(4, 2)))


def test_a_model_that_is_itself_one_fused_layer_or_frozen_is_refused():
    with pytest.raises(Refused, match="itself is a LSTM"):
        prepare(nn.LSTM(2, 2))
    with pytest.raises(Refused, match="no parameters to train"):
        prepare(nn.Linear(2, 2).requires_grad_(False))


@pytest.mark.parametrize("name", GOOD)
def test_prepared_models_keep_parameters_names_and_results(name):
    make, (x, _) = GOOD[name]
    model = make().eval()
    plain = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert prepare(model).model is model
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert set(held) == {id(p) for p in model.parameters()}
    assert list(model.state_dict()) == list(plain.state_dict())
    rows = torch.ones(3, *x.shape, dtype=x.dtype)
    torch.testing.assert_close(model(rows), plain(rows), rtol=1e-6, atol=1e-6)
    model.load_state_dict(plain.state_dict())
    plain.load_state_dict(model.state_dict())


def test_preparing_twice_changes_nothing_more():
    model = Transformer(batch_first=False)
    assert prepare(model).changes
    before = copy.deepcopy(model)
    assert prepare(model).changes == ()
    words = torch.zeros(2, 5, dtype=torch.int64)
    assert torch.equal(model.eval()(words), before.eval()(words))


def test_a_layer_in_two_places_stays_one_and_tied_weights_stay_tied():
    shared = nn.LSTM(4, 4, batch_first=True)
    model = nn.ModuleDict({"a": LastOf(shared, 4), "b": LastOf(shared, 4)})
    model["b"].head.weight = model["a"].head.weight
    prepare(model)
    assert model["a"].layer is model["b"].layer
    assert model["a"].head.weight is model["b"].head.weight


def test_dropout_is_secret_and_keeps_its_rate():
    model = nn.Sequential(nn.Dropout(0.25), nn.Dropout2d(0.5), nn.Linear(2, 2))
    prepare(model)
    assert isinstance(model[0], SecretDropout)
    state = torch.get_rng_state()
    first, channels = model[0](torch.ones(100_000)), model[1](torch.ones(1000, 100, 2, 2))
    assert torch.equal(state, torch.get_rng_state())
    assert abs((first == 0).float().mean().item() - 0.25) < 0.01  # Seven standard deviations.
    torch.testing.assert_close(first.unique(), torch.tensor([0.0, 4 / 3]))
    assert (channels.flatten(2).amax(2) == channels.flatten(2).amin(2)).all()  # Whole channels.
    assert abs((channels == 0).float().mean().item() - 0.5) < 0.012
    assert torch.equal(model.eval()[0](torch.ones(9)), torch.ones(9))


def test_the_same_rows_are_dropped_otherwise_each_time_even_from_one_torch_seed():
    layer = SecretDropout(nn.Dropout(0.5))
    drawn = []
    for _ in range(2):
        torch.manual_seed(1)
        drawn.append(layer(torch.ones(256)))
    assert not torch.equal(*drawn)


@pytest.mark.filterwarnings("ignore")
def test_fix_mends_what_is_refused_and_says_so():
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.InstanceNorm2d(32, affine=True, track_running_stats=True),
        parametrizations.weight_norm(nn.Conv2d(32, 4, 3)), weight_norm(nn.Conv2d(4, 4, 1)), nn.Flatten(),
        parametrizations.spectral_norm(nn.Linear(64, 3)),
    )  # fmt: skip
    kept = [model[0].weight, model[1].weight, model[1].bias, model[2].weight]
    done = fix(model)
    assert done[0] == "1: BatchNorm2d -> GroupNorm(8, 32)"
    assert len(done) == 4  # weight_norm as a parametrisation has no buffers, and may stay.
    assert all(any(p is old for p in model.parameters()) for old in kept)
    assert prepare(model).changes == ()
    assert not list(model.buffers())
    assert model(torch.ones(2, 1, 8, 8)).shape == (2, 3)
    assert fix(model) == ()


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 7, 8, 10, 32, 48, 512])
def test_group_norm_fits_for_all_numbers_of_channels(channels):
    model = nn.Sequential(nn.BatchNorm1d(channels, affine=channels != 7))
    fix(model)
    assert model(torch.ones(3, channels)).shape == (3, channels)
    assert model[0].num_groups <= 32


def test_the_report_says_how_each_layer_is_handled():
    model = nn.ModuleDict(
        {
            "conv": nn.Conv2d(1, 2, 3),
            "own": Standardised(1, 2, 3),
            "prelu": nn.PReLU(),
            "frozen": nn.Linear(2, 2).requires_grad_(False),
            "attention": nn.MultiheadAttention(4, 2),
            "relu": nn.ReLU(inplace=True),
            "drop": nn.Dropout(),
            "norm": nn.BatchNorm2d(8),
        }
    )
    report = LayerReport.of(model)
    assert {layer.path: (layer.handling, layer.parameters) for layer in report.layers} == {
        "conv": ("book-keeping", 20),
        "own": ("fallback", 20),
        "prelu": ("fallback", 1),
        "frozen": ("frozen", 6),
        "attention": ("replaced", 80),
        "relu": ("changed", 0),
        "drop": ("changed", 0),
        "norm": ("refused", 16),
    }
    lines = str(report).splitlines()
    assert lines[0].split() == ["layer", "type", "parameters", "handled", "what", "to", "know"]
    assert "GroupNorm(2, 8)" in lines[-1]
    assert [row["path"] for row in json.loads(report.to_json())["layers"]] == [layer.path for layer in report.layers]


def test_what_was_changed_is_printed():
    told = str(prepare(Transformer()))
    assert "body.layers.0.self_attn: MultiheadAttention built from Linear cells" in told
    assert str(prepare(nn.Sequential(nn.Linear(2, 2)))).endswith("- nothing")
