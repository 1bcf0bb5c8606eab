"""The tables of the page on layers are what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from torch import nn

from discreet.learn.torch.clipping.layer_rules import _RULES
from discreet.learn.torch.layers import LayerReport
from discreet.learn.torch.layers.layer_report import DROPOUTS, FUSED

PAGE = (Path(__file__).parents[2] / "docs" / "learn" / "layers.md").read_text()
HANDLINGS = "book-keeping|fallback|replaced|changed"
ROWS = {
    name: handling
    for names, handling in re.findall(rf"^\| (`[^|]*`) \| ({HANDLINGS}) \|", PAGE, re.MULTILINE)
    for name in re.findall(r"`(\w+)`", names)
}

MADE = {
    "Linear": lambda: nn.Linear(2, 2),
    "Embedding": lambda: nn.Embedding(2, 2),
    "LayerNorm": lambda: nn.LayerNorm(2),
    "RMSNorm": lambda: nn.RMSNorm(2),
    "GroupNorm": lambda: nn.GroupNorm(1, 2),
    "MultiheadAttention": lambda: nn.MultiheadAttention(2, 1),
    "Bilinear": lambda: nn.Bilinear(2, 2, 2),
    "PReLU": lambda: nn.PReLU(),
    "EmbeddingBag": lambda: nn.EmbeddingBag(2, 2),
    "ReLU": lambda: nn.ReLU(inplace=True),
}


def made(name: str) -> nn.Module:
    """A layer of this name: convolutions, recurrent layers, norms and dropouts are alike in what they take."""
    kind = getattr(nn, name)
    if name in MADE:
        return MADE[name]()
    if name.startswith("Conv"):
        return kind(1, 1, 1)
    if name.startswith("Dropout"):
        return kind()
    return kind(2, affine=True) if name.startswith("Instance") else kind(2, 2)


@pytest.mark.parametrize("name", ROWS)
def test_a_layer_is_handled_as_the_page_says(name):
    (layer,) = LayerReport.of(nn.Sequential(made(name))).layers
    assert layer.handling == ROWS[name]


def test_no_layer_that_is_handled_is_missing_on_the_page():
    known = {kind.__name__ for kind in (*_RULES, *FUSED, *DROPOUTS)}
    assert known <= set(ROWS)
    assert len(ROWS) > 25


def test_the_report_on_the_page_is_the_one_that_is_printed():
    shown = re.search(r"```text\n(layer .*?)\n```", PAGE, re.DOTALL)
    assert shown is not None
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 10)
    )
    printed = str(LayerReport.of(model)).splitlines()
    for line, told in zip(printed, shown[1].splitlines(), strict=True):
        assert line.startswith(told.partition(" …")[0].rstrip())
