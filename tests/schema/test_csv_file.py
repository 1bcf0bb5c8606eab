"""How a CSV file is written is declared; its header is checked before anything is spent, and no row is looked at."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.schema.csv_file import csv, header_of

BUDGET: dict[str, Any] = {"budget": dp.Budget(epsilon=1), "dataset": "d", "principal": "ana"}


@pytest.mark.parametrize(
    ("data", "said", "names"),
    [
        (b"a,b\n", {}, ("a", "b")),
        (b"\xef\xbb\xbfa,b\r\n", {}, ("a", "b")),
        (b'"a;b",c\n', {}, ("a;b", "c")),
        (b'"a;b"\n', {}, ("a;b",)),
        (b"a;b\n", {"delimiter": ";"}, ("a", "b")),
        (b"a\tb", {"delimiter": "\t"}, ("a", "b")),
        (b"'a|b'|c\n", {"delimiter": "|", "quote": "'"}, ("a|b", "c")),
        (b"Gr\xf6\xdfe,\x80\n", {"encoding": "cp1252"}, ("Größe", "€")),
        (b'"a ""b""",c\n', {}, ('a "b"', "c")),
        (b"a b c\n", {}, ("a b c",)),
    ],
)
def test_headers_are_read_as_declared(tmp_path: Path, data: bytes, said: dict[str, str], names: tuple[str]) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    assert header_of(csv(tmp_path / "t.csv", **said)) == names  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "said", "words"),
    [
        (b"a;b\n1;2\n", {}, ['delimiter=";"', 'delimiter = ";"', '--delimiter ";"', "semicolon"]),
        (b"a\tb\n1\t2\n", {}, ['delimiter="\\t"', 'delimiter = "\\t"', "--delimiter $'\\t'", "tab"]),
        (b"a|b\n", {}, ['delimiter="|"', "vertical bar"]),
        (b'"a";"b"\n', {}, ['delimiter=";"']),
        (b"a,b\n", {"delimiter": ";"}, ['delimiter=","', "divided by semicolon"]),
        (b"Gr\xf6\xdfe,b\n", {}, ['encoding="cp1252"', "--encoding"]),
        (b"\xff\xfea\0,\0", {}, ["UTF-16", "UTF-8"]),
        (b"a\0,\0b\0\n", {}, ["UTF-16"]),
        (b"\xef\xbb\xbfa,b\n", {"encoding": "latin-1"}, ["leave encoding out"]),
        (b"a,b\r1,2\r", {}, ["carriage return"]),
        (b"", {}, ["must name all"]),
        (b"\n1,2\n", {}, ["must name all"]),
        (b",a,b\n", {}, ["to_csv(index=False)"]),
        (b'a,"b\nc"\n', {}, ["quotes closed"]),
        (b"a,A\n", {}, ["same name"]),
        (b"a,b,a\n", {}, ["same name"]),
    ],
)
def test_headers_that_cannot_be_are_refused_with_what_to_write(
    tmp_path: Path, data: bytes, said: dict[str, str], words: list[str]
) -> None:
    file, ledger = tmp_path / "t.csv", tmp_path / "t.ledger"
    file.write_bytes(data)
    table: Any = dp.csv(file, **said) if said else file  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidParameter) as refused:
        dp.Session({"t": table}, unit="row", ledger=ledger, **BUDGET)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert not ledger.exists()


def test_rows_are_not_looked_at_when_a_file_is_declared(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\n1;2;3\n\xff\xfe\0\n")
    assert header_of(csv(tmp_path / "t.csv")) == ("a",)


@pytest.mark.parametrize(
    "said",
    [
        {"delimiter": ""}, {"delimiter": ";;"}, {"delimiter": "\n"}, {"delimiter": "ä"}, {"quote": ","},
        {"quote": "''"}, {"encoding": "utf-16"}, {"encoding": "shift_jis"}, {"encoding": "rot13"},
        {"encoding": "no such"}, {"encoding": "cp037"}, {"encoding": "utf-7"}, {"decimal": ";"}, {"decimal": ""},
        {"decimal": ",", "thousands": ","}, {"thousands": "x"},
        {"dates": "%d.%m."}, {"dates": {"a": "%Y"}}, {"line_breaks": None}, {"line_breaks": "no"},
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(dp.InvalidParameter):
        dp.csv("t.csv", **said)


def test_names_of_encodings_are_those_of_python() -> None:
    for name in ("UTF-8", "utf8", "utf-8-sig", "ascii"):
        assert csv("t.csv", encoding=name).encoding == "utf-8"
    for name in ("Latin-1", "iso-8859-1", "windows-1252", "cp1252", "ISO-8859-15", "macroman"):
        assert csv("t.csv", encoding=name).encoding != "utf-8"


FOUR = "id;Datum;Lohn\n" + "".join(
    f"{place};{('2025-02-01', '02/01/25', '1.2.2025', '2025/02/01')[place % 4]};{place % 7},5\n" for place in range(400)
)
DAYS = dp.between(date(2025, 1, 1), date(2025, 12, 31))


@pytest.mark.parametrize(
    ("said", "month"), [({}, 2), ({"dates": "%m/%d/%y"}, 2), ({"dates": {"Datum": "%d/%m/%y"}}, 1)]
)
def test_only_the_declared_spelling_of_a_date_counts(tmp_path: Path, said: dict[str, Any], month: int) -> None:
    (tmp_path / "t.csv").write_text(FOUR)
    file = dp.csv(tmp_path / "t.csv", delimiter=";", decimal=",", **said)
    columns = {"Datum": DAYS, "Lohn": dp.between(0, 10, whole=False)}
    with dp.Session(
        {"t": file}, unit="row", columns=columns, ledger="memory", **BUDGET | {"budget": dp.Budget(epsilon=1000)}
    ) as session:
        assert ("written as" in session.describe()) is True
        plan = session.sql("SELECT COUNT(*) AS n FROM t WHERE Datum IS NOT NULL", epsilon=1)
        assert any("Datum is read" in note and "other spellings are missing" in note for note in plan.notes)
        assert "Lohn is read" not in str(plan.explain())
        counted = session.sql(
            "SELECT MONTH(Datum) AS m, COUNT(*) AS n FROM t GROUP BY MONTH(Datum)", epsilon=100
        ).release()
        found = {m.value: round(n.value) for m, n in zip(counted["m"], counted["n"], strict=True)}
        assert found == dict.fromkeys(range(1, 13), 0) | {month: 100}
        lohn = session.sql("SELECT AVG(Lohn) AS x FROM t", epsilon=100).release().single().value
    assert lohn == pytest.approx(sum(place % 7 + 0.5 for place in range(400)) / 400, abs=0.05)


POLICY = """
dataset = "d"
ledger = "d.ledger"
[unit]
column = "row"
[budget]
epsilon = 1000
[tables.t]
source = "t.csv"
[tables.t.csv]
delimiter = ";"
decimal = ","
dates = { Datum = "%d/%m/%y" }
[tables.t.columns]
Datum = { low = 2025-01-01, high = 2025-12-31 }
Lohn = { low = 0.0, high = 10.0 }
"""


def test_policies_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(FOUR)
    (tmp_path / "policy.toml").write_text(POLICY)
    policy = dp.query.read_policy(tmp_path / "policy.toml")
    assert policy.tables["t"].columns["Datum"].format == "%d/%m/%y"
    assert policy.tables["t"].columns["Lohn"].format == "1234,56"
    asked = "SELECT COUNT(*) AS n, AVG(Lohn) AS x FROM t WHERE Datum IS NOT NULL"
    for handed in ({}, {"t": tmp_path / "t.csv"}):
        with dp.Session.from_policy(policy, principal="ana", tables=handed) as session:
            answer = session.sql(asked, epsilon=100).release()
        assert round(answer["n"][0].value) == 100
        assert 3 < answer["x"][0].value < 4


@pytest.mark.parametrize(
    ("old", "new", "line"), [('";"', '";;"', 10), ('"%d/%m/%y"', '"%d"', 10), ("delimiter", "separator", 11)]
)
def test_a_policy_that_declares_a_file_wrongly_names_the_line(tmp_path: Path, old: str, new: str, line: int) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace(old, new))
    with pytest.raises(dp.InvalidParameter, match=f"line {line}, tables.t.csv"):
        dp.query.read_policy(tmp_path / "policy.toml")


def test_numbers_in_texts_of_any_table_are_read_by_their_format() -> None:
    import pyarrow as pa

    table = pa.table({"x": ["1.234,5", "7,5", "1.5", "x"] * 50})
    columns = {"x": dp.between(0, 2000, whole=False, format="1.234,56")}
    budget = {"budget": dp.Budget(epsilon=1000)}
    with dp.Session(table, unit="row", columns=columns, ledger="memory", **BUDGET | budget) as session:
        answer = session.sql("SELECT COUNT(x) AS n, SUM(x) AS s FROM d", epsilon=100).release()
    assert round(answer["n"][0].value) == 100
    assert answer["s"][0].value == pytest.approx(50 * 1242, abs=1500)
    for wrong in ("1.234.56", "%d", "1234;56", "", "1,2"):
        with pytest.raises(dp.InvalidParameter, match=r"how 1234\.56 is written"):
            dp.between(0, 1, format=wrong)


def test_whole_numbers_need_no_word_about_a_decimal_mark(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("person;age;cost\n1;30;2,5\n2;40;3,5\n")
    known = {"age": dp.between(0, 100, whole=True), "cost": dp.between(0, 100)}
    with dp.Session(
        dp.csv(file, delimiter=";", decimal=","),
        unit=dp.Unit("person"),
        budget=dp.Budget(epsilon=1),
        ledger="memory",
        dataset="a",
        principal="ana",
        columns=known,
    ) as session:
        notes = session.sql("SELECT SUM(age) AS a, SUM(cost) AS c FROM a", epsilon=1).notes
    assert [note.split()[0] for note in notes if "is read as it is declared" in note] == ["cost"]
