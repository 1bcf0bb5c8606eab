"""Rows of a CSV file: whatever stands in one, all others are read as if it were not there."""

from __future__ import annotations

import csv as standard
import gzip
import itertools
import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.frames import csv_rows
from discreet.frames.csv_rows import LONGEST_LINE, CsvRows
from discreet.schema.csv_file import csv, fields_of, goes_on

Row = tuple[str | None, ...]
HEADER = b"who;x;s\n"
# What breaks readers that look at more than one line, or at bytes in another way than one by one.
NASTY = [
    b'3;1;"never closed', b'"', b'";"', b'3;"a" b;c', b'3;a"b;"c', b'3;"a""b;c', b'3;"a"";b";c', b'"""";;',
    b'3;""";"";"',
    b"3;1", b"3;1;2;4;5", b"", b";", b";;", b";;;;;;;;", b"\r", b"3;\r;4", b"\r\r", b"\0", b"3;\0;\x1f",
    b"3;\xff;ok", b"3;\xc3;ok", b"3;ok;\xe2\x82", b"\xff\xfe3;1;2", b"\xef\xbb\xbf3;1;2", b"3;\x81;\x8d",
    b"# 3;1;2", b"\\;\\\\;\\",
    b"3;1;'", b"3;'a;b';c", b"3;,;\t|", b"x" * 5000, b'"' * 4001, b";" * 3000, b"3;NULL;nan",
]  # fmt: skip
USUAL = [b"1;2;a", b'2;"3,5";"b ""q"" c"', b"4;5;", b'"5";"";"x;y"', b"6;7;\xc3\xa4"]
FORMATS = [
    {"quote": '"', "encoding": "utf-8"}, {"quote": "'", "encoding": "utf-8"}, {"quote": "", "encoding": "utf-8"},
    {"quote": '"', "encoding": "latin-1"}, {"quote": '"', "encoding": "cp1252"},
    {"quote": "'", "encoding": "iso8859-15"},
]  # fmt: skip


def rows_of(path: Path, *, width: int = 3, line_breaks: bool = False, **said: str) -> list[Row]:
    file = csv(path, delimiter=";", **said)  # type: ignore[arg-type]
    marks = file.delimiter.encode(), file.quote.encode()
    rows = CsvRows(str(path), width, *marks, file.encoding, fields_of, goes_on, line_breaks)
    return [tuple(text or None for text in row) for row in pa.table(rows).column("f").to_pylist()]


def meant(line: bytes, quote: str, encoding: str) -> list[Row]:
    """Read one line by the rule as it is written down, one character after the other."""
    if len(line) > LONGEST_LINE:
        return []
    line = line.removesuffix(b"\r")
    if not line or (quote and line.count(quote.encode()) % 2):
        return []
    fields, field, at, mark = [], b"", 0, quote.encode() or None
    while True:
        if mark and line[at : at + 1] == mark:
            at += 1
            while line[at : at + 1] != mark or line[at : at + 2] == mark * 2:
                if at >= len(line):
                    return []
                step = 2 if line[at : at + 2] == mark * 2 else 1
                field, at = field + line[at : at + 1], at + step
            at += 1
            if line[at : at + 1] not in (b"", b";"):
                return []
        else:
            while at < len(line) and line[at : at + 1] != b";":
                field, at = field + line[at : at + 1], at + 1
        fields.append(field)
        if at >= len(line) or len(fields) == 3:  # Beyond the columns nothing is read.
            break
        field, at = b"", at + 1
    read: list[str | None] = []
    for one in [*fields, b"", b""][:3]:
        try:
            read.append(one.decode(encoding) or None)
        except UnicodeDecodeError:
            read.append(None)
    return [tuple(read)]


@pytest.mark.parametrize("said", FORMATS)
def test_each_nasty_line_changes_nothing_but_its_own_row(tmp_path: Path, said: dict[str, str]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b"\n".join(USUAL) + b"\n")
    usual = Counter(rows_of(path, **said))
    assert usual == Counter(itertools.chain.from_iterable(meant(line, **said) for line in USUAL))
    for nasty, place in itertools.product(NASTY, (0, 2, len(USUAL))):
        path.write_bytes(HEADER + b"\n".join([*USUAL[:place], nasty, *USUAL[place:]]) + b"\n")
        assert Counter(rows_of(path, **said)) == usual + Counter(meant(nasty, **said)), nasty


@pytest.mark.parametrize("said", FORMATS)
def test_all_nasty_lines_together_are_read_as_each_alone(tmp_path: Path, said: dict[str, str]) -> None:
    path = tmp_path / "t.csv"
    lines = [line for pair in itertools.product(NASTY, USUAL) for line in pair]
    for end in (b"\n", b"\r\n"):
        path.write_bytes(HEADER + end.join(lines))  # without a line feed at the end
        rows = Counter(itertools.chain.from_iterable(meant(line + end[:-1], **said) for line in lines))
        assert Counter(rows_of(path, **said)) == rows


def test_every_short_line_is_read_by_the_rule(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [bytes(line) for size in range(7) for line in itertools.product(b'";a', repeat=size)]
    path.write_bytes(HEADER + b"\n".join(lines) + b"\n")
    rows = Counter(itertools.chain.from_iterable(meant(line, '"', "utf-8") for line in lines))
    assert Counter(rows_of(path)) == rows


def test_where_blocks_end_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b"\n".join(NASTY[:30] + USUAL) + b"\n")
    whole = Counter(rows_of(path))
    for size in (1, 2, 3, 5, 64):
        monkeypatch.setattr(csv_rows, "_BLOCK", size)
        assert Counter(rows_of(path)) == whole


@pytest.mark.parametrize("more", [-1, 0, 1, 2, 100])
def test_a_line_that_is_too_long_is_left_out_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST_LINE", 50)
    path = tmp_path / "t.csv"
    long = b"9;9;" + b"x" * (46 + more)
    for size, end in itertools.product((1, 7, 1000), (b"\n", b"\r\n")):
        monkeypatch.setattr(csv_rows, "_BLOCK", size)
        path.write_bytes(HEADER + end.join([b"1;2;a", long, b"2;3;b", b""]))
        kept = [("9", "9", "x" * (46 + more))] if more <= 0 else []
        assert Counter(rows_of(path)) == Counter([("1", "2", "a"), ("2", "3", "b"), *kept])


def test_encodings_are_read_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for encoding in ("latin-1", "cp1252", "cp1250", "iso8859-15", "cp850", "koi8-r", "mac-roman"):
        letters = [bytes([byte]) for byte in range(128, 256)]
        path.write_bytes(HEADER + b"".join(b"%d;x%sy;%s\n" % (place, one, one) for place, one in enumerate(letters)))
        found = {row[0]: row[1:] for row in rows_of(path, encoding=encoding)}
        assert len(found) == len(letters)
        for place, one in enumerate(letters):
            text = one.decode(encoding, "replace")
            assert found[str(place)] == ((None, None) if text == "\ufffd" else (f"x{text}y", text))


def test_packed_files_and_one_column_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b'x\na\n\n"b"\n""\n'))
    assert Counter(rows_of(path, width=1)) == Counter([("a",), (None,), ("b",), (None,)])


def test_a_file_is_read_as_often_as_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b"1;2;a\n1;3;b\n")
    rows = CsvRows(str(path), 3, b";", b'"', "utf-8", fields_of, goes_on)
    with duckdb.connect() as connection:
        connection.register("t", rows)
        joined = "SELECT count(*) FROM t AS a JOIN t AS b ON a.f[1] = b.f[1]"
        assert connection.execute(joined).fetchall() == [(4,)]
        path.write_bytes(HEADER + b"1;2;a\n")
        assert connection.execute(joined).fetchall() == [(1,)]


TEXTS = st.text(alphabet='"; \n,a1', max_size=12).map(lambda text: text.replace("\n,", "\r\n"))


def as_written(rows: list[list[str]], path: Path) -> None:
    """Write a file as Python's own writer does, which is that of pandas, too."""
    with path.open("w", newline="") as file:
        writer = standard.writer(file, delimiter=";", lineterminator="\n")
        writer.writerows([["who", "x", "s"], *rows])


def as_meant(rows: list[list[str]]) -> Counter[Row]:
    return Counter(tuple(text.replace("\r\n", "\n") or None for text in row) for row in rows)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS).map(list), max_size=6), st.sampled_from([1, 3, 1000]))
def test_what_a_proper_writer_writes_is_read_as_it_was(rows: list[list[str]], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "_BLOCK", size)
        path = Path(folder) / "t.csv"
        as_written(rows, path)
        assert Counter(rows_of(path, line_breaks=True)) == as_meant(rows)


def test_a_text_that_looks_like_rows_is_part_of_its_own_row(tmp_path: Path) -> None:
    """Read line by line, one person's comment would be 500 rows of others."""
    others = [[str(number), "1", "x"] for number in range(100)]
    comment = "hello\n" + "".join(f"{1000 + number};10;x\n" for number in range(500)) + "bye"
    path = tmp_path / "t.csv"
    as_written([*others, ["777", "1", comment]], path)
    assert Counter(rows_of(path, line_breaks=True)) == as_meant([*others, ["777", "1", comment]])
    assert len(rows_of(path, line_breaks=False)) == 600  # What is declared wrongly is read wrongly; the docs say so.


def test_a_quote_within_a_field_opens_nothing(tmp_path: Path) -> None:
    """Not by RFC 4180, and frequent: 5" pipes. A field is quoted only where it begins with a quote."""
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b'1;5" pipe;a\n2;6;b\n3;7" and 8" pipes;c\n')
    found = Counter([("1", '5" pipe', "a"), ("2", "6", "b"), ("3", '7" and 8" pipes', "c")])
    assert Counter(rows_of(path, line_breaks=True)) == found


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_row_of_many_lines_that_is_too_long_is_left_out_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(csv_rows, "LONGEST_LINE", 50)
    monkeypatch.setattr(csv_rows, "_BLOCK", size)
    path = tmp_path / "t.csv"
    rows = [["1", "2", "a"], ["9", "9", 'x";9\n' * 30], ["2", "3", "b\nc"]]
    as_written(rows, path)
    assert Counter(rows_of(path, line_breaks=True)) == as_meant([rows[0], rows[2]])


def test_a_row_that_never_ends_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b'1;2;a\n2;"never closed;b\n3;4;c')
    assert rows_of(path, line_breaks=True) == [("1", "2", "a")]


def test_many_short_lines_of_a_wide_table_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of them was half a billion cells at once, and the answer failed for one person's rows."""
    monkeypatch.setattr(csv_rows, "_CELLS", 4000)
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b"9;\n" * 5000 + b'8;"x"\n' + b"\n" + b"7\n")
    rows = CsvRows(str(path), 400, b";", b'"', "utf-8", fields_of, goes_on)
    batches = [len(batch) for batch in rows._batches()]
    assert max(batches) <= 10
    assert sum(batches) == 5002
    assert Counter(row[:3] for row in rows_of(path, width=400)) == Counter(
        {("9", None, None): 5000, ("8", "x", None): 1, ("7", None, None): 1}
    )
