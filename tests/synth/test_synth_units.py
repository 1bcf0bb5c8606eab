"""A unit is the exact value of its column: two that look alike share no allowance, where one could fill a place."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest

from discreet.adaptive.bounded_memberships import Memberships, bounded_totals, kept_rows
from discreet.frames.column import Column

COMPOSED, APART = "Ren\u00e9", "Rene\u0301"  # The same letters, written in two ways.


@pytest.mark.parametrize("pair", [(COMPOSED, APART), ((1, COMPOSED), (1, APART))])
def test_removing_a_unit_brings_no_row_of_another(pair: tuple[object, object]) -> None:
    for _ in range(8):
        assert kept_rows(Column([pair[0], pair[1], pair[1]]), 1).tolist()[0] == 0
        assert len(kept_rows(Column([pair[0], pair[1], pair[1]]), 1)) == 2


def test_units_of_a_histogram_are_told_apart_to_the_letter() -> None:
    for units in ([COMPOSED, APART], np.array([COMPOSED, APART])):
        totals = bounded_totals(Memberships(units, ["a", "b"]), bins_per_unit=1, contribution=1)
        assert sorted(totals.values()) == [1, 1]


def test_keys_that_look_alike_are_still_one_key() -> None:
    assert list(bounded_totals([COMPOSED, APART], bins_per_unit=1, contribution=1).values()) == [2]


def test_ids_of_a_type_of_their_own_are_units_too() -> None:
    one, other = UUID(int=1), UUID(int=2)
    assert len(kept_rows(Column([one, other, one, str(other), None]), 1)) == 2
