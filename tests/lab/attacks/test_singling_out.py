"""Singling out: the smallest combinations in which only one person fits a record, and no others."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest

from discreet import data
from discreet.errors import InvalidParameter
from discreet.lab.attacks import singling_out
from discreet.lab.attacks.uniqueness_search import SingledOut

ROWS = {
    "who": [1, 2, 3, 4, 4],
    "zip": ["1", "1", "2", "1", None],
    "born": [date(1950, 1, 1), date(1950, 1, 1), date(1950, 1, 1), date(1960, 2, 2), date(1960, 2, 2)],
    "sex": ["F", "M", "F", "F", "F"],
}
ANN = {"zip": "1", "born": "1950-01-01", "sex": "F"}


def found(record: dict[str, object] = ANN, **changed: object) -> SingledOut:
    return singling_out(pa.table(ROWS), record, **changed).value


def test_only_the_smallest_combinations_are_told() -> None:
    result = found()
    assert result.combinations == (("zip", "born", "sex"),)
    assert result.crowds == (("zip", 3), ("born", 3), ("sex", 4))
    assert (result.fits, result.people) == (1, 5)
    assert found({"zip": "2", "born": date(1950, 1, 1), "sex": "F"}).combinations == (("zip",),)
    assert found({"zip": None, "sex": "F"}).combinations == (("zip",),)
    assert found(size=2).combinations == ()


def test_two_rows_of_one_person_are_one_person() -> None:
    of_rows, of_people = (found({"born": "1960-02-02", "sex": "F"}, person=who) for who in (None, "who"))
    assert (of_rows.fits, of_rows.combinations) == (2, ())
    assert (of_people.fits, of_people.combinations, of_people.people) == (1, (("born",),), 4)


def test_a_record_of_nobody_is_told_as_such() -> None:
    result = found({"zip": "2", "sex": "M"})
    assert (result.fits, result.combinations) == (0, ())
    assert str(result) == "nobody of 5 fits this record in all of zip, sex"


def test_a_patient_of_the_county_is_singled_out_by_a_birth_date() -> None:
    with data.folder("hospital") as folder:
        record = {"zip": "37360", "birth_date": "1929-10-15", "sex": "f", "diagnosis": "heart disease"}
        result = singling_out(folder / "stays.parquet", record, person="patient").value
    assert result.people == 18_217
    assert result.combinations == (("birth_date",),)
    assert json.loads(result.to_json())["crowds"]["birth_date"] == 1


@pytest.mark.parametrize(
    ("record", "why"),
    [({}, "from 1 to 62 facts"), ({"salary": 1}, "no column"), ({"born": "yesterday"}, "cannot be read as its type")],
)
def test_nonsense_is_refused_without_repeating_it(record: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as refused:
        found(record)
    assert "yesterday" not in str(refused.value)
