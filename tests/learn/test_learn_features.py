"""Fixed features: each row by itself, nothing from private data, and a linear model can learn from them."""

from __future__ import annotations

import pytest
import torch

from discreet.errors import InvalidParameter, Refused
from discreet.learn.torch import features
from discreet.learn.torch.features import StrokeFeatures, drawings, scattered

FEATURES = StrokeFeatures(size=16, channels=20, places=10)


@pytest.fixture(scope="module")
def pictures() -> torch.Tensor:
    return drawings(200, 16)[130:]


def test_drawings_are_the_same_every_time_and_differ_from_each_other() -> None:
    shown = drawings(30, 28)
    assert torch.equal(shown, drawings(30, 28))
    assert torch.equal(shown[:10], drawings(10, 28))
    assert shown.min() == 0
    assert shown.max() == 1
    assert (torch.cdist(shown.flatten(1), shown.flatten(1)) + 99 * torch.eye(30)).min() > 1


def test_a_row_does_not_depend_on_its_companions_to_the_last_bit(pictures: torch.Tensor) -> None:
    together = FEATURES(pictures)
    assert torch.equal(together[3], FEATURES(pictures[3:4])[0])
    assert torch.equal(together[5:], FEATURES(pictures[5:]))
    assert torch.equal(together.flip(0), FEATURES(pictures.flip(0)))


def test_rows_that_depend_on_their_place_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = scattered

    def leaning(pictures: torch.Tensor) -> torch.Tensor:
        return plain(pictures) * (1 + 1e-6 * torch.arange(len(pictures)).reshape(-1, 1, 1, 1))

    features._check_slots.cache_clear()
    monkeypatch.setattr(features, "scattered", leaning)
    with pytest.raises(Refused, match="set_num_threads"):
        FEATURES(torch.zeros(1, 16, 16))
    features._check_slots.cache_clear()


def test_rows_have_length_one_whatever_the_picture(pictures: torch.Tensor) -> None:
    odd = torch.stack([torch.full((16, 16), value) for value in (0.0, 1.0, float("nan"), float("inf"), -5.0)])
    rows = FEATURES(torch.cat([pictures, odd]))
    assert rows.shape == (75, FEATURES.count)
    assert torch.allclose(rows.norm(dim=1), torch.ones(75), atol=1e-5)
    assert torch.equal(rows[-5], rows[-3])  # What is no number is blank.
    assert torch.equal(rows[-4], rows[-2])  # What is too bright is as bright as can be.


def test_bytes_and_floats_of_the_same_picture_agree(pictures: torch.Tensor) -> None:
    whole = (pictures * 255).round().to(torch.uint8)
    assert torch.equal(FEATURES(whole), FEATURES(whole.float() / 255))


def test_no_pictures_give_no_rows() -> None:
    assert FEATURES(torch.zeros(0, 16, 16)).shape == (0, 200)


def test_a_little_shift_moves_features_less_than_pixels(pictures: torch.Tensor) -> None:
    moved = pictures.roll(1, 2)
    pixels = [x.flatten(1) / x.flatten(1).norm(dim=1, keepdim=True) for x in (pictures, moved)]
    blurred = [x.flatten(1) / x.flatten(1).norm(dim=1, keepdim=True) for x in map(scattered, (pictures, moved))]
    assert (blurred[0] - blurred[1]).norm() < 0.5 * (pixels[0] - pixels[1]).norm()


def test_waves_of_the_right_direction_are_strongest() -> None:
    down, across = torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij")
    upright, level = (1 + torch.cos(0.75 * torch.pi * part) for part in (across, down))
    found = scattered(torch.stack([upright, level]))[:, 1:9].mean((2, 3))
    assert found.argmax(1).tolist() == [0, 4]
    assert (found.max(1).values > 3 * found.min(1).values).all()


def test_a_flat_picture_has_no_waves() -> None:
    inside = scattered(torch.ones(1, 64, 64))[:, 1:, 5:-5, 5:-5]
    assert inside.abs().max() < 1e-4


@pytest.mark.parametrize(
    "wrong", [{"size": 27}, {"size": 8}, {"size": 68}, {"channels": 0}, {"channels": 82}, {"places": 50}, {"places": 0}]
)
def test_sizes_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        StrokeFeatures(**wrong)


@pytest.mark.parametrize("wrong", [torch.zeros(2, 28, 28), torch.zeros(16, 16), torch.zeros(2, 16, 16).int(), [[0.0]]])
def test_what_is_no_picture_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidParameter, match="pictures must be"):
        FEATURES(wrong)  # type: ignore[arg-type]
