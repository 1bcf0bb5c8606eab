"""Bad rows: what they do to a mean, to robust estimates, and to a private one."""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet import plots, robust
from discreet.mechanisms import Grid
from discreet.robust.functionals import Functional
from discreet.robust.loss_functions import Psi
from discreet.robust.robustness_report import Effect
from docs.exhibits.exhibit import Exhibit

_BOUNDS = (0, 120)
_ROWS = tuple(range(0, 151, 15))
_AGES = dp.Expected.normal(45, 12).column(600, Grid.between(*_BOUNDS))  # Made up: there is nothing to protect.


def outliers() -> Exhibit:
    median, mean = _report(robust.Quantile()), _report(robust.Mean())
    across = [float(rows) for rows in _ROWS]
    curves = {
        "mean": (across, [effect.plain for effect in median]),
        "Huber": (across, [_huber_shift(rows) for rows in _ROWS]),
        "median": (across, [effect.robust for effect in median]),
        "private median": (across, [effect.private or 0.0 for effect in median]),
    }
    tenth = _ROWS.index(60)
    return Exhibit(
        chart=plots.shifts(curves, what="corrupted rows", unit="years"),
        figures={f"{name.split()[0].lower()}_at_tenth": errors[tenth] for name, (_, errors) in curves.items()}
        | {"private_at_none": median[0].private or 0.0, "private_mean_at_none": mean[0].private or 0.0},
    )


def _report(estimator: Functional | Psi) -> tuple[Effect, ...]:
    report = robust.robustness_report(_AGES, bounds=_BOUNDS, epsilon=1, estimator=estimator, rows=_ROWS)
    return report.value.effects_of("corrupted")


def _huber_shift(rows: int) -> float:
    """Return the shift if the lowest rows become the upper bound: the worst, as the data are symmetric."""
    bad = np.sort(_AGES)
    bad[:rows] = _BOUNDS[1]
    before, after = (robust.location(ages, psi=robust.Huber(), scale=12).value for ages in (_AGES, bad))
    return after - before
