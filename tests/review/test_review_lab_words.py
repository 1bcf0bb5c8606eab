"""What the engine says of a value stays in the lab, also where a column is calculated."""

from __future__ import annotations

import traceback

import pyarrow as pa
import pytest

from discreet import attacks
from discreet.errors import InvalidParameter


@pytest.mark.parametrize("text", ["CAST(name AS INTEGER)", "error(name)"])
def test_a_calculation_that_fails_on_a_value_does_not_tell_it(text: str) -> None:
    table = pa.table({"name": ["Annabella", "Bob"]})
    with pytest.raises(InvalidParameter) as caught:
        attacks.uniqueness(table, {"n": text})
    assert "Annabella" not in "".join(traceback.format_exception(caught.value))
