"""Bounds on every small picture, and mistakes that the same checks must find."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.learn.torch.layers import SecretNormal
from discreet.learn.torch.layers.row_separation_probe import probe
from discreet.synth.diffusion import Linear
from discreet.synth.diffusion.denoiser import DiffusionRowLosses, build
from discreet.synth.diffusion.warm_up import PictureCoordinates, shortened
from discreet.synth.domain.images import Images
from discreet.synth.merf.features import PictureEmbedding, picture_waves
from discreet.synth.merf.matching import PictureMatching
from discreet.synth.merf.sensitivity import NoisySums, summed

torch.set_num_threads(1)
PAIRS = np.stack(np.meshgrid(np.arange(256), np.arange(256)), axis=-1).reshape(-1, 2)  # all pictures of two pixels


def merf_scaled(brightness: int) -> NDArray[np.int64]:
    embedding = PictureEmbedding(np.zeros((2, 1), np.int32), constant=1, brightness=brightness, darkest=1)
    return embedding._scaled(PAIRS.astype(np.uint8))


def by_a_root_rounded_down(longest: int) -> NDArray[np.int64]:
    return PAIRS * longest // np.maximum(np.sqrt((PAIRS**2).sum(1)).astype(np.int64), 1)[:, None]


@pytest.mark.parametrize("longest", [7, 131, 3000])
def test_no_picture_of_two_pixels_is_longer_than_claimed(longest: int) -> None:
    """Sensitivity is exact: one step beyond is a lie, however small; a root that is rounded down takes it."""
    for bounded in (merf_scaled(longest), shortened(PAIRS, longest)):
        assert int((bounded**2).sum(1).max()) <= longest**2
    assert int((by_a_root_rounded_down(longest) ** 2).sum(1).max()) > longest**2


def test_waves_bound_late_are_caught() -> None:
    """The reference code: every loss uses the last of several waves."""
    pictures = (np.arange(40 * 16).reshape(40, 16) * 37 % 256).astype(np.uint8)
    embedding = PictureEmbedding(picture_waves(4, 4, 30), constant=900, brightness=5000, darkest=300)
    sums = NoisySums(summed(embedding, pictures, np.zeros(40, np.int32), 1), Fraction(1))
    assert is_matched(PictureMatching(embedding, sums), pictures)
    late = PictureMatching(embedding, sums)
    late._waves = late._waves[:, -1:].expand_as(late._waves)
    assert not is_matched(late, pictures)


@torch.no_grad()
def is_matched(matching: PictureMatching, pictures: NDArray[np.uint8]) -> bool:
    matching.canvas.log_spread.fill_(-30)
    picked, wanted = matching.pick(torch.Generator())
    found = matching.features(torch.from_numpy(pictures / 255).float(), picked, torch.Generator())
    return torch.allclose(found.mean(dim=1), wanted, atol=2e-3)


class Drawing(nn.Module):
    def __init__(self, shared: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.draws, self.shared = nn.Linear(3, 2), SecretNormal(1), shared

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x + self.shared(self.draws(x))).square().sum(1)


@pytest.mark.parametrize(
    "shared",
    [lambda n: n.amax(0, keepdim=True), lambda n: n.amin(0, keepdim=True), lambda n: n.mean(0, keepdim=True)],
)
def test_rows_that_share_their_draws_are_refused(shared: Any) -> None:
    """A row that moves to another batch would meet other draws; the greatest of a batch passed as its own."""
    example = torch.zeros(3), torch.zeros(())
    probe(Drawing(lambda own: own), lambda losses, _: losses, example, 32)
    with pytest.raises(Refused, match="mixed"):
        probe(Drawing(shared), lambda losses, _: losses, example, 32)


def test_pictures_of_one_class_can_be_learnt() -> None:
    """Made-up labels are 0 and 1: a model of a single class must stand them, or nobody could train it."""
    around = PictureCoordinates.guessed(4, 1, 0.5)
    network = build(Linear(hidden=3), Images(2, 2, classes=["all"]), around)
    losses = DiffusionRowLosses(network, axes=torch.eye(4), draws=2, drop=0.1, levels=(-1.0, 1.2))
    assert losses(torch.zeros(2, 4), torch.tensor([0, 1])).isfinite().all()
