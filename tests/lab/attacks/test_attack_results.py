"""What linkage and differencing found can be written and drawn, and exact tables are made private as they say."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter
from discreet.lab.attacks import differencing, linkage, tabulate
from discreet.lab.attacks.count_tables import CountNoise, noised
from discreet.privacy import Relation, epsilon, gaussian_sigma

ROWS = {
    "zip": ["1", "1", "2", "2", "3"],
    "long": [True, False, False, False, False],
    "ill": ["a", "b", "b", "b", "a"],
}
NAMES = {"name": ["Ann", "Bo"], "zip": ["3", "2"]}


def test_linkage_writes_and_draws_itself() -> None:
    found = linkage(pa.table(ROWS), pa.table(NAMES), on=["zip"], name="name", tell=["ill"]).value
    written = json.loads(found.to_json())
    assert (written["named"], written["on"]) == ({"hits": 3, "of": 5}, ["zip"])
    assert '"told": "60.0 %"' in found.plot().to_json()


def test_differencing_writes_and_draws_itself() -> None:
    tables = [tabulate(pa.table(ROWS), ["ill"], where=where).value for where in ("", "NOT long")]
    found = differencing(pa.table(ROWS), tables, attribute="ill").value
    written = json.loads(found.to_json())
    assert (written["named"], written["examples"][0]["guess"]) == ({"hits": 1, "of": 1}, "a")
    chart = found.plot().to_json()
    assert "guessed right" in chart
    assert "no attacker exceeds" not in chart


def test_the_ceiling_is_drawn_if_there_is_one() -> None:
    tables = [tabulate(pa.table(ROWS), ["ill"], where=where).value for where in ("", "NOT long")]
    private, event = noised(tables, epsilon=1, delta="1e-6")
    found = differencing(pa.table(ROWS), private, attribute="ill", isolating=tables, event=event).value
    assert "no attacker exceeds" in found.plot().to_json()


@pytest.mark.parametrize("level", ["0.1", "1", "10"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_private_tables_cost_what_was_asked_for_together(level: str, count: int) -> None:
    table = tabulate(pa.table(ROWS), ["ill"]).value
    private, event = noised([table] * count, epsilon=level, delta="1e-6")
    spent = epsilon(event, Fraction(1, 10**6), relation=Relation.ADD_REMOVE)
    assert 0.999 * float(level) < spent <= float(level)
    assert all(one.noise is CountNoise.GAUSSIAN for one in private)
    assert private[0].deviation == pytest.approx(gaussian_sigma(level, "1e-6") * count**0.5)


@pytest.mark.statistical
def test_the_noise_of_private_tables_is_as_large_as_declared() -> None:
    """Of 20,000 counts, the mean square is off by a fifth with a chance below 1e-9; half the noise is far outside."""
    many = tabulate(pa.table({"x": np.arange(20_000)}), ["x"]).value
    (private,), _ = noised([many], epsilon=1, delta="1e-6")
    square = float(np.mean((private.counts - many.counts) ** 2))
    assert 0.8 < square / private.deviation**2 < 1.2
    assert not 0.8 < square / (private.deviation / 2) ** 2 < 1.2


def test_tables_that_are_noisy_already_are_refused() -> None:
    private, _ = noised([tabulate(pa.table(ROWS), ["ill"]).value], epsilon=1, delta="1e-6")
    for wrong in ([], private):
        with pytest.raises(InvalidParameter, match="exact ones"):
            noised(wrong, epsilon=1, delta="1e-6")
