"""Diffusion: scalings and samplers do what they say, models come back from files, nonsense is refused."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import discreet as dp
from discreet.privacy import Relation
from discreet.synth.diffusion import Convolutional, Ddim, Diffusion, Heun, Linear, WarmUp
from discreet.synth.diffusion.denoiser import DiffusionRowLosses, build
from discreet.synth.diffusion.diffusion_model import DiffusionModel
from discreet.synth.diffusion.sampling import follow, guided
from discreet.synth.diffusion.warm_up import CentralRelease, PictureCoordinates, shortened
from discreet.synth.domain.images import Images
from discreet.synth.method import Terms

torch.set_num_threads(1)
DOMAIN = Images(4, 4, classes=("left", "right"))
SMALL = Diffusion(network=Linear(hidden=8), steps=3, batch_size=32, physical_batch=32, warm_up=WarmUp(places=4))
TERMS = Terms(
    domain=DOMAIN, epsilon=Fraction(8), delta=Fraction(1, 10**5), relation=Relation.ADD_REMOVE, public_rows=300
)


def halves(count: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Pictures that are brighter on the side that their label names."""
    codes = np.arange(count) % 2
    sides = np.tile([[1, 1, 0, 0], [0, 0, 1, 1]], (1, 4))[codes]
    spots = np.arange(count * 16).reshape(count, 16) * 37 % 60
    return (150 * sides + spots).astype(np.uint8), np.array(DOMAIN.classes)[codes]


@pytest.fixture(scope="module")
def fitted() -> DiffusionModel:
    return SMALL.plan(TERMS).fit(DOMAIN.rows(*halves()), progress=False)


def test_a_model_draws_pictures_of_the_classes_that_it_is_asked_for(fitted):
    labels = np.repeat([0, 1], 100).astype(np.int32)
    pixels, codes = fitted.sample(200, labels=labels)
    assert pixels.shape == (200, 16)
    assert pixels.dtype == np.uint8
    assert (codes == labels).all()
    bright = pixels.reshape(200, 4, 2, 2).mean((1, 3))
    assert bright[:100].mean(0) @ [1, -1] > 50
    assert bright[100:].mean(0) @ [-1, 1] > 50
    assert set(fitted.sample(60)[1]) == {0, 1}
    for wrong in (np.array([0, 2]), np.array([0]), np.array([0.0, 1.0])):
        with pytest.raises(dp.InvalidParameter, match="places of classes"):
            fitted.sample(2, labels=wrong)


def test_a_model_comes_back_from_its_document_and_draws_the_same_law(fitted):
    said, arrays = fitted.document()
    again = DiffusionModel.restored(DOMAIN, (said, arrays))
    assert again.document()[0] == said
    assert all((again.document()[1][name] == value).all() for name, value in arrays.items())
    assert again.sample(3, sampler=Ddim(steps=4, stochastic=True, guidance=0.5))[0].shape == (3, 16)
    assert again.rows == fitted.rows


@pytest.mark.parametrize(
    "spoil",
    [
        lambda said, arrays: (said, arrays | {"axes": arrays["axes"][:3]}),
        lambda said, arrays: (said, arrays | {"spreads": arrays["spreads"] * 0}),
        lambda said, arrays: (said, arrays | {"chances": arrays["chances"] + 1}),
        lambda said, arrays: (said, arrays | {"network.out.bias": arrays["network.out.bias"][:1]}),
        lambda said, arrays: (said, {name: value for name, value in arrays.items() if name != "network.out.bias"}),
        lambda said, arrays: (said | {"format": 2}, arrays),
        lambda said, arrays: (said | {"network": {"kind": "linear", "hidden": 0, "blocks": 1}}, arrays),
    ],
)
def test_a_document_that_does_not_fit_is_refused(fitted, spoil):
    with pytest.raises(dp.InvalidParameter):
        DiffusionModel.restored(DOMAIN, spoil(*fitted.document()))


@pytest.mark.slow
def test_a_convolutional_network_learns_and_draws_too():
    method = Diffusion(
        network=Convolutional(channels=8, factors=(1, 2), blocks=1),
        draws=2, steps=1, batch_size=32, physical_batch=32, warm_up=WarmUp(places=None),
    )  # fmt: skip
    model = method.plan(TERMS).fit(DOMAIN.rows(*halves(60)), progress=False)
    again = DiffusionModel.restored(DOMAIN, model.document())
    assert again.sample(5, sampler=Heun(steps=3))[0].shape == (5, 16)


@pytest.mark.statistical
def test_scalings_leave_an_error_of_one_for_normal_data():
    """A network that says nothing guesses as well as any linear one: what is left has variance 1 at each level."""
    places, draws, rows = 6, 4, 4000
    centres = np.stack([np.full(places, level, np.float32) for level in (-0.5, 0.4, 0.0)])
    around = replace(PictureCoordinates.guessed(places, 2, 0.7), centres=centres)
    domain = Images(2, 3, classes=(0, 1))
    losses = DiffusionRowLosses(
        build(Linear(hidden=4), domain, around), axes=torch.eye(places), draws=draws, drop=1e-9, levels=(-1.0, 1.2)
    )
    labels = torch.arange(rows) % 2
    chance = torch.Generator().manual_seed(7)
    pictures = torch.from_numpy(centres)[labels] + 0.7 * torch.randn(rows, places, generator=chance)
    with torch.no_grad():
        found = losses(pictures, labels)
        wide = losses(torch.from_numpy(centres)[labels] + 1.3 * (pictures - torch.from_numpy(centres)[labels]), labels)
    assert abs(float(found.mean()) - 1) < 6.2 * float(found.std()) / math.sqrt(rows)
    assert abs(float(wide.mean()) - 1) > 6.2 * float(wide.std()) / math.sqrt(rows)


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", [Heun(steps=30), Ddim(steps=120), Ddim(steps=200, stochastic=True)])
def test_a_sampler_with_the_best_denoiser_follows_the_law_of_the_data(sampler):
    """Data: normal around 0.3 with deviation 0.5, whose best denoiser is known. Steps err by a few per cent."""
    chance = torch.Generator().manual_seed(3)

    def draw() -> torch.Tensor:
        return torch.randn(4000, 1, generator=chance)

    def guess(pictures: torch.Tensor, level: float) -> torch.Tensor:
        return 0.3 + 0.25 / (0.25 + level**2) * (pictures - 0.3)

    found = follow(sampler, guess, 80 * draw(), draw)
    assert abs(float(found.mean()) - 0.3) < 0.08
    assert 0.44 < float(found.std()) < 0.56
    moved = follow(sampler, guided(guess, lambda pictures, level: guess(pictures, level) - 0.1, 2.0), 80 * draw(), draw)
    assert float(moved.mean()) > 0.4  # Guidance goes away from what is guessed without the class.


def test_noisy_sums_give_back_centres_and_axes():
    """With little noise: the mean of each class, and the two directions in which pictures differ."""
    pixels, labels = halves(4000)
    codes = (labels == "right").astype(np.int32)
    sums = CentralRelease(pixels=16, classes=2, noise_multiplier=Fraction(1, 1000), products=True).release(
        pixels, codes
    )
    found = PictureCoordinates.found(sums, spread=0.5, places=16)
    longest = CentralRelease(pixels=16, classes=2, noise_multiplier=Fraction(1), products=True).longest
    short = shortened(pixels.astype(np.int64), longest)
    means = np.stack([short[codes == label].mean(0) for label in (0, 1)]) / 127.5 - 1
    np.testing.assert_allclose(found.centres[:2], means, atol=0.01)
    np.testing.assert_allclose(found.axes.T @ found.axes, np.eye(16), atol=1e-5)
    away = (short / 127.5 - 1 - means[codes]) @ found.axes
    clear = found.spreads[0] > 0.05
    np.testing.assert_allclose(found.spreads[0][clear], away.std(0)[clear], rtol=0.05)


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        (replace(TERMS, relation=Relation.REPLACE_ONE), "not for replacing"),
        (replace(TERMS, rows_per_unit=2), "single pictures"),
        (replace(TERMS, public_rows=None), "about how many"),
        (replace(TERMS, delta=Fraction(0)), "delta above 0"),
        (replace(TERMS, public_rows=31), "batch_size"),
    ],
)
def test_terms_that_are_not_proven_are_refused_before_anything_is_read(terms, says):
    with pytest.raises(dp.DiscreetError, match=says):
        SMALL.plan(terms)


@pytest.mark.parametrize(
    "wrong",
    [
        {"draws": 0}, {"steps": 0}, {"ema": 1.0}, {"label_drop": 0.0}, {"learning_rate": float("nan")}, {"clip": 0},
        {"levels": (-1.0, 0.0)}, {"network": Convolutional()},
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(dp.InvalidParameter):
        Diffusion(**wrong)


def test_large_pictures_do_not_buy_products_of_pixels():
    with pytest.raises(dp.InvalidParameter, match="products of pixels"):
        Diffusion().plan(replace(TERMS, domain=Images(64, 64, classes=(0, 1)), public_rows=60_000))


def test_the_published_size_has_the_parameters_of_the_paper():
    """1.75 million there; ours has no parameters in its norms and tells levels and classes in another way."""
    method = Diffusion.as_published()
    domain = Images(28, 28, classes=range(10))
    denoiser = build(method.network, domain, PictureCoordinates.guessed(784, 10, method.spread))
    assert 1.4e6 < sum(weight.numel() for weight in denoiser.parameters()) < 2.1e6


@pytest.mark.long
def test_planning_a_file_does_not_load_torch():
    code = "import sys, discreet.synth.diffusion; assert 'torch' not in sys.modules, 'loaded'"
    subprocess.run([sys.executable, "-c", code], check=True)
