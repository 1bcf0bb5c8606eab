"""Options of methods are read exactly and refused while nothing is paid; no float decides how much noise there is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.privacy import Relation
from discreet.synth.tables import AIM, MST
from discreet.synth.tables.private_table import MarginalSensitivity, PrivateTable, RoundAccount

WRONG: list[Any] = [
    lambda: AIM(ways=0),
    lambda: AIM(ways="3"),  # type: ignore[arg-type]
    lambda: AIM(rounds=0),
    lambda: AIM(longer=0),
    lambda: AIM(most_cells=0),
    lambda: AIM(choice_share=Fraction(3, 2)),
    lambda: AIM(columns_share=Fraction(1)),
    lambda: AIM(drowned=float("nan")),
    lambda: MST(drowned=-1.0),
    lambda: MST(columns_share=Fraction(0)),
    lambda: MST(columns_share=Fraction(1, 2), choices_share=Fraction(1, 2)),
]


@pytest.mark.parametrize("make", WRONG)
def test_options_that_cannot_be_are_refused_at_once(make: Any) -> None:
    with pytest.raises(dp.InvalidParameter):
        make()


def test_shares_are_exact_however_they_are_written() -> None:
    assert MST(columns_share=0.3).columns_share == Fraction(3, 10)  # type: ignore[arg-type]
    assert AIM(choice_share="1/7").choice_share == Fraction(1, 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("price", [0.1, 0.3, 1 / 3, 0.7])
def test_noise_is_no_less_than_what_was_charged_for(price: float, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Fraction] = []

    def draw(size: int, variance: Any) -> Any:
        drawn.append(Fraction(variance))
        return np.zeros(size, np.int64)

    monkeypatch.setattr("discreet.synth.tables.private_table.noise.rounded_gaussian", draw)
    table = PrivateTable(
        np.zeros((3, 1), np.int32), (2,), MarginalSensitivity(Relation.ADD_REMOVE), RoundAccount(Fraction(1))
    )
    table.measure((0,), price)  # type: ignore[arg-type]
    assert drawn == [1 / table.account.spent]
