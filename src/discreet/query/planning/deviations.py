"""How much noise is on the columns of an answer, where that is public: on plain counts and sums, in every row alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from discreet.exact import up
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.query.planning.answers import counted_terms, noise_of
from discreet.query.planning.draft import Added, CountTerm, PlanDraft
from discreet.query.planning.noises import NumberNoise
from discreet.query.question import ReleasedMeasure

__all__ = ["deviations", "variances"]

_PLAIN = 4  # A variance of the Gaussian from which on rounding adds 1/12, up to 1e-30.


def variances(draft: PlanDraft) -> dict[str, Fraction]:
    """Return the variance of every column that is a plain count or sum, by its name."""
    return dict(_each(draft))


def deviations(draft: PlanDraft) -> dict[str, Fraction]:
    """Return their standard deviations, rounded up."""
    return {name: root_up(variance) for name, variance in _each(draft)}


def _each(draft: PlanDraft) -> Iterator[tuple[str, Fraction]]:
    for output in draft.question.outputs:
        if isinstance(output.value, ReleasedMeasure):
            variance = _variance(draft, output.value.measure)
            if variance is not None:
                yield output.name, variance


def _variance(draft: PlanDraft, measure: int) -> Fraction | None:
    match draft.recipes[measure]:
        case CountTerm() as recipe:
            return _of_sum(counted_terms(draft, recipe))
        case Added() as recipe:
            terms = [(recipe.grid.step, noise_of(draft, recipe.total))]
            if recipe.count is not None:
                terms.append((recipe.grid.step * recipe.centre, noise_of(draft, recipe.count)))
            return _of_sum(terms)
        case _:
            return None


def _of_sum(terms: list[tuple[Fraction, NumberNoise]]) -> Fraction:
    """Add up variances: noises are independent, and so is what rounding to a unit moves, which has no variance."""
    return sum((weight**2 * one.unit**2 * _of_law(one.law) for weight, one in terms), Fraction(0))


def _of_law(law: DiscreteLaplaceLaw | RoundedGaussianLaw) -> Fraction:
    if isinstance(law, RoundedGaussianLaw) and law.variance > _PLAIN:
        return law.variance + Fraction(1, 12)
    return Fraction(law.standard_deviation) ** 2


def root_up(square: Fraction) -> Fraction:
    """Return a root that is not below the exact one, to the precision of a float."""
    return Fraction(math.nextafter(math.sqrt(up(square)), math.inf)) if square else Fraction(0)
