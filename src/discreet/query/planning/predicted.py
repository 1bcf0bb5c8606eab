"""How far off an answer will be, before anything is read."""

from __future__ import annotations

from fractions import Fraction

from discreet.exact import up
from discreet.query.planning.answers import counted_terms, noise_of
from discreet.query.planning.combined import reach_of_sum
from discreet.query.planning.draft import Added, Averaged, CountTerm, Picked, PlanDraft, SpreadTerm
from discreet.query.planning.grids import reach_of
from discreet.query.question import OutputColumn, ReleasedMeasure

__all__ = ["needs_rows", "predicted"]


def needs_rows(draft: PlanDraft, output: OutputColumn) -> bool:
    """Whether the error of a column depends on how many rows a group has."""
    return isinstance(output.value, ReleasedMeasure) and isinstance(
        draft.recipes[output.value.measure], (Averaged, SpreadTerm)
    )


def predicted(draft: PlanDraft, output: OutputColumn, rows: int | None) -> Fraction | None:
    """Return the ± of a column, exactly for counts and sums; for means an upper bound in a group of so many rows."""
    if not isinstance(output.value, ReleasedMeasure):
        return None
    recipe, confidence = draft.recipes[output.value.measure], draft.spend.confidence
    match recipe:
        case CountTerm():
            return reach_of_sum(counted_terms(draft, recipe), confidence)
        case Added():
            return _added(draft, recipe, confidence)
        case Averaged():
            return None if rows is None else _averaged(draft, recipe, output.name, rows)
        case SpreadTerm():
            return None if rows is None else _spread(draft, recipe, output.name, rows)
        case Picked():
            return None


def _added(draft: PlanDraft, recipe: Added, confidence: Fraction) -> Fraction:
    terms = [(Fraction(1), noise_of(draft, recipe.total))]
    if recipe.count is not None:
        terms.append((Fraction(recipe.centre), noise_of(draft, recipe.count)))
    return recipe.grid.step * reach_of_sum(terms, confidence)


def _averaged(draft: PlanDraft, recipe: Averaged, name: str, rows: int) -> Fraction:
    """The noise of (sum - mean * count) over n; the mean is at most the reach away from the centre."""
    away: Fraction = Fraction(reach_of(recipe.grid, recipe.centre))
    if name in draft.spend.sizes:
        away = min(away, abs(draft.spend.sizes[name] / recipe.grid.step - recipe.centre))
    terms = [(Fraction(1), noise_of(draft, recipe.total)), (away, noise_of(draft, recipe.count))]
    return recipe.grid.step * reach_of_sum(terms, draft.spend.confidence) / rows


def _spread(draft: PlanDraft, recipe: SpreadTerm, name: str, rows: int) -> Fraction:
    """To first order in the noise, at the largest mean of squares and the largest mean."""
    away = Fraction(reach_of(recipe.grid, recipe.centre))
    terms = [
        (Fraction(1), noise_of(draft, recipe.squares)),
        (2 * away, noise_of(draft, recipe.total)),
        (away**2, noise_of(draft, recipe.count)),
    ]
    reach = reach_of_sum(terms, draft.spend.confidence) / rows
    variance = recipe.grid.step**2 * reach
    if not recipe.root:
        return variance
    # If v moves by e, its root moves by at most the root of |e|, and by at most |e| over the root of v.
    moved = Fraction(up(variance) ** 0.5)
    return min(moved, variance / draft.spend.sizes[name]) if name in draft.spend.sizes else moved
