"""Norms and clipped sums agree with `torch.func`, for every layer, rule and cut into physical batches."""

from __future__ import annotations

import pytest
import torch
from clipped_models import MODELS, squares
from clipped_reference import clipped, our_sum, row_gradients

from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, Flat, PerLayer

ROWS = 40


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(7)


@pytest.mark.parametrize("name", MODELS)
def test_norms_and_clipped_sums_agree_with_torch_func(name: str) -> None:
    build, draw = MODELS[name]
    model, inputs, targets = build(), draw(ROWS), torch.rand(ROWS)
    rows = row_gradients(model, inputs, targets, squares)
    middle = float(torch.cat(list(rows.values()), 1).norm(dim=1).median())
    for clip, physical in _rules(middle):
        norms, total = our_sum(model, inputs, targets, squares, clip, physical)
        true_norms, true_total = clipped(model, rows, clip)
        true_norms = true_norms[:, true_norms.sum(0) > 0]  # A layer that the loss never uses has no norm at all.
        assert torch.allclose(norms, true_norms, rtol=1e-5, atol=1e-12)
        assert float((total - true_total).norm()) < 1e-5 * float(true_total.norm())


def _rules(middle: float) -> list[tuple[Clip, int]]:
    """Return every rule, with rows in one padded batch or in three."""
    return [
        (Flat(middle), 64),
        (Flat(middle), 16),
        (PerLayer(middle), 16),
        (Automatic(middle, gamma=middle / 10), 40),
        (AdaptiveClip(middle), 40),
    ]
