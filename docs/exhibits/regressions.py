"""Regressions: what wide bounds cost each method. The only exhibit that is measured: none of them has a known law."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import ndtri

import discreet as dp
from discreet import plots
from discreet.statistics.expected import Floats
from docs.exhibits.exhibit import Exhibit, usual_errors

_ROWS = 10_000
_WIDER = (1, 3, 10, 30, 100)
_NAMES = {"refined": "refined", "noisy": "noisy statistics", "adassp": "AdaSSP", "tukey": "Tukey"}


def regression() -> Exhibit:
    found = {wider: errors(wider) for wider in _WIDER}
    across = [float(wider) for wider in _WIDER]
    curves = {shown: (across, [found[wider][name] for wider in _WIDER]) for name, shown in _NAMES.items()}
    figures = {f"{name}_at_one": error for name, error in found[1].items()}
    figures |= {f"{name}_at_ten": error for name, error in found[10].items() if name != "tukey"}
    return Exhibit(
        chart=plots.lines(
            curves,
            across="width of the bounds (times what is needed)",
            up="usual error of predictions (residuals)",
            log_x=True,
            log_y=True,
        ),
        figures=figures,
    )


def errors(wider: int) -> dict[str, float]:
    """Return the median error of some fits by each method, within bounds that are so many times too wide."""
    found = usual_errors(
        dp.compare(
            "regression",
            relation=dp.Relation.ADD_REMOVE,
            epsilon=1,
            delta="1e-6",
            public_rows=_ROWS,
            x_bounds=[(0, 100 * wider), (0, 5 * wider)],
            y_bounds=(-20 * wider, 50 * wider),
            expected=_table(),
        )
    )
    return {name.partition("_")[0]: error for name, error in found.items() if name.partition("_")[0] in _NAMES}


@cache
def _table() -> tuple[Floats, Floats]:
    """Return rows that look random and are the same each time: the parts of multiples of roots behind the point."""
    one, two, three = (np.arange(1, _ROWS + 1) * math.sqrt(square) % 1 for square in (2, 3, 5))
    X = np.column_stack([40 + 10 * ndtri(one), 3 + two])
    return X, 5 + 0.3 * X[:, 0] - X[:, 1] + ndtri(three)
