"""The mechanisms that look at the data keep plain integers too: NumPy's wrap around in sensitivities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import Relation
from discreet.adaptive.choosing_mechanism import Choosing
from discreet.adaptive.partition_selection import OptimalPartitionSelection
from discreet.adaptive.stability import StableSelection
from discreet.adaptive.truncated_histogram import TruncatedHistogram

_BUDGET = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6), "relation": Relation.ADD_REMOVE}
_MADE = {
    "bins_per_unit of a histogram": (lambda n: TruncatedHistogram.laplace(**_BUDGET, bins_per_unit=n), "bins_per_unit"),
    "contribution": (lambda n: TruncatedHistogram.laplace(**_BUDGET, contribution=n), "contribution"),
    "bins_per_unit of keys": (lambda n: OptimalPartitionSelection(**_BUDGET, bins_per_unit=n), "bins_per_unit"),
    "growth": (lambda n: Choosing(**_BUDGET, growth=n), "growth"),
    "sensitivity": (lambda n: StableSelection(**_BUDGET, sensitivity=n, candidates=3), "sensitivity"),
}


@pytest.mark.parametrize("name", _MADE)
def test_small_integers_of_numpy_mean_what_plain_ones_mean(name):
    make, field = _MADE[name]
    small, plain = make(np.uint8(200)), make(200)
    assert type(getattr(small, field)) is int
    assert small == plain
    assert small.event == plain.event
