"""Regression from moments measured once: the whole way from records to moments, over all neighbours."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from robust.regression_worlds import ADD_REMOVE, BOTH, REPLACE_ONE, largest_mu_squared, small

from discreet.errors import InvalidParameter
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.privacy.relation import Relation
from discreet.robust import AdaSSP, Design, NoisyStatistics
from discreet.robust.reweighting import Lens, bounded

DESIGN = Design.between([(-2, 2)], (0, 10))
RECORDS = (*product((-2, -1, 0, 0.5, 2), (0, 5, 10)), (1e9, -1e9), (float("nan"), 10), (None, "x"))
NOISE = GaussianNoise.for_epsilon(1, Fraction(1, 10**6))


def made(kind: Any, relation: Relation, **fields: Any) -> Any:
    size = None if relation is ADD_REMOVE else 2
    return kind(**({"design": DESIGN, "relation": relation, "noise": NOISE, "public_rows": size} | fields))


def looked(design: Design, data: Any, steps: int) -> tuple[Any, Any]:
    rows = design.rows([RECORDS[place] for place in data])
    return bounded(*Lens.plain(design.dimension).look(rows), design.dimension**0.5, 1.0, steps)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("kind", [NoisyStatistics, AdaSSP])
def test_claim_dominates_brute_force_from_records_on(kind: Any, relation: Relation) -> None:
    moments = made(kind, relation).moments
    found = largest_mu_squared(
        moments,
        small(range(len(RECORDS)), relation, 2),
        relation,
        lambda data: looked(DESIGN, data, moments.radius),
    )
    assert found <= moments.mu_squared
    # Corners of the bounds are as long as rows get, up to a step or two, and under add-remove nothing else counts.
    # Under replace-one no two corners are at the worst angle, which is between the right one and none: 8/9 is reached.
    assert found > moments.mu_squared * (Fraction(999, 1000) if relation is ADD_REMOVE else Fraction(88, 100))


@pytest.mark.parametrize("relation", BOTH)
def test_bounds_taken_from_the_data_are_refuted(relation: Relation) -> None:
    """As in much published code: each column divided by its own largest value."""
    moments = made(NoisyStatistics, relation).moments

    def normalised(data: Any) -> tuple[Any, Any]:
        values = np.array([RECORDS[place] for place in data], dtype=float)
        (low, bottom), (high, top) = values.min(axis=0) - 0.01, values.max(axis=0) + 0.01
        return looked(Design.between([(low, high)], (bottom, top)), data, moments.radius)

    world = small(range(13), relation, 3)
    assert largest_mu_squared(moments, world, relation, normalised) > 1.5 * moments.mu_squared


def test_guess_of_the_coefficients_changes_the_balance_and_not_the_cost() -> None:
    for relation in BOTH:
        few, many = (made(NoisyStatistics, relation, coefficient_norm=norm) for norm in (Fraction(1, 4), 4))
        assert few.event == many.event
        assert few.moments.cross_variance < many.moments.cross_variance
        assert few.moments.gram_variance > many.moments.gram_variance


@pytest.mark.parametrize(
    "bad",
    [
        {"coefficient_norm": -1},
        {"coefficient_norm": float("nan")},
        {"public_rows": 3},
        {"relation": REPLACE_ONE},
        {"relation": "add remove"},
        {"noise": GaussianNoise.for_rho(Fraction(1, 10**40))},
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    known: dict[str, Any] = {"design": DESIGN, "relation": ADD_REMOVE, "noise": NOISE}
    with pytest.raises(InvalidParameter):
        NoisyStatistics(**(known | bad))
