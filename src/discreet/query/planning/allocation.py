"""Pass: which numbers are paid together, and how the budget is split.

Everything that is paid gets the same part: each bundle of numbers, each choice within groups, and the choice of groups
if their keys are not public. Equal parts minimise the sum of all variances, each relative to its squared sensitivity:
that sum is as the sum of 1 / part^2 for Laplace noise and of 1 / part for Gaussian noise, both convex and symmetric.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.query.planning.draft import PlanDraft
from discreet.query.planning.exclusive import exclusive

__all__ = ["bundle_numbers", "parts"]


def bundle_numbers(draft: PlanDraft) -> PlanDraft:
    """Put numbers together of which no row moves two; greedily, each into the first bundle that takes it."""
    bundles: list[list[int]] = []
    for place in range(len(draft.numbers)):
        for bundle in bundles:
            if all(exclusive(draft, place, other) for other in bundle):
                bundle.append(place)
                break
        else:
            bundles.append([place])
    return replace(draft, bundles=tuple(tuple(bundle) for bundle in bundles))


def parts(draft: PlanDraft) -> tuple[int, int]:
    """Return in how many parts the budget is split: for noise on numbers and groups, and for choices within groups."""
    return len(draft.bundles) + (draft.groups is None), len(draft.picks)
