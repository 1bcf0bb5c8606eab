"""Names: the most frequent one, and those that may be told at all."""

from __future__ import annotations

from fractions import Fraction

import discreet as dp
from discreet import adaptive, plots
from discreet.balls import precision
from discreet.statistics.comparison import ModeComparison
from docs.exhibits.exhibit import Exhibit

_ADD, _REPLACE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE

_LEADS = tuple(range(0, 61, 2))


def mode() -> Exhibit:
    found = [_outlooks(lead) for lead in _LEADS]
    names = {"permute and flip": "permute-and-flip", "stable": "stable"}
    curves = {
        shown: ([float(lead) for lead in _LEADS], [outlook[name] for outlook in found]) for shown, name in names.items()
    }
    tested = adaptive.StableMode(domain=None, epsilon=Fraction(1), delta=Fraction(1, 10**6), relation=_REPLACE)
    return Exhibit(
        chart=plots.lines(curves, across="lead (rows)", up="chance to miss it (probability)"),
        figures={
            "flip_at_four": 100 * found[_LEADS.index(4)]["permute-and-flip"],
            "stable_at_twenty": 100 * found[_LEADS.index(20)]["stable"],
            "sure": tested.reliable_lead(),
        },
    )


def _outlooks(lead: int) -> dict[str, float]:
    found = dp.compare(
        "mode",
        relation=_REPLACE,
        epsilon=1,
        delta="1e-6",
        public_rows=1000,
        candidates=range(20),
        expected=[Fraction(300 + lead, 1000), Fraction(300, 1000)],
    )
    assert isinstance(found, ModeComparison)
    return {name: outlook.fails for name, outlook in found.outlooks.items()}


_COUNTS = tuple(range(1, 41))


def partitions() -> Exhibit:
    made = _makers(1)
    with precision(64):
        curves = {
            name: ([float(count) for count in _COUNTS], [float(maker.release_probability(c)) for c in _COUNTS])
            for name, maker in made.items()
        }
    many = _makers(100)
    figures = {f"{name}_half": float(made[name.title()].reliable_count("0.5")) for name in ("laplace", "optimal")}
    figures |= {f"{name.lower()}_sure": float(maker.reliable_count()) for name, maker in made.items()}
    figures |= {f"{name.lower()}_many": float(maker.reliable_count()) for name, maker in many.items()}
    return Exhibit(
        chart=plots.lines(curves, across="people in the bin (number)", up="chance to be shown (probability)"),
        figures=figures,
    )


def _makers(bins: int) -> dict[str, adaptive.TruncatedHistogram | adaptive.OptimalPartitionSelection]:
    return {
        "Laplace": adaptive.TruncatedHistogram.laplace(1, "1e-6", relation=_ADD, bins_per_unit=bins),
        "Gaussian": adaptive.TruncatedHistogram.gaussian(1, "1e-6", relation=_ADD, bins_per_unit=bins),
        "Optimal": adaptive.OptimalPartitionSelection(
            epsilon=Fraction(1), delta=Fraction(1, 10**6), relation=_ADD, bins_per_unit=bins
        ),
    }
