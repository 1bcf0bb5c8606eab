"""Means: within the declared bounds, within bounds that are found, and without the ends."""

from __future__ import annotations

import discreet as dp
from discreet import plots
from docs.exhibits.exhibit import Exhibit, usual_errors

_ROWS = 10_000
_HIGHS = (100, 200, 500, 1000, 10**4, 10**6)
_SYMMETRIC = dp.Expected.normal(50, 10)


def means() -> Exhibit:
    found = [_errors(high, "0.01", _SYMMETRIC) for high in _HIGHS]
    curves = {
        name: ([float(high) for high in _HIGHS], [errors[name] for errors in found])
        for name in ("clamped", "clipped", "trimmed")
    }
    incomes = _errors(10**6, "1", dp.Expected.lognormal(30_000, 2))
    few = _errors(100, "0.01", _SYMMETRIC, rows=100)
    return Exhibit(
        chart=plots.lines(
            curves, across="upper bound (units of the data)", up="usual error (50 %)", log_x=True, log_y=True
        ),
        figures={f"{name}_at_wide": error for name, error in found[-1].items()}
        | {f"{name}_of_incomes": error for name, error in incomes.items()}
        | {"clamped_of_few": few["clamped"]},  # A clipped mean of few rows is predicted too well.
    )


def _errors(high: int, step: str, expected: dp.Expected, rows: int = _ROWS) -> dict[str, float]:
    found = dp.compare(
        "mean",
        relation=dp.Relation.REPLACE_ONE,
        epsilon=1,
        public_rows=rows,
        bounds=(0, high),
        step=step,
        expected=expected,
    )
    return usual_errors(found)
