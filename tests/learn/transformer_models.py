"""Models as people take them from `transformers`, small and with random weights: nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

torch.set_num_threads(1)

LENGTH, WORDS = 9, 40
PAIR = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 16}


def of_class(output: Any, y: Tensor) -> Tensor:
    return functional.cross_entropy(output.logits, y, reduction="none")


def of_words(output: Any, y: Tensor) -> Tensor:
    """Of each row the mean over its words of how badly the next one was foretold."""
    scores = output.logits[:, :-1].transpose(1, 2)
    return functional.cross_entropy(scores, y[:, 1:], reduction="none").mean(dim=1)


class Known(NamedTuple):
    make: Callable[[], nn.Module]
    inputs: Callable[[int], dict[str, Tensor]]
    loss: Callable[[Any, Tensor], Tensor]

    def batch(self, rows: int) -> tuple[dict[str, Tensor], Tensor]:
        x = self.inputs(rows)
        return x, x["input_ids"] if self.loss is of_words else torch.arange(rows) % 2


def texts(rows: int) -> dict[str, Tensor]:
    """Texts of several lengths, padded, the first of them full."""
    ids = (torch.arange(rows * LENGTH).reshape(rows, LENGTH) * 7 + torch.arange(rows)[:, None] * 3) % (WORDS - 1) + 1
    shown = torch.arange(LENGTH)[None] < LENGTH - torch.arange(rows)[:, None] % 4
    return {"input_ids": ids * shown, "attention_mask": shown.long()}


def full_texts(rows: int) -> dict[str, Tensor]:
    return {"input_ids": texts(rows)["input_ids"] + 0}


def images(rows: int) -> dict[str, Tensor]:
    numbers = torch.sin(torch.arange(rows * 3 * 64) * 1.7)
    return {"pixel_values": numbers.reshape(rows, 3, 8, 8)}


def bert(**more: Any) -> nn.Module:
    config = transformers.BertConfig(vocab_size=WORDS, max_position_embeddings=16, **PAIR, **more)
    return transformers.BertForSequenceClassification(config)


def distilbert() -> nn.Module:
    config = transformers.DistilBertConfig(
        vocab_size=WORDS, dim=8, n_layers=2, n_heads=2, hidden_dim=16, max_position_embeddings=16
    )
    return transformers.DistilBertForSequenceClassification(config)


def gpt2(kind: str = "GPT2LMHeadModel", **more: Any) -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_embd=8, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0,
        pad_token_id=0, **more,
    )  # fmt: skip
    return getattr(transformers, kind)(config)


def vit(**more: Any) -> nn.Module:
    return transformers.ViTForImageClassification(transformers.ViTConfig(image_size=8, patch_size=4, **PAIR, **more))


DROPPING = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
MODELS: dict[str, Known] = {
    "bert": Known(bert, texts, of_class),
    "bert, eager": Known(lambda: bert(attn_implementation="eager"), texts, of_class),
    "distilbert": Known(distilbert, texts, of_class),
    "gpt2": Known(gpt2, full_texts, of_words),
    "gpt2 with padding": Known(gpt2, texts, of_words),
    "gpt2, of classes": Known(lambda: gpt2("GPT2ForSequenceClassification"), texts, of_class),
    "vit": Known(vit, images, of_class),
    "vit with dropout": Known(lambda: vit(**DROPPING), images, of_class),
}


def made(name: str) -> nn.Module:
    """Always the same weights, so that what is compared does not depend on the order of tests."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MODELS[name].make()
        with torch.no_grad():  # Weights of 0.02 and biases of 0 hide what is forgotten.
            for weight in model.parameters():
                weight.add_(torch.randn(weight.shape), alpha=0.3)
    return model.train()
