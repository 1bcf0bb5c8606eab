"""Rules that the rows break: a paid model still draws rows, and none that a rule excludes."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.graphical.entropy_fit import fit

BROKEN = np.zeros((3, 2), bool)
BROKEN[0, 0] = True  # The rule: never both at once.


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_start_that_lies_too_far_out_is_not_kept(share: float) -> None:
    """Most rows are where none may be, so potentials grow; as a start beside new cliques, every product was zero."""
    rows = 100_000.0
    first, second = np.array([share, (1 - share) / 2, (1 - share) / 2]) * rows, np.array([share, 1 - share]) * rows
    joint = np.outer([share, (1 - share) / 2, (1 - share) / 2], np.full(16, 1 / 16)).T * rows
    columns = [
        NoisyMarginal((0,), joint.sum(1), 20.0),
        NoisyMarginal((1,), first, 20.0),
        NoisyMarginal((2,), second, 20.0),
    ]
    rule = [((1, 2), BROKEN)]
    single = fit((16, 3, 2), columns, impossible=rule)
    both = fit((16, 3, 2), [*columns, NoisyMarginal((0, 1), joint, 15.0)], start=single, impossible=rule)
    drawn = both.sample(1000)
    assert not ((drawn[:, 1] == 0) & (drawn[:, 2] == 0)).any()
    assert np.isfinite(both.marginal((0, 1, 2))).all()
