"""Regressions of people with several rows: a unit weighs one row, on all small blocks, and intervals are by person."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.vector_mean import clip_to_ball
from discreet.robust import least_squares, tukey_em
from discreet.robust.least_squares import ResidualSquares
from discreet.robust.noisy_moments import exact_moments
from discreet.robust.regression_design import HALF, RegressionColumns
from discreet.robust.regressions import PrivateRegression
from discreet.robust.reweighting import EACH_ROW, SharedWeights, _times_root
from discreet.robust.tukey_em import block_fits

RADIUS = 12
# Every row within the radius, of two coordinates on a coarse grid, with its residual.
_VECTORS = [clip_to_ball(np.array([pair]), RADIUS)[0] for pair in product((-RADIUS, -5, 0, 8, RADIUS), repeat=2)]
ROWS = [(tuple(vector.tolist()), residual) for vector in _VECTORS for residual in (-RADIUS, 0, 7, RADIUS)]


def blocks(most: int) -> Any:
    """All people with so many rows at most, of which rows at the rim are kept where there are many."""
    rim = [row for row in ROWS if abs(row[1]) == RADIUS and sum(x * x for x in row[0]) > 100]
    yield from ([row] for row in ROWS)
    for size in range(2, most + 1):
        yield from map(list, combinations_with_replacement(rim, size))


def moments_of(block: Any, shares: SharedWeights) -> tuple[float, float, float]:
    rows, residuals = np.array([row for row, _ in block]), np.array([residual for _, residual in block])
    near, kept = shares.divided(rows, residuals)
    gram, cross = exact_moments(near, kept)
    scores = shares.scores(near, kept)
    longest = 0.0 if scores is None else float(np.linalg.norm(scores, axis=1).max())
    return float(np.linalg.norm(gram)), float(np.linalg.norm(cross)), longest


def test_a_unit_moves_no_moment_further_than_a_row_for_all_small_blocks_and_rows_of_full_weight_do() -> None:
    beyond = 0
    for block in blocks(3):
        one = SharedWeights(np.zeros(len(block), dtype=np.int64))
        assert max(moments_of(block, one)) <= RADIUS**2 + 1e-9
        # Rows protected, not people: rows that keep their weight.
        beyond += max(moments_of(block, EACH_ROW)[:2]) > RADIUS**2
    assert beyond > 100


def test_one_unit_more_or_less_changes_nothing_of_the_others() -> None:
    rng = np.random.default_rng(0)
    units = rng.integers(5, size=40)
    rows, residuals = rng.integers(-RADIUS, RADIUS + 1, (40, 2)), rng.integers(-RADIUS, RADIUS + 1, 40)
    near, kept = SharedWeights(units).divided(rows, residuals)
    for gone in range(5):
        left = units != gone
        fewer = SharedWeights(units[left]).divided(rows[left], residuals[left])
        assert np.array_equal(fewer[0], near[left])
        assert np.array_equal(fewer[1], kept[left])
        first = SharedWeights(units[left]).first(np.arange(40.0)[left])
        assert set(first) == set(SharedWeights(units).first(np.arange(40.0))) - {
            float(np.flatnonzero(units == gone)[0])
        }


def test_dividing_by_a_root_is_exact_toward_zero_for_all_small_numbers() -> None:
    steps, many = np.meshgrid(np.arange(-300, 301), np.arange(1, 60))
    found = _times_root(steps, many)
    assert (found * found * many <= steps * steps).all()
    assert ((np.abs(found) + 1) ** 2 * many > steps * steps).all()
    assert (found * steps >= 0).all()


def test_units_of_one_record_each_are_as_records_without_units() -> None:
    rows, residuals = np.array([row for row, _ in ROWS]), np.array([residual for _, residual in ROWS])
    near, kept = SharedWeights(np.arange(len(ROWS))).divided(rows, residuals)
    assert np.array_equal(near, rows)
    assert np.array_equal(kept, residuals)


def people(rng: np.random.Generator, correlation: float) -> tuple[Any, RegressionColumns]:
    """300 people with 12 rows each; half of what varies in x, and the correlated part of y, is the person's."""
    ids = np.repeat(np.arange(300), 12)
    x = np.clip(0.9 * rng.normal(size=300)[ids] + 0.4 * rng.normal(size=len(ids)), -3, 3)
    own, rest = np.sqrt(correlation), np.sqrt(1 - correlation)
    y = 1 + 2 * x + own * rng.normal(size=300)[ids] + rest * rng.normal(size=len(ids))
    return ids, RegressionColumns([x, y], ids)


@pytest.mark.long
@pytest.mark.parametrize("kind", [dp.robust.RefinedRegression, dp.robust.NoisyStatistics])
def test_intervals_by_person_cover_and_those_by_row_do_not(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = kind(
        design=dp.robust.Design.between([(-3, 3)], (-12, 14)),
        relation="add-remove",
        noise=dp.mechanisms.GaussianNoise.for_rho(100_000),
        inference_share="1/10",
    )

    def covered(times: int) -> int:
        rng = np.random.default_rng(5)
        found = [fit.release(people(rng, 0.8)[1]).interval(0.95)[1] for _ in range(times)]
        return sum(low <= 2 <= high for low, high in found)

    # Of 100 true intervals fewer than 70 cover once in 10^9 if each covers nine times in ten.
    assert covered(100) >= 70
    whole = ResidualSquares.measure
    monkeypatch.setattr(
        least_squares.ResidualSquares,
        "measure",
        lambda self, rows, residuals, radius, shares=None: whole(self, rows, residuals, radius),
    )
    assert covered(100) < 70


def test_what_is_not_proven_of_units_is_refused() -> None:
    noise = dp.mechanisms.GaussianNoise.for_rho(1)
    design = dp.robust.Design.between([(0, 1)], (0, 1))
    replaced = dp.robust.NoisyStatistics(design=design, relation="replace-one", noise=noise, public_rows=2)
    with pytest.raises(Refused):
        replaced.release(RegressionColumns([[0, 1], [0, 1]], np.array([0, 0])))
    added = dp.robust.NoisyStatistics(design=design, relation="add-remove", noise=noise)
    for units in ([0], [-1, 0]):
        with pytest.raises(InvalidParameter):
            added.release(RegressionColumns([[0, 1], [0, 1]], np.array(units)))


SLOTS = 2


def huber(**changes: Any) -> PrivateRegression:
    """Four coarse steps to a score, so that every small person can be tried."""
    given: dict[str, Any] = {
        "psi": dp.robust.Huber(1),
        "x_grids": (Grid.between(-1, 1, step=1),),
        "y_grid": Grid.between(-2, 2, step=1),
        "relation": "add-remove",
        "noise": dp.mechanisms.GaussianNoise.for_rho(1),
        "schedule": dp.robust.RegressionNewton(),
        "leverage": Fraction(3, 2),
        "units": (Fraction(1),),
        "resolution": 4,
        "slots": SLOTS,
    }
    return PrivateRegression(**given | changes)


def test_a_person_moves_every_question_of_a_huber_fit_by_the_slots_times_one_row() -> None:
    """For all people of two slots, and a line that leaves residuals: what a person adds, against what is paid for."""
    subject = huber()
    line = subject.dialogue.start
    records = list(product((-1, 0, 1), (-2, 0, 1, 2)))
    told: dict[str, float] = {}
    for slots in combinations_with_replacement(records, SLOTS):
        data = np.array([[x] for x, _ in slots], dtype=np.float64), [y for _, y in slots]
        table = subject.table(data, np.zeros(SLOTS, dtype=np.int64))
        for question in subject.dialogue.questions:
            moved = sum(part**2 for part in question.evaluate(line, table))
            claimed = SLOTS**2 * question.sensitivity(subject.relation).squared_l2
            name = type(question).__name__
            assert moved <= claimed
            told[name] = max(told.get(name, 0.0), moved / claimed)
    # The event of one row would be refuted, and so would a square of the whole sums, which is as much more.
    assert min(told["Squares"], told["NewtonMove"], told["Gram"]) > 1 / SLOTS**2


def test_units_that_do_not_fill_their_slots_are_refused() -> None:
    data = np.array([[0.0], [1.0], [1.0]]), [0, 1, 2]
    for units in (None, np.array([0, 0, 1]), np.array([0, 0]), np.array([-1, -1, 0])):
        with pytest.raises(InvalidParameter):
            huber().table(data, units)


def test_a_person_changes_one_fit_among_the_blocks_and_rows_with_blocks_of_their_own_change_more() -> None:
    rng = np.random.default_rng(2)
    units, rows = np.repeat(np.arange(60), 5), rng.integers(-HALF, HALF, (300, 3))
    rows[:, 0] = HALF
    blocks, reach = rng.integers(0, 8, 60), HALF
    shares = SharedWeights(units)
    assert shares.count(300) == 60
    whole = block_fits(rows, shares.each(blocks), 8, reach)
    alone = rng.integers(0, 8, 300)
    by_row, beyond = block_fits(rows, alone, 8, reach), 0
    for gone in range(60):
        left = units != gone
        assert (block_fits(rows[left], shares.each(blocks)[left], 8, reach) != whole).any(axis=1).sum() == 1
        beyond += (block_fits(rows[left], alone[left], 8, reach) != by_row).any(axis=1).sum() > 1
    assert beyond > 50


def test_a_regression_by_many_fits_draws_one_block_for_all_rows_of_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    fits = tukey_em.block_fits

    def noted(rows: Any, blocks: Any, *told: Any) -> Any:
        seen.append(blocks)
        return fits(rows, blocks, *told)

    monkeypatch.setattr(tukey_em, "block_fits", noted)
    subject = dp.robust.TukeyRegression(
        design=dp.robust.Design.between([(0, 1)], (0, 1)), relation="add-remove", epsilon=1, delta=1e-6, blocks=400
    )
    units = np.repeat(np.arange(50), 4)
    subject.release(RegressionColumns([np.zeros(200), np.zeros(200)], units))
    assert (seen[0].reshape(50, 4) == seen[0][::4, None]).all()
    assert len(set(seen[0].tolist())) > 10
