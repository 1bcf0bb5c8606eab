"""Hermite features: the kernel they stand for, the exact bound, and what is matched is what was summed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

import discreet as dp
from discreet import privacy
from discreet.errors import InvalidParameter
from discreet.privacy.relation import Relation
from discreet.synth.domain.images import Images
from discreet.synth.merf import HermiteImages
from discreet.synth.merf.hermite import HermiteEmbedding, hermite_functions, hermite_table
from discreet.synth.merf.matching import HermiteMatching
from discreet.synth.merf.sensitivity import NoisySums, summed
from discreet.synth.method import Terms

torch.set_num_threads(1)
TINY = HermiteEmbedding(
    3, hermite_table(400, 0.22, 6), np.array([[0, 1], [1, 2], [0, 0]]), hermite_table(20, 0.45, 3), constant=300
)


def test_products_of_functions_sum_to_the_gaussian_kernel() -> None:
    x = np.linspace(0, 1, 21)
    for length in (0.22, 0.45, 1.0):
        features = np.stack(hermite_functions(x, length, 120), axis=1)
        kernel = np.exp(-(np.subtract.outer(x, x) ** 2) / (2 * length**2))
        assert np.abs(features @ features.T - kernel).max() < 1e-3
        assert (np.square(features).sum(axis=1) <= 1 + 1e-12).all()
    assert len(hermite_functions(x, 0.22, 0)) == 1


@pytest.mark.parametrize("relation", list(Relation))
def test_hermite_sensitivity_dominates_brute_force(relation: Relation) -> None:
    vectors = TINY.vectors(np.array(list(product((0, 60, 128, 255), repeat=3)), dtype=np.uint8)).astype(np.int64)
    zero = np.zeros_like(vectors)
    places = np.concatenate([np.hstack([vectors, zero]), np.hstack([zero, vectors])])
    lengths = (places * places).sum(axis=1)
    moves = lengths[:, None] + lengths[None, :] - 2 * (places @ places.T)
    farthest = int(lengths.max() if relation is Relation.ADD_REMOVE else moves.max())
    claimed = TINY.reach.squared_sensitivity(relation)
    assert farthest <= claimed
    # Neighbouring values are alike, so opposite pictures are less than twice a length apart; one length is attained.
    assert farthest > (0.9 if relation is Relation.ADD_REMOVE else 0.4) * claimed


def test_every_value_has_a_line_no_longer_than_the_bound() -> None:
    for table in (TINY.alone, TINY.together):
        assert table.shape[0] == 256
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    assert (np.square(TINY.vectors(every).astype(np.int64)).sum(axis=1) <= TINY.reach.squared).all()


def test_hermite_features_are_those_that_were_summed() -> None:
    radii, lengths = (1 << 14, 1 << 10), (0.22, 0.45)
    embedding = HermiteEmbedding(
        4,
        hermite_table(radii[0], lengths[0], 8),
        np.array([[0, 1], [2, 3]]),
        hermite_table(radii[1], lengths[1], 3),
        500,
    )
    pictures = np.array([[0, 255, 10, 90], [200, 30, 0, 0], [0, 0, 255, 128], [1, 2, 3, 250]], dtype=np.uint8)
    labels = np.array([0, 0, 1, 1], dtype=np.int32)
    sums = NoisySums(summed(embedding, pictures, labels, 2), Fraction(1))
    matching = HermiteMatching(embedding, sums, radii=radii, lengths=lengths)
    with torch.no_grad():
        matching.canvas.log_spread.fill_(-30)
        picked, wanted = matching.pick(torch.Generator())
        found = matching.features(torch.from_numpy(pictures / 255).float(), picked, torch.Generator())
    assert torch.allclose(found.mean(dim=1), wanted, atol=2e-3)


def test_hermite_pictures_are_planned_fitted_and_drawn() -> None:
    domain = Images(4, 4, classes=["left", "right"])
    right = np.arange(3000) % 2 == 1
    pictures = np.zeros((3000, 4, 4), dtype=np.uint8)
    pictures[~right, :, :2], pictures[right, :, 2:] = 220, 220
    method = HermiteImages(order=4, pairs=20, pair_order=2, steps=50, hidden=16, codes=3)
    model = dp.synthesize(
        (pictures, np.where(right, "right", "left")), method, domain=domain, epsilon=1, delta=1e-5, progress=False
    )
    drawn = model.sample(300)
    bright = drawn.images[:, :, 2:].sum(axis=(1, 2)) > drawn.images.sum(axis=(1, 2)) / 2
    assert np.mean(bright == (drawn.labels == "right")) > 0.9
    plan = method.plan(
        Terms(domain=domain, epsilon=Fraction(1), delta=Fraction(1, 10**5), relation=Relation.REPLACE_ONE)
    )
    assert 0.999 < privacy.epsilon(plan.event, Fraction(1, 10**5), relation=Relation.REPLACE_ONE) <= 1
    assert "Hermite" in plan.describe()


def test_tables_of_another_shape_are_refused() -> None:
    short = np.ones((255, 3), dtype=np.int32)
    with pytest.raises(InvalidParameter):
        HermiteEmbedding(3, short, np.array([[0, 1]]), TINY.together, 1)
    with pytest.raises(InvalidParameter):
        HermiteEmbedding(3, TINY.alone, np.array([[0, 3]]), TINY.together, 1)
    with pytest.raises(InvalidParameter):
        HermiteImages(order=0).plan(
            Terms(
                domain=Images(2, 2, classes=["a"]),
                epsilon=Fraction(1),
                delta=Fraction(1, 10**5),
                relation=Relation.ADD_REMOVE,
            )
        )
