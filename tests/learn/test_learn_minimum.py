"""The search for a minimum always ends: an error after the charge would tell of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.learn.convex.logistic_gradient import FINE, RADIUS, Labelled
from discreet.learn.convex.objective_perturbation import UNIT, LogisticProblem, minimum


@pytest.mark.parametrize("margin", [9.3, 10.3, 11.3])
def test_rows_that_all_lie_where_pieces_of_the_curve_are_flat_or_steep_by_turns_have_a_minimum(margin: float) -> None:
    """There the curve's second derivative is that of the smooth one many times over, or nothing."""
    rows, ridge = 2000, 2.0**-7
    data = Labelled(np.full((rows, 1), RADIUS, dtype=np.int64), np.ones(rows, dtype=np.int64))
    slope = rows * np.exp(-margin) - ridge * margin
    problem = LogisticProblem(
        ridge=int(ridge * 2**FINE), slope=(int(slope * 2.0**UNIT),), tolerance=int(2.0 ** (UNIT - FINE + 18))
    )
    place, fine = minimum(problem, data)
    assert problem.certifies(problem.derivative(data, place, fine), fine)
    assert abs(place[0] / 2**fine - margin) < 0.3
