"""Medians: by rank, among candidates, by smooth sensitivity, after a test, and with a bound that is paid for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

import discreet as dp
from discreet import adaptive, plots
from discreet.adaptive import BoundedSmoothSensitivity, best_recipe
from discreet.adaptive.approximate_recipes import classical_laplace
from discreet.adaptive.noise_recipes import Recipe
from discreet.adaptive.order_queries import CentralMeanQuery, LowerMedianQuery
from discreet.balls import precision
from discreet.mechanisms import Grid, QuantileAmong
from discreet.noise import DiscreteLaplaceLaw
from discreet.statistics.comparison import Comparison
from discreet.statistics.expected import Floats
from docs.exhibits.exhibit import Exhibit, usual_errors

ROWS = 1000
INCOMES = dp.Expected.lognormal(30_000, 2)
GRID = Grid.between(0, 10**6, step=1)
DELTA = Fraction(1, 10**6)
EPSILONS = tuple(map(Fraction, ("1/20", "1/10", "1/5", "2/5", "7/10", "1", "3/2", "2", "3", "4")))
HALF, WIDE = Fraction(1, 2), Fraction(95, 100)

_ADD, _REPLACE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
_EPSILON, _ERROR = "privacy loss ε (nats)", "usual error (50 %), in euros"


def _predicted(epsilon: Fraction, relation: dp.Relation, rows: int = ROWS) -> dict[str, float]:
    found = dp.compare(
        "median", relation=relation, epsilon=epsilon, public_rows=rows, bounds=(0, 10**6), step=1, expected=INCOMES
    )
    return usual_errors(found)


@cache
def _column() -> Floats:
    return INCOMES.column(ROWS, GRID)


def exponential() -> Exhibit:
    found = [_predicted(epsilon, _ADD) for epsilon in EPSILONS]
    spent = [float(epsilon) for epsilon in EPSILONS]
    curves = {
        "by rank": (spent, [errors["exponential"] for errors in found]),
        "smooth sensitivity": (spent, [errors["smooth"] for errors in found]),
    }
    small, large = found[EPSILONS.index(Fraction(1, 10))], found[-1]
    return Exhibit(
        chart=plots.lines(curves, across=_EPSILON, up=_ERROR, log_x=True, log_y=True),
        figures={
            "rank_at_small": small["exponential"],
            "smooth_at_small": small["smooth"],
            "rank_at_large": large["exponential"],
            "smooth_at_large": large["smooth"],
        },
    )


_FEW, _LITTLE = 100, Fraction(1, 5)
_POWERS = range(5, 13)


def candidates() -> Exhibit:
    highs = [10**power for power in _POWERS]
    right, wrong = ([_among(high, centre) for high in highs] for centre in (30_000, 300_000))
    rank = [_by_rank(high) for high in highs]
    curves = {
        "by rank": (highs, rank),
        "candidates": (highs, right),
        "candidates, wrong guess": (highs, wrong),
    }
    return Exhibit(
        chart=plots.lines(curves, across="upper bound (euros)", up=_ERROR, log_x=True, log_y=True),
        figures={
            "right_at_wide": right[-1],
            "share_at_wide": rank[-1] / highs[-1],
            "wrong_at_usual": wrong[highs.index(10**6)],
            "rank_at_usual": rank[highs.index(10**6)],
        },
    )


def _by_rank(high: int) -> float:
    found = dp.compare(
        "median", relation=_ADD, epsilon=_LITTLE, public_rows=_FEW, bounds=(0, high), step=1, expected=INCOMES
    )
    return usual_errors(found)["exponential"]


def _among(high: int, centre: int) -> float:
    """Return the usual error where candidates lie around a centre, by the exact law of the choice."""
    grid = Grid.between(0, high, step=1)
    guess = dp.Expected.lognormal(centre, 2).column(64, grid)
    places = np.unique(np.concatenate([guess, np.linspace(0, high, 8)]).round().astype(np.int64))
    mechanism = QuantileAmong(
        candidates=tuple(places.tolist()), quantile=HALF, epsilon=_LITTLE, grid=grid, relation=_ADD
    )
    column = INCOMES.column(_FEW, grid)
    with precision(128):
        chances = {place: float(mass) for place, mass in mechanism.distribution(column).masses.items()}
    return _usual({abs(place - float(np.median(column))): chance for place, chance in chances.items()})


def _usual(chances: dict[float, float]) -> float:
    """Return the error that is exceeded half of the time."""
    errors = sorted(chances)
    reached = np.cumsum([chances[error] for error in errors])
    return errors[int(np.searchsorted(reached, reached[-1] / 2))]


def smooth() -> Exhibit:
    rank = {epsilon: _predicted(epsilon, _REPLACE)["exponential"] for epsilon in EPSILONS}
    polynomial = {epsilon: _best(epsilon, _polynomial) for epsilon in EPSILONS}
    laplace = {epsilon: _best(epsilon, _laplace) for epsilon in EPSILONS}
    classical = {epsilon: _noise(classical_laplace(epsilon, DELTA)) for epsilon in EPSILONS if epsilon < 1}
    named = {
        "by rank": rank,
        "polynomial, pure": polynomial,
        "Laplace, δ = 1e-6": laplace,
        "classical Laplace": classical,
    }
    curves = {name: ([float(epsilon) for epsilon in errors], list(errors.values())) for name, errors in named.items()}
    one, large, small, half = (Fraction(at) for at in ("1", "4", "1/10", "2/5"))
    return Exhibit(
        chart=plots.lines(curves, across=_EPSILON, up=_ERROR, log_x=True, log_y=True),
        figures={
            "first": float(min(epsilon for epsilon in EPSILONS if polynomial[epsilon] < rank[epsilon])),
            "polynomial_at_one": polynomial[one],
            "rank_at_one": rank[one],
            "odd_at_one": _predicted(one, _REPLACE, ROWS + 1)["smooth"],
            "polynomial_at_large": polynomial[large],
            "rank_at_large": rank[large],
            "polynomial_at_small": polynomial[small],
            "rank_at_small": rank[small],
            "laplace_at_half": laplace[half],
            "classical_at_half": classical[half],
        },
    )


def _polynomial(epsilon: Fraction, beta: Fraction) -> Recipe:
    return adaptive.polynomial(epsilon, beta=beta)


def _laplace(epsilon: Fraction, beta: Fraction) -> Recipe:
    return adaptive.laplace(epsilon, DELTA, beta=beta)


def _best(epsilon: Fraction, family: Callable[[Fraction, Fraction], Recipe]) -> float:
    return _noise(best_recipe(lambda beta: family(epsilon, beta), guess=_smooth_bound, confidence=HALF))


def _noise(recipe: Recipe, confidence: Fraction = HALF) -> float:
    return recipe.half_width(confidence) * _smooth_bound(recipe.beta)


@cache
def _smooth_bound(beta: Fraction) -> float:
    return _query().smooth_bound(_column(), beta).approximate(float(beta))


def _query() -> CentralMeanQuery | LowerMedianQuery:
    return adaptive.median_query(grid=GRID, relation=_REPLACE, public_rows=ROWS)


_BOUND = 2000
_SIZES = tuple(range(100, 1201, 20))  # Even numbers: of odd ones a row moves the median twice as far.


def proposed() -> Exhibit:
    curves = {
        f"ε = {float(epsilon):g}": (list(_SIZES), [_answers(size, epsilon) for size in _SIZES])
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2))
    }
    sure = {name: next(x for x, y in zip(*pair, strict=True) if y > 0.999) for name, pair in curves.items()}
    return Exhibit(
        chart=plots.lines(curves, across="rows (number)", up="chance of an answer (probability)"),
        figures={
            "sure_at_one": sure["ε = 1"],
            "sure_at_two": sure["ε = 2"],
            "error_at_one": DiscreteLaplaceLaw(Fraction(2 * _BOUND)).half_width(HALF),
        },
    )


def _answers(size: int, epsilon: Fraction) -> float:
    mechanism = adaptive.propose_median(
        grid=GRID, bound=_BOUND, epsilon=epsilon, delta=DELTA, relation=_REPLACE, public_rows=size
    )
    with precision(64):
        return float(mechanism.test.chance(mechanism.distance(INCOMES.column(size, GRID))))


def bounded() -> Exhibit:
    spent = [epsilon for epsilon in EPSILONS if epsilon >= Fraction(2, 5)]
    hidden = [_best_wide(epsilon) for epsilon in spent]
    paid = [_paid(epsilon) for epsilon in spent]
    proposal = [_proposal(epsilon) for epsilon in spent]
    across = [float(epsilon) for epsilon in spent]
    curves = {
        "paid bound": (across, paid),
        "proposal": (across, proposal),
        "smooth, ± hidden": (across, hidden),
    }
    at = spent.index(Fraction(1))
    return Exhibit(
        chart=plots.lines(curves, across=_EPSILON, up="± (95 %), in euros", log_x=True, log_y=True),
        figures={
            "bounded_at_one": paid[at],
            "proposed_at_one": proposal[at],
            "smooth_at_one": hidden[at],
            "factor": paid[at] / hidden[at],
        },
    )


def _best_wide(epsilon: Fraction) -> float:
    return _noise(best_recipe(lambda beta: _laplace(epsilon, beta), guess=_smooth_bound), WIDE)


_BETAS = tuple(Fraction(f"{10 ** (k / 8):.3e}") for k in range(-24, 1))


def _paid(epsilon: Fraction) -> float:
    """Return the typical ± at the best beta: the smooth bound, enlarged, with noise for it."""
    rest = epsilon / 2

    def half_width(beta: Fraction) -> float:
        mechanism = BoundedSmoothSensitivity(query=_query(), beta=beta, epsilon=epsilon, delta=DELTA)
        bound = min(mechanism.inflation * _smooth_bound(beta), GRID.width)
        return float(DiscreteLaplaceLaw(Fraction(math.ceil(bound)) / rest).half_width(WIDE))

    return min(half_width(beta) for beta in _BETAS)


def _proposal(epsilon: Fraction) -> float:
    found = dp.compare(
        "median",
        relation=_REPLACE,
        epsilon=epsilon,
        delta=DELTA,
        public_rows=ROWS,
        bounds=(0, 10**6),
        step=1,
        expected=INCOMES,
    )
    assert isinstance(found, Comparison)
    return found.predictions["propose-test-release"].wide
