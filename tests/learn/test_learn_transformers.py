"""Models of `transformers` as they come, and adapters of `peft`, are trained row by row with secret masks."""

from __future__ import annotations

import io
from contextlib import closing
from copy import deepcopy
from typing import Any

import peft
import private_runs
import pytest
import torch
from clipped_reference import GRID, norms_seen
from torch import Tensor, nn
from torch.nn import functional
from transformer_models import MODELS, WORDS, bert, gpt2, images, made, of_class, texts, vit

from discreet.errors import Refused
from discreet.learn.torch import load_weights, make_private, make_private_stream, run_guard
from discreet.learn.torch.clipping import clipped_sums, layer_rules, tape
from discreet.learn.torch.clipping.clipped_sums import ClippedSums
from discreet.learn.torch.layers import LayerReport, prepare, probe, secret_draws
from discreet.learn.torch.layers.secret_draws import SecretFunctions, known_masks

ROWS = 32


def example(name: str) -> Any:
    x, y = MODELS[name].batch(2)
    return {key: part[0] for key, part in x.items()}, y[0]


def masks(rows: int) -> Tensor:
    """Where coins would fall, each row is multiplied by a number of its own, in training and by brute force alike."""
    return 0.5 + torch.arange(rows) % 5 / 4


def assert_exact(model: nn.Module, x: Any, y: Tensor, loss: Any, *, rough: bool = False) -> None:
    """Norms and clipped sums are those of each row's gradient as autograd finds it, one row after the other."""
    rows = len(y)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    with closing(SecretFunctions(model)), known_masks(masks(rows)):
        losses = loss(model(**x), y)
        each = [torch.autograd.grad(losses[row], trained, retain_graph=True, allow_unused=True) for row in range(rows)]
        flat = torch.stack([torch.cat([_or_zeros(g, w) for g, w in zip(row, trained, strict=True)]) for row in each])
        norms = flat.double().norm(dim=1)
        clip = float(norms.median())
        sums = ClippedSums(model, clip=clip, grid=GRID, physical_batch=rows)
        with closing(sums), norms_seen() as seen:
            loss_again = loss(model(**x), y)
            seen.clear()
            sums.add(loss_again, torch.ones(rows, dtype=torch.bool))
            found, total = seen[-1], torch.from_numpy(sums.take().whole()) * float(GRID)
    expected = (flat.double() * (clip / norms).clamp(max=1.0)[:, None]).sum(0)
    torch.testing.assert_close(found.double(), norms, rtol=0.02 if rough else 1e-4, atol=1e-7)
    torch.testing.assert_close(total, expected, rtol=1e-3, atol=(0.05 if rough else 1e-5) * clip)


def _or_zeros(gradient: Tensor | None, weight: Tensor) -> Tensor:
    return torch.zeros(weight.numel()) if gradient is None else gradient.flatten()


def run(model: nn.Module, name: str, **more: Any) -> Any:
    known, trained = MODELS[name], [weight for weight in model.parameters() if weight.requires_grad]
    settings: dict[str, Any] = {
        "loss": known.loss, "noise_multiplier": 1, "delta": 1e-5, "public_rows": 64, "batch_size": 32, "steps": 2,
        **more,
    }  # fmt: skip
    return make_private(model, torch.optim.SGD(trained, lr=0.1), known.batch(64), **settings)


class TestModels:
    @pytest.mark.some(4)
    @pytest.mark.parametrize("name", MODELS)
    def test_rows_stay_apart(self, name):
        model = prepare(made(name)).model
        assert len(probe(model, MODELS[name].loss, example(name), ROWS).layers) > 10

    @pytest.mark.parametrize("name", MODELS)
    def test_norms_and_sums_are_those_of_single_rows(self, name):
        model = prepare(made(name)).model
        assert_exact(model, *MODELS[name].batch(ROWS), MODELS[name].loss)

    @pytest.mark.some(2)
    @pytest.mark.parametrize("name", ["bert", "distilbert", "gpt2 with padding", "vit with dropout"])
    def test_they_are_trained_saved_and_loaded(self, name, tmp_path):
        model = made(name)
        before = deepcopy(model)
        private = run(model, name).fit(progress=False)
        assert private.finished
        assert model.state_dict().keys() == before.state_dict().keys()
        assert all(not torch.equal(a, b) for a, b in zip(model.parameters(), before.parameters(), strict=True))
        private.export(tmp_path / "weights.safetensors")
        load_weights(before, tmp_path / "weights.safetensors")
        x, _ = MODELS[name].batch(3)
        said = model.eval()(**x).logits
        assert torch.equal(before.eval()(**x).logits, said)
        assert torch.equal(whole(model)(**x).logits, said)

    def test_no_layer_of_them_needs_the_slow_way(self):
        for name in MODELS:
            assert {layer.handling for layer in LayerReport.of(made(name)).layers} <= {"book-keeping", "changed"}

    def test_tied_weights_are_one_parameter_whose_gradients_add_up(self):
        model = gpt2()
        assert model.lm_head.weight is model.transformer.wte.weight
        untied = gpt2(tie_word_embeddings=False)
        assert sum(p.numel() for p in untied.parameters()) > sum(p.numel() for p in model.parameters())


def whole(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class TestAdapters:
    @pytest.mark.some(2)
    @pytest.mark.parametrize(
        ("name", "targets"), [("bert", ["query", "value"]), ("gpt2", ["c_attn"]), ("vit", ["q_proj", "v_proj"])]
    )
    def test_only_adapters_learn_and_their_norms_are_exact(self, name, targets):
        model = adapted(made(name), targets)
        assert_exact(prepare(model).model, *MODELS[name].batch(ROWS), MODELS[name].loss)
        before = {key: value.clone() for key, value in model.state_dict().items()}
        assert run(model, name).fit(progress=False).finished
        moved = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
        assert moved == {key for key in before if "lora_" in key}
        x, _ = MODELS[name].batch(3)
        said = model.eval()(**x).logits
        torch.testing.assert_close(model.merge_and_unload()(**x).logits, said)

    def test_an_adapter_that_uses_weights_of_others_is_refused_before_it_is_paid_for(self):
        model = adapted(made("bert"), ["query"], use_dora=True)
        with pytest.raises(Refused, match=r"query\.lora_A\.default gives shape"):
            run(model, "bert")


def adapted(model: nn.Module, targets: list[str], **more: Any) -> Any:
    fan = any("c_attn" in target for target in targets)
    config = peft.LoraConfig(r=2, lora_dropout=0.1, target_modules=targets, fan_in_fan_out=fan, **more)
    found = peft.get_peft_model(model, config)
    with torch.no_grad():  # An adapter begins as nothing: then half of its gradients are zero.
        for key, weight in found.named_parameters():
            if "lora_B" in key:
                weight.copy_(torch.sin(torch.arange(weight.numel())).reshape(weight.shape))
    return found.train()


class TestSecretMasks:
    @pytest.mark.parametrize("how", ["sdpa", "eager"])
    def test_dropout_inside_of_attention_does_not_follow_torchs_seed(self, how):
        model = bert(attn_implementation=how, hidden_dropout_prob=0.0, classifier_dropout=0.0).train()
        x, state = texts(4), torch.get_rng_state()
        said = []
        with closing(SecretFunctions(model)):
            for _ in range(2):
                torch.manual_seed(0)
                said.append(model(**x).logits)
                assert torch.equal(torch.get_rng_state(), torch.manual_seed(0).get_state())
        torch.set_rng_state(state)
        assert not torch.equal(*said)

    def test_coins_fall_as_often_as_dropout_says(self):
        """A value of ones, and scores of zero: what comes out is the share of keys that are left, over 3/4."""
        query, key, value = (torch.zeros(2, 2, 40, 4) for _ in range(3))
        with secret_mode():
            found = functional.scaled_dot_product_attention(query, key, value + 1, dropout_p=0.25)
        left = found[..., 0] * 0.75 * 40  # of 40 keys each, 160 queries
        torch.testing.assert_close(left, left.round(), rtol=0, atol=1e-3)
        assert abs(float(left.mean()) - 30) < 6.5 * (40 * 0.25 * 0.75 / 160) ** 0.5  # 6.5 deviations: 1e-10
        assert len(left.unique()) > 3

    @pytest.mark.parametrize("shape", ["plain", "causal", "bool", "float", "hidden", "grouped"])
    def test_attention_is_torchs_where_nothing_falls(self, shape):
        query, key, value, options = attention(shape)
        inputs = [part.requires_grad_() for part in (query, key, value)]
        plain = functional.scaled_dot_product_attention(*inputs, **options)
        with secret_mode(), known_masks(torch.full((4,), 0.9)):  # Nine tenths over nine tenths.
            ours = functional.scaled_dot_product_attention(*inputs, **options, dropout_p=0.1)
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)
        for found, expected in zip(
            *(torch.autograd.grad(out.sin().sum(), inputs) for out in (ours, plain)), strict=True
        ):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)

    def test_functions_are_torchs_again_after_an_error_and_after_the_run(self):
        model = nn.Sequential(nn.Linear(3, 3), Failing())
        secret = SecretFunctions(model)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                model(torch.ones(2, 3))
            assert follows_the_seed()
        secret.close()
        assert not model._forward_hooks
        assert not model._forward_pre_hooks

    def test_a_loss_that_drops_is_refused(self):
        model = prepare(made("bert")).model
        with pytest.raises(Refused, match="draws random numbers"):
            probe(model, lambda out, y: functional.dropout(of_class(out, y), 0.5), example("bert"), ROWS)

    def test_masks_that_would_be_drawn_again_are_refused(self):
        model = bert(hidden_dropout_prob=0.0).train()
        model.gradient_checkpointing_enable()
        with pytest.raises(Refused, match="drawn a second time"):
            run(model, "bert")

    def test_a_frozen_norm_stays_and_a_learning_one_is_refused(self):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
        with pytest.raises(Refused, match="1: BatchNorm2d"):
            prepare(model)
        model[1].eval()
        with pytest.raises(Refused, match="requires_grad_"):
            prepare(model)
        model[1].requires_grad_(False)
        x, y = images(ROWS)["pixel_values"], torch.arange(ROWS) % 2
        private = make_private(
            model, torch.optim.SGD(model.parameters(), lr=0.1), (x, y),
            loss=nn.CrossEntropyLoss(reduction="none"), noise_multiplier=1, delta=1e-5, public_rows=32,
            batch_size=32, steps=2,
        )  # fmt: skip
        assert private.fit(progress=False).finished
        assert torch.equal(model[1].running_mean, torch.zeros(4))


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert not follows_the_seed()
        raise ZeroDivisionError


def follows_the_seed() -> bool:
    state, found = torch.get_rng_state(), []
    for _ in range(2):
        torch.manual_seed(0)
        found.append(functional.dropout(torch.ones(200), 0.5))
    torch.set_rng_state(state)
    return torch.equal(*found)


def secret_mode() -> Any:
    return secret_draws._SecretMode()


def attention(shape: str) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
    numbers = torch.sin(torch.arange(3 * 4 * 2 * 5 * 4) * 2.3).reshape(3, 4, 2, 5, 4)
    hidden = torch.arange(5)[None, None, None] < 5 - torch.arange(4)[:, None, None, None]
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "causal": {"is_causal": True, "scale": 0.3},
        "bool": {"attn_mask": hidden},
        "float": {"attn_mask": torch.where(hidden, 0.2, -torch.inf)},
        "hidden": {"attn_mask": hidden & (torch.arange(4) > 0)[:, None, None, None]},
        "grouped": {"enable_gqa": True},
    }
    query, key, value = numbers.unbind()
    if shape == "grouped":
        query = torch.cat([query, query.flip(0)], 1)
    return query.clone(), key.clone(), value.clone(), options[shape]


class TestHalfPrecision:
    @pytest.mark.parametrize("name", ["bert", "gpt2", "vit with dropout"])
    def test_norms_are_those_of_single_rows_as_far_as_its_eight_bits_go(self, name):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_exact(prepare(made(name)).model, *MODELS[name].batch(ROWS), MODELS[name].loss, rough=True)

    def test_whatever_is_clipped_is_float32(self, monkeypatch):
        seen: list[torch.dtype] = []
        real = clipped_sums.combine

        def watched(parts: list[Any]) -> Any:
            fields = ("values", "left", "right")
            seen.extend(getattr(part, field).dtype for part in parts for field in fields if hasattr(part, field))
            return real(parts)

        monkeypatch.setattr(clipped_sums, "combine", watched)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            run(made("vit with dropout"), "vit")
        assert set(seen) == {torch.float32}

    def test_weights_are_learnt_inside_of_one_context(self):
        """The cache of autocast would keep what the weights were."""
        assert torch.equal(*said_inside_and_after())

    def test_a_cache_that_is_kept_is_caught(self, monkeypatch):
        monkeypatch.setattr(run_guard, "clear_autocast_cache", lambda: None)
        assert not torch.equal(*said_inside_and_after())

    def test_weights_that_a_folder_brings_back_are_used_inside_of_the_context(self, tmp_path):
        half = {"device_type": "cpu", "dtype": torch.bfloat16}
        x, model = private_runs.rows(8)[0], private_runs.model_of()
        with torch.autocast(**half):
            private_runs.run(checkpoint=tmp_path / "run").fit(progress=False).close()
            private_runs.run(model, checkpoint=tmp_path / "run").close()
            inside = model(x)
        with torch.autocast(**half):
            assert torch.equal(inside, model(x))

    def test_a_mask_whose_absence_changes_the_kind_of_numbers_is_refused(self):
        """eager attention adds a float32 mask to bfloat16 scores, and without one they stay bfloat16."""
        with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(Refused, match="mixed at"):
            probe(prepare(made("bert, eager")).model, of_class, example("bert"), ROWS)

    @pytest.mark.parametrize("padding", [0, WORDS - 1])
    def test_so_is_one_that_is_made_from_the_words(self, padding):
        """Which of them is padding is known from the configuration."""
        ids = (torch.zeros(SHORT, dtype=torch.int64), torch.tensor(0))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with pytest.raises(Refused, match="mixed at"):
                probe(prepare(Masking("eager", padding)).model, of_class, ids, ROWS)
            probe(prepare(Masking("sdpa", padding)).model, of_class, ids, ROWS)

    def test_another_kind_of_float_is_refused(self):
        with torch.autocast("cpu", dtype=torch.float16), pytest.raises(Refused, match="bfloat16 only"):
            run(made("vit"), "vit")


SHORT = 6


class Masking(nn.Module):
    """BERT that hides padding by itself. Weights are large, so that scores differ where they are rounded otherwise."""

    def __init__(self, how: str, padding: int) -> None:
        super().__init__()
        self.body = bert(attn_implementation=how, pad_token_id=padding)
        self.padding = padding
        with torch.no_grad():
            for weight in self.body.parameters():
                weight.mul_(6.0 if weight.dim() > 1 else 1.0)

    def forward(self, ids: Tensor) -> Any:
        return self.body(input_ids=ids, attention_mask=ids.ne(self.padding).long())


def said_inside_and_after() -> tuple[Tensor, Tensor]:
    """What a trained model says in the context it was trained in, and what in another."""
    half = {"device_type": "cpu", "dtype": torch.bfloat16}
    x, model = private_runs.rows(8)[0], private_runs.model_of()
    with torch.autocast(**half):
        private_runs.run(model).fit(progress=False)
        inside = model(x)
    with torch.autocast(**half):
        return inside, model(x)


class TestOthersWhoTrain:
    def test_people_with_several_rows(self):
        model = made("vit with dropout")
        private = run(
            model, "vit", unit={"person": torch.arange(64) // 3}, max_rows=2, public_rows=None, public_units=20,
            batch_size=16,
        )  # fmt: skip
        assert private.fit(progress=False).finished

    def test_streams(self):
        model, known = made("distilbert"), MODELS["distilbert"]
        private = make_private_stream(
            model, torch.optim.SGD(model.parameters(), lr=0.1), known.batch(64), loss=known.loss, noise_multiplier=1,
            delta=1e-5, public_rows=64, batch_size=32, epochs=1,
        )  # fmt: skip
        assert private.fit(progress=False).finished


class TestPlantedMistakes:
    """What a careful person might write, and these tests find."""

    def test_masks_of_torch_are_noticed(self, monkeypatch):
        monkeypatch.setattr(secret_draws, "_SECRET", {})
        model = prepare(bert(hidden_dropout_prob=0.0)).model.train()
        with pytest.raises(Refused, match="draws random numbers"):
            probe(model, of_class, example("bert"), ROWS)

    def test_a_weight_that_is_taken_the_other_way_round_is_noticed(self, monkeypatch):
        monkeypatch.setattr(layer_rules, "transposed_linear", layer_rules.linear)
        with pytest.raises(AssertionError):
            assert_exact(prepare(made("gpt2")).model, *MODELS["gpt2"].batch(ROWS), MODELS["gpt2"].loss)

    def test_positions_whose_gradient_all_rows_share_are_noticed(self, monkeypatch):
        monkeypatch.setattr(tape, "shared_by_rows", lambda module: {})
        with pytest.raises(Refused, match="drawn a second time"):
            assert_exact(prepare(made("vit with dropout")).model, *MODELS["vit"].batch(ROWS), of_class)

    def test_one_mask_for_all_rows_of_attention_is_noticed(self, monkeypatch):
        def shared(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, **_: Any) -> Tensor:
            weights = (query @ key.transpose(-2, -1)).softmax(-1)
            return weights * secret_draws.drop(torch.ones(weights.shape[1:]), 0.1, True) @ value

        changed = {**secret_draws._SECRET, functional.scaled_dot_product_attention: shared}
        monkeypatch.setattr(secret_draws, "_SECRET", changed)
        with pytest.raises(Refused, match="gets a tensor of shape"):
            probe(prepare(vit(attention_probs_dropout_prob=0.1).train()).model, of_class, example("vit"), ROWS)
