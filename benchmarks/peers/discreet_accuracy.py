"""Discreet on the cells of the accuracy table: every method that applies, and the one that `method="auto"` takes.

A cell is asked thousands of times, so data are read and sorted once, and then the law of each mechanism is drawn from
(`benchmarks.peers.discreet_draws`). Answers are moved into the bounds, as `Release.tidy` does; where a mechanism
declines to answer, that is told as not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

import discreet as dp
from benchmarks.cells import ADD_REMOVE, QUANTILES, Part, read_parts
from benchmarks.peers.arrays import Floats, exponential_maximum, values
from benchmarks.peers.discreet_draws import draw, fits, stable
from benchmarks.peers.protocol import answers, within
from discreet import adaptive
from discreet.adaptive.noise_recipes import Recipe
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.grid import Grid
from discreet.robust.adassp import AdaSSP
from discreet.robust.least_squares import NoisyStatistics
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import Design
from discreet.robust.tukey_em import TukeyRegression
from discreet.statistics.chooser_inputs import ChooserInputs
from discreet.statistics.expected import Expected
from discreet.statistics.method_choice import AUTO, Method, applicable, best, mean_methods, rank_methods
from discreet.statistics.regressions import _automatic

Answers = Iterator[tuple[str, Floats]]
PLAIN = "auto, nothing expected"
GENERATOR = np.random.default_rng()
REGRESSIONS = {"refined": RefinedRegression, "noisy_statistics": NoisyStatistics, "adassp": AdaSSP}
SECONDS = 1.0  # for a cell; whole calls that "auto" does not take are made on the first data set only


def relation(part: Part) -> dp.Relation:
    """Return the relation of a part."""
    return dp.Relation.ADD_REMOVE if part.relation == ADD_REMOVE else dp.Relation.REPLACE_ONE


def facts(part: Part, *, delta: bool) -> ChooserInputs:
    """Return what is public; the number of rows is, or a guess of it."""
    known = part.relation != ADD_REMOVE
    law, first, second = part.expected.split()
    return ChooserInputs(
        grid=Grid.between(part.low, part.high, step=part.step),
        relation=relation(part),
        epsilon=Fraction(part.epsilon),
        delta=Fraction(part.delta) if delta else None,
        size=part.size if known else None,
        expected_size=None if known else part.size,
        expected=_expected(law, first, second),
    )


@cache
def _expected(law: str, first: str, second: str) -> Expected:
    """Return one object a law: by it predictions are remembered."""
    return Expected.normal(first, second) if law == "normal" else Expected.lognormal(first, second)


def chosen(part: Part, public: ChooserInputs) -> Answers:
    """Ask by each of the methods of the chooser, and by those that it would take."""
    made = mechanisms(part.task, public)
    found = {name: inside(part, draw(mechanism, part)) for name, mechanism in made.items()}
    yield from found.items()
    yield AUTO, found[choice(part.task, public)[0]]
    _, plain = choice(part.task, replace(public, expected=None))
    yield PLAIN, inside(part, draw(plain, part))


def methods(task: str) -> tuple[Method, ...]:
    """List the methods of a task."""
    return mean_methods() if task == "mean" else rank_methods(Fraction(QUANTILES[task]))


@lru_cache(64)
def mechanisms(task: str, public: ChooserInputs) -> dict[str, Any]:
    """Make the mechanisms of a task, once for all parts of a cell."""
    return {method.name: method.make(public) for method in applicable(methods(task), public)}


@lru_cache(128)
def choice(task: str, public: ChooserInputs) -> tuple[str, Any]:
    """Return what the chooser would take."""
    method = best(methods(task), public)
    return method.name, method.make(public)


def inside(part: Part, estimates: Floats) -> Floats:
    """Move answers into the bounds, as `Release.tidy` does."""
    return np.clip(estimates, float(part.low), float(part.high))


@cache
def recipe(family: str, epsilon: str, delta: str) -> Recipe:
    """Return the recipe of a family that is narrowest for evenly spaced values, by its median."""
    makers: dict[str, Callable[[Fraction], Recipe]] = {
        "polynomial": lambda beta: adaptive.polynomial(epsilon, beta=beta),
        "Student": lambda beta: adaptive.student(epsilon, beta=beta),
        "Laplace": lambda beta: adaptive.laplace(epsilon, delta, beta=beta),
        "Gaussian": lambda beta: adaptive.gaussian(epsilon, delta, beta=beta),
    }
    return adaptive.best_recipe(makers[family], confidence=Fraction(1, 2))


def smooth(part: Part, query: Any, families: tuple[str, ...]) -> Answers:
    """Ask a query by smooth sensitivity with some families of noise."""
    for family in families:
        made = recipe(family, part.epsilon, part.delta)
        mechanism = adaptive.SmoothSensitivityMechanism(query=query, recipe=made)
        yield f"smooth sensitivity, {family}", inside(part, draw(mechanism, part))


def quantile(part: Part) -> Answers:
    """Ask for a median or another quantile."""
    public, q = facts(part, delta=True), Fraction(QUANTILES[part.task])
    yield from chosen(part, public)
    query: Any = adaptive.median_query(grid=public.grid, relation=public.relation, public_rows=public.size)
    if part.task != "median":
        query = adaptive.quantile_query(grid=public.grid, relation=public.relation, q=q, public_rows=public.size)
    yield from smooth(part, query, ("polynomial", "Student", "Laplace", "Gaussian"))


def mean(part: Part) -> Answers:
    """Ask for a mean. Laplace noise is narrower than Gaussian noise for one number, so no delta is spent."""
    public = facts(part, delta=False)
    yield from chosen(part, public)
    ends = part.size // 20
    queries = {
        "Winsorised 5 %": adaptive.winsorised_mean_query(grid=public.grid, public_rows=part.size, moved=ends),
        "trimmed 5 %": adaptive.trimmed_mean_query(grid=public.grid, public_rows=part.size, trimmed=ends),
    }
    for name, query in queries.items():
        for how, estimates in smooth(part, query, ("polynomial", "Laplace")):
            yield f"{name}, {how}", estimates
    if part.number == 0:
        yield "without bounds", inside(part, np.array(within(SECONDS, part, lambda: without_bounds(part))))


def without_bounds(part: Part) -> float:
    """Ask by rounds that close in on the data."""
    release = dp.robust.location_and_scale(
        values(part),
        bounds=(part.low, part.high),
        relation=relation(part),
        epsilon=part.epsilon,
        delta=part.delta,
    )
    return float(release.value[0])


def mode(part: Part) -> Answers:
    """Ask for the most frequent candidate."""
    counts = values(part)
    found = exponential_maximum(counts, 1 / float(part.epsilon), part.runs, GENERATOR)
    for name in ("permute-and-flip", AUTO, PLAIN):
        yield name, found
    mechanism = adaptive.StableMode(
        domain=tuple(range(len(counts))),
        epsilon=Fraction(part.epsilon),
        delta=Fraction(part.delta),
        relation=relation(part),
    )
    yield "stable mode", stable(mechanism, counts, part.runs)


def regression(part: Part) -> Answers:
    """Fit as often as there is time for; most of it is for the method that is taken if none is named."""
    design = Design.between([(-1, 1)] * (part.columns - 1), (-1, 1))
    noise = GaussianNoise.for_epsilon(part.epsilon, part.delta)
    auto = _automatic(design, noise, part.size)
    for name, make in REGRESSIONS.items():
        mechanism = make(design=design, relation=relation(part), noise=noise)
        if name == auto:
            found = np.concatenate(within(SECONDS, part, fits(mechanism, part)))
            yield from ((as_whom, found) for as_whom in (name, AUTO, PLAIN))
        elif part.number == 0:
            yield name, np.concatenate(within(SECONDS, part, fits(mechanism, part)))
    if part.number == 0:
        tukey = TukeyRegression(
            design=design, relation=relation(part), epsilon=Fraction(part.epsilon), delta=Fraction(part.delta)
        )
        yield "tukey", np.concatenate(within(SECONDS, part, fits(tukey, part)))


TASKS: dict[str, Callable[[Part], Answers]] = {
    **dict.fromkeys(QUANTILES, quantile),
    "mean": mean,
    "mode": mode,
    "regression": regression,
}


def main() -> None:
    """Answer every cell."""
    for part in read_parts(*TASKS):
        for how, estimates in TASKS[part.task](part):
            answers(part, how, estimates, subject="discreet")


if __name__ == "__main__":
    main()
