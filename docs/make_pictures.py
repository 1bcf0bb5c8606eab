"""Draw the pictures of the documentation: `python docs/make_pictures.py`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import discreet as dp
from discreet import plots, privacy, robust
from discreet.mechanisms import Count, GaussianNoise, LaplaceNoise

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
        size=1000,
        bounds=(0, 10**6),
        step=1,
        expected=dp.Expected.lognormal(30_000, 2),
    )
    assert isinstance(found, dp.statistics.Comparison)
    return found


def main() -> None:
    """Write every picture."""
    PICTURES.mkdir(exist_ok=True)
    epsilons = [Fraction(round(10 ** (k / 10) * 1000), 1000) for k in range(-20, 5)]
    charts = {
        "profile": dp.plot_profile(EVENTS),
        "tradeoff": dp.plot_tradeoff(EVENTS),
        "accuracy": dp.plot_accuracy({"Laplace": _laplace, "Gaussian, δ = 1e-6": _gaussian}, epsilons, unit="people"),
    }
    # Made-up ages, so that there is nothing to protect.
    ages = [18 + (37 * k) % 61 for k in range(610)]
    charts["robustness"] = robust.robustness_report(ages, bounds=(0, 120), epsilon=1).value.plot()
    charts["compare"] = _compared().plot()
    for name, chart in charts.items():
        plots.save(chart, PICTURES / f"{name}.svg")


if __name__ == "__main__":
    main()
