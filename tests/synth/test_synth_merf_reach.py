"""The sum of the vectors moves by no more than is claimed, for all rows and all neighbours of small worlds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import privacy
from discreet.errors import InvalidParameter
from discreet.privacy.relation import Relation
from discreet.synth.merf.features import RADIUS, TURN, CellEmbedding, PictureEmbedding, points, turned
from discreet.synth.merf.sensitivity import SumSensitivity, price, summed
from discreet.synth.method import Terms

HALF = TURN // 2
BOTH = list(Relation)
# Four pixels; the first wave turns half a turn between a black and a white first pixel, so that rows can be opposite.
PICTURES = PictureEmbedding(
    np.array([[129, 77], [0, 5], [0, -40], [0, 9]], dtype=np.int32), constant=700, brightness=3000, darkest=200
)
CELLS = CellEmbedding(
    (2, 3), np.array([[0, 0], [HALF, HALF], [0, 0], [5, 40000], [-77, 123]], dtype=np.int32), constant=700, weight=2000
)


def all_pictures() -> NDArray[np.uint8]:
    return np.array(list(product((0, 1, 255), repeat=4)), dtype=np.uint8)


def all_rows() -> NDArray[np.int32]:
    return np.array(list(product(range(2), range(3))), dtype=np.int32)


WORLDS: list[Any] = [
    pytest.param(PICTURES, all_pictures(), id="pictures"),
    pytest.param(CELLS, all_rows(), id="cells"),
]


def exact_moves(embedding: Any, rows: NDArray[Any], relation: Relation) -> list[int]:
    """Return the squared length of every move between neighbours, exactly: all sums here are far below 2^63."""
    vectors = embedding.vectors(rows).astype(np.int64)
    zero = np.zeros_like(vectors)
    places = np.concatenate([np.hstack([vectors, zero]), np.hstack([zero, vectors])])  # labels 0 and 1
    lengths = (places * places).sum(axis=1)
    if relation is Relation.ADD_REMOVE:
        return lengths.tolist()  # type: ignore[no-any-return]
    return (lengths[:, None] + lengths[None, :] - 2 * (places @ places.T)).ravel().tolist()  # type: ignore[no-any-return]


def test_every_point_of_the_circle_lies_inside_it() -> None:
    whole = points().astype(object)
    assert max(whole[:, 0] ** 2 + whole[:, 1] ** 2) == RADIUS**2
    assert min(whole[:, 0] ** 2 + whole[:, 1] ** 2) > (RADIUS - 2) ** 2
    angles = np.arange(TURN) * 2 * np.pi / TURN
    assert np.abs(points() - RADIUS * np.column_stack([np.cos(angles), np.sin(angles)])).max() <= 1


def test_whole_turns_do_not_count() -> None:
    angles = np.array([0, 1, -1, HALF, 5 * TURN + 3, -7 * TURN - 3], dtype=np.int32)
    cosines, sines = turned(angles)
    assert (np.column_stack([cosines, sines]) == points()[angles % TURN]).all()


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("embedding", "rows"), WORLDS)
def test_squared_sensitivity_dominates_brute_force(embedding: Any, rows: NDArray[Any], relation: Relation) -> None:
    farthest = max(exact_moves(embedding, rows, relation))
    claimed = embedding.reach.squared_sensitivity(relation)
    assert farthest <= claimed
    assert farthest >= claimed * Fraction(97, 100)  # It is nearly attained: a smaller claim would be wrong.


def test_sum_moves_as_one_vector_does() -> None:
    rows, labels = all_rows(), np.array([0, 1, 0, 1, 1, 0], dtype=np.int32)
    before, after = summed(CELLS, rows, labels, 2), summed(CELLS, rows[1:], labels[1:], 2)
    moved = (before - after).astype(object)
    assert int((moved * moved).sum()) <= CELLS.reach.squared
    assert (moved[0] == CELLS.vectors(rows[:1])[0]).all()
    assert not moved[1].any()


def test_units_with_several_rows_move_the_sum_so_many_times_as_far() -> None:
    for relation in BOTH:
        one = CELLS.reach.squared_sensitivity(relation)
        assert CELLS.reach.squared_sensitivity(relation, 3) == 9 * one
    rows = all_rows()
    thrice = summed(CELLS, np.repeat(rows[:1], 3, axis=0), np.zeros(3, dtype=np.int32), 2).astype(object)
    # Three equal rows attain it, up to the rounding of the circle.
    assert Fraction(97, 100) * CELLS.reach.squared_sensitivity(Relation.ADD_REMOVE, 3) <= int((thrice**2).sum())


@pytest.mark.parametrize(("embedding", "rows"), WORLDS)
def test_order_and_companions_never_change_a_row(embedding: Any, rows: NDArray[Any]) -> None:
    together = embedding.vectors(rows)
    alone = np.concatenate([embedding.vectors(rows[place : place + 1]) for place in range(len(rows))])
    assert (together == alone).all()
    assert (embedding.vectors(rows[::-1])[::-1] == together).all()
    assert (embedding.vectors(np.ascontiguousarray(rows[:3]))[0] == together[0]).all()


def test_wide_products_are_exact_whatever_the_order() -> None:
    # Near the limit of 32-bit floats, with many pixels: compared with whole numbers of Python.
    waves = ((np.arange(1024 * 3).reshape(1024, 3) * 7919) % 129 - 64).astype(np.int32)
    wide = PictureEmbedding(waves, constant=1, brightness=10, darkest=1)
    pictures = ((np.arange(5 * 1024).reshape(5, 1024) * 104729) % 256).astype(np.uint8)
    pictures[0], pictures[1] = 255, np.where(waves[:, 0] > 0, 255, 0)
    angles = (pictures.astype(object) @ waves.astype(object)) % TURN
    found = wide.vectors(pictures)[:, 1 + 1024 : 1 + 1024 + 3]
    assert (found == points()[angles.astype(np.int64), 0]).all()


def test_waves_that_could_be_summed_inexactly_are_refused() -> None:
    steep = np.full((1024, 1), 65, dtype=np.int32)  # 255 * 1024 * 65 is above 2^24
    with pytest.raises(InvalidParameter, match="too steep"):
        PictureEmbedding(steep, constant=1, brightness=1, darkest=1)


def test_price_is_the_analytic_gaussian_of_the_relation() -> None:
    for relation in BOTH:
        asked = Terms(domain=None, epsilon=Fraction(1), delta=Fraction(1, 10**5), relation=relation)
        paid = price(PICTURES.reach, asked)
        assert paid.squared_sensitivity == PICTURES.reach.squared_sensitivity(relation)
        spent = privacy.epsilon(paid.event, Fraction(1, 10**5), relation=relation)
        assert 0.999 < spent <= 1


# --- what others got wrong, planted here: each must move the sum farther than its claim ---


@dataclass(frozen=True)
class CosinesOnly:
    """sqrt(2/D) cos(wx + b): a row may have length sqrt(2), not 1."""

    inner: Any

    @property
    def reach(self) -> SumSensitivity:
        return self.inner.reach  # type: ignore[no-any-return]

    def vectors(self, rows: NDArray[Any]) -> NDArray[Any]:
        whole = self.inner.vectors(rows).astype(np.float64)
        waves = self.inner.turns.shape[1]
        whole[:, -waves:] = 0
        whole[:, -2 * waves : -waves] *= 2**0.5
        cut: NDArray[np.int64] = np.trunc(whole).astype(np.int64)
        return cut


@dataclass(frozen=True)
class MixedPartsOfLengthOne:
    """Numbers of length 1 beside categories of length 1, claimed to have length 1 together."""

    inner: Any

    @property
    def reach(self) -> SumSensitivity:
        own = self.inner.reach
        return SumSensitivity(constant=own.constant, positive=0, turning=max(own.turning, own.positive))

    def vectors(self, rows: NDArray[Any]) -> NDArray[Any]:
        return self.inner.vectors(rows)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "mutant", [CosinesOnly(CELLS), MixedPartsOfLengthOne(CELLS)], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("relation", BOTH)
def test_features_longer_than_claimed_are_caught(mutant: Any, relation: Relation) -> None:
    assert max(exact_moves(mutant, all_rows(), relation)) > mutant.reach.squared_sensitivity(relation)


def test_sensitivity_of_the_wrong_relation_is_caught() -> None:
    for embedding, rows in ((PICTURES, all_pictures()), (CELLS, all_rows())):
        wrong = embedding.reach.squared_sensitivity(Relation.ADD_REMOVE)
        assert max(exact_moves(embedding, rows, Relation.REPLACE_ONE)) > wrong
        # Twice the length of one row, as for parts without negative numbers, is too little as well.
        assert max(exact_moves(embedding, rows, Relation.REPLACE_ONE)) > 2 * wrong


def test_a_class_divided_by_its_own_private_count_is_caught() -> None:
    """The mean of a class with m rows moves by up to 2 / m of a row, not by 1 / n: a rare class gives itself away."""
    rows = np.array([[0, 0]] * 50 + [[1, 0]], dtype=np.int32)
    labels = np.array([0] * 50 + [1], dtype=np.int32)

    def divided(rows: NDArray[Any], labels: NDArray[np.int32]) -> NDArray[np.float64]:
        counts = np.maximum(np.bincount(labels, minlength=2), 1)
        return np.asarray(summed(CELLS, rows, labels, 2) * (len(labels) / counts)[:, None])

    changed = rows.copy()
    changed[-1] = [0, 1]
    move = divided(rows, labels) - divided(changed, labels)
    assert float((move**2).sum()) > 100 * CELLS.reach.squared_sensitivity(Relation.REPLACE_ONE)
    kept = (summed(CELLS, rows, labels, 2) - summed(CELLS, changed, labels, 2)).astype(object)
    assert int((kept**2).sum()) <= CELLS.reach.squared_sensitivity(Relation.REPLACE_ONE)


def test_undersampling_by_labels_is_caught() -> None:
    """Keeping 40 % of a class's rows, as many as there are by count, lets a row that comes drive out another one."""

    def undersampled(rows: list[list[int]]) -> NDArray[np.int64]:
        kept = np.array(rows[: int(len(rows) * 0.4)], dtype=np.int32)  # The rows stand in the order of a secret draw.
        return summed(CELLS, kept, np.zeros(len(kept), dtype=np.int32), 2)

    others = [[0, 0]] * 5
    moved = undersampled([[1, 1], *others]) - undersampled(others)
    assert int((moved * moved).sum()) > 2 * CELLS.reach.squared_sensitivity(Relation.ADD_REMOVE)
