"""Draw the pictures of the documentation: `python docs/make_pictures.py`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

import discreet as dp
from discreet import data, plots, privacy, robust
from discreet.lab import attacks
from discreet.mechanisms import Count, GaussianNoise, LaplaceNoise
from discreet.plots import Curves
from discreet.release.cumulative.strategies import errors_by_day, least_error, strategies
from discreet.release.plan import Level
from discreet.release.tidy.cell_layout import lay_out
from discreet.release.tidy.consistent_tables import RawColumn, estimate, tidy_column

PICTURES = Path(__file__).parent / "pictures"
EVENTS = {
    "Laplace, ε = 1": privacy.Laplace(1),
    "Gaussian, σ = 4": privacy.Gaussian(4),
    "10 × pure, ε = 0.1": privacy.Repeated(privacy.PureDP("0.1"), 10),
}


def _laplace(epsilon: Fraction) -> Count:
    return Count(relation=privacy.Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=epsilon))


def _gaussian(epsilon: Fraction) -> Count:
    return Count(relation=privacy.Relation.ADD_REMOVE, noise=GaussianNoise.for_epsilon(epsilon, "1e-6"))


def _compared() -> dp.statistics.Comparison:
    found = dp.compare(
        "median",
        relation=dp.Relation.REPLACE_ONE,
        epsilon=1,
        delta="1e-6",
        public_rows=1000,
        bounds=(0, 10**6),
        step=1,
        expected=dp.Expected.lognormal(30_000, 2),
    )
    assert isinstance(found, dp.statistics.Comparison)
    return found


def _tidied() -> Curves:
    """Tidy a sparse made-up county many times: the typical error of a cell against the number of groups."""
    generator = np.random.default_rng(7)
    districts, ages = tuple(range(20)), tuple(range(10))
    level = Level(name="region", of="district", members={r: districts[5 * r : 5 * r + 5] for r in range(4)})
    groupings = {"all": (), "region": ("region",), "district": ("district",), "both": ("district", "age")}
    domains = {"region": tuple(range(4)), "district": districts, "age": ages}
    layout = lay_out(groupings, [level], domains)
    people = generator.poisson(generator.lognormal(0.5, 1.5, layout.atoms))
    exact = {name: np.bincount(spot.of_atom, people, spot.cells) for name, spot in layout.spots.items()}
    errors: dict[str, list[list[float]]] = {"raw": [], "least squares": [], "tidy": []}
    for _ in range(1000):
        noisy = {name: np.rint(cells + generator.normal(0, 10, cells.size)) for name, cells in exact.items()}
        column = RawColumn(noisy, dict.fromkeys(groupings, Fraction(10)), {}, not_negative=True)
        for name, found in zip(errors, (noisy, estimate(layout, column), tidy_column(layout, column)), strict=True):
            errors[name].append([float(((found[table] - exact[table]) ** 2).mean()) for table in groupings])
    groups = [float(cells.size) for cells in exact.values()]
    return {name: (groups, np.sqrt(np.mean(squares, axis=0))) for name, squares in errors.items()}


def _running() -> Curves:
    """The worst error of any total so far, by every way to measure a year, at ε = 1 and δ = 1e-6 for all days."""
    multiplier = privacy.calibrate(
        lambda x: privacy.Gaussian(x), epsilon=1, delta="1e-6", relation=privacy.Relation.ADD_REMOVE
    )
    days = list(range(1, 366))
    ways = {way.name: float(multiplier) * np.maximum.accumulate(errors_by_day(way, 1)) for way in strategies(365)}
    order = ("independent totals", "sums of daily counts", "binary tree", "square root", "scaled square root")
    bound = [float(multiplier) * least_error(day) for day in days]
    return {name: (days, ways[name]) for name in order} | {"no way goes below": (days, bound)}


def main() -> None:
    """Write every picture."""
    PICTURES.mkdir(exist_ok=True)
    epsilons = [Fraction(round(10 ** (k / 10) * 1000), 1000) for k in range(-20, 5)]
    charts = {
        "profile": dp.plot_profile(EVENTS),
        "tradeoff": dp.plot_tradeoff(EVENTS),
        "neighbours": dp.plot_neighbours(_laplace(Fraction(1, 2)), epsilon="0.5", exact_answers=(41, 42)),
        "meaning": privacy.explain_epsilon(1, delta="1e-6").plot(),
        "accuracy": dp.plot_accuracy({"Laplace": _laplace, "Gaussian, δ = 1e-6": _gaussian}, epsilons, unit="people"),
    }
    # Made-up ages, so that there is nothing to protect.
    ages = [18 + (37 * k) % 61 for k in range(610)]
    charts["robustness"] = robust.robustness_report(ages, bounds=(0, 120), epsilon=1).value.plot()
    charts["compare"] = _compared().plot()
    charts["tidy"] = plots.lines(_tidied(), across="groups of the table", up="typical error, in people", log_x=True)
    charts["running"] = plots.lines(
        _running(), across="day of the year", up="worst deviation so far, in people", log_y=True
    )
    with data.folder("hospital") as county:  # Nobody in it exists.
        known = ["zip", "birth_date", "sex", "diagnosis", "nights"]
        charts["uniqueness"] = attacks.uniqueness(county / "stays.parquet", known, person="patient").value.plot()
    for name, chart in charts.items():
        plots.save(chart, PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main()
