"""Odd and hostile names, paths, numbers and files: a typed error at once, and nothing that steers a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discreet as dp
from discreet import release, synth
from discreet.cli.command_runner import run
from discreet.cli.exits import Code
from discreet.errors import DiscreetError, InvalidParameter, Refused
from discreet.names import check_name, check_path, escaped
from discreet.schema import toml_document

STEERING = ["a\x1b[31m", "a\nb", "a\rb", "a\0b", "a\x07", "a\x9b31m", "a\u202eb", "a\u2066b", "a\u2028b", "a\ud800b"]
TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
NUMBERS = [
    "1e999999999",
    "-1e999999999",
    "1e-999999999",
    "1/0",
    "9" * 100_000,
    "½",
    "١٢",
    "nan",
    "inf",
    "0x10",
    "",
    b"1",
]


def opened(tables: Any = TABLE, **more: Any) -> dp.Session:
    usual: dict[str, Any] = {"unit": "row", "budget": dp.Budget(epsilon=10), "ledger": "memory"}
    return dp.Session(tables, **usual | {"dataset": "d", "principal": "me"} | more)


def read_policy(path: Any) -> object:
    return dp.Session.from_policy(path, principal="me")


READERS = [read_policy, release.read_release_plan, synth.read_domain]
NAMED = {
    "dataset": lambda name: opened(dataset=name),
    "principal": lambda name: opened(principal=name),
    "project": lambda name: opened(project=name),
    "version": lambda name: opened(version=name),
    "table": lambda name: opened({name: TABLE}),
    "one of tables": lambda name: opened({"b": TABLE, name: TABLE.copy()}, columns={"b": {}}),
}


@pytest.mark.parametrize("name", [*STEERING, "", "  ", "x" * 100_000, 5, b"d"])
@pytest.mark.parametrize("where", NAMED)
def test_declared_names_steer_no_screen(where: str, name: Any) -> None:
    if where == "project" and name == "":
        return
    with pytest.raises(InvalidParameter) as caught:
        NAMED[where](name)
    assert len(str(caught.value)) < 1_000
    assert is_harmless(str(caught.value))


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def test_names_of_all_languages_stay() -> None:
    for name in ("Größe cm", "患者", "می‌شود", "l'âge", "a" * 1_000):
        assert check_name(name, name="this") == name


@pytest.mark.parametrize("name", [name for name in STEERING if "\ud800" not in name and "\0" not in name])
def test_names_that_files_bring_are_shown_escaped(name: str) -> None:
    """Whoever wrote a header is not whoever reads the screen."""
    session = opened(pd.DataFrame({name: ["a", name], "x": [1.0, 2.0]}), columns={name: dp.categories(["a", name])})
    counts = dp.histogram([name], bins=[name, "a"], relation="add-remove", epsilon=1)
    most = dp.mode([name] * 1_000, candidates=[name, "a"], relation="add-remove", epsilon=5)
    for shown in (str(session.describe()), repr(session), repr(counts), str(most), counts._repr_html_()):
        assert is_harmless(shown)
        assert name not in shown
    quoted = name.replace('"', '""')
    for query in (f'SELECT AVG("{quoted}?") FROM d', f'SELECT COUNT(*) FROM "{quoted}"', name):
        with pytest.raises(Refused) as caught:
            session.sql(query, epsilon=1)
        assert is_harmless(str(caught.value))
    table = session.sql(f'SELECT "{quoted}" AS k, COUNT(*) AS n FROM d GROUP BY 1', epsilon=1).release()
    assert is_harmless(str(table))


def test_a_column_with_a_nul_in_its_name_is_refused_before_it_is_paid() -> None:
    with pytest.raises(InvalidParameter, match="NUL"):
        opened(pd.DataFrame({"a\0b": ["a"], "x": [1.0]}))


def test_messages_are_harmless_and_of_bounded_length() -> None:
    told = str(InvalidParameter("no \x1b[31m here " + "x" * 100_000))
    assert told.startswith("no \\x1b[31m here ")
    assert len(told) < 10_000
    assert escaped("a\u202e\ud800b\n") == "a\\u202e\\ud800b\\n"


@pytest.mark.parametrize("path", ["a\0.csv", "a\ud800.csv", "x" * 1_000 + ".csv", "a/" * 5_000 + "b.csv", ""])
def test_paths_that_no_file_can_have_are_refused(path: str) -> None:
    tries = [
        lambda: opened(path),
        lambda: opened({"d": path}),
        lambda: opened(ledger=path),
        lambda: opened(ledger="memory.ledger", anchor=path),
        *(lambda read=read: read(path) for read in READERS),
    ]
    for attempt in tries:
        with pytest.raises(InvalidParameter):
            attempt()


@pytest.mark.parametrize("path", [5, b"d.csv", None, ["d.csv"], 1.5])
def test_what_is_no_path_is_refused(path: Any) -> None:
    for attempt in (lambda: opened(ledger=path), *(lambda read=read: read(path) for read in READERS)):
        with pytest.raises(DiscreetError):
            attempt()
    with pytest.raises(InvalidParameter):
        check_path(path, name="this")


MANY = 60_000
FILES = {
    "dots in a key": "a" + ".a" * 50_000 + " = 1",
    "dots in a quoted key": '"a"' + ' . "a"' * 50_000 + " = 1",
    "dots in an inline table": "q = {a" + ".a" * 50_000 + " = 1}",
    "dots in a header": "[a" + ".a" * 50_000 + "]",
    "arrays in arrays": "a = " + "[" * 50_000 + "]" * 50_000,
    "tables in tables": "a = " + "{a=" * 50_000 + "1" + "}" * 50_000,
    "unknown keys": "".join(f"k{place} = 1\n" for place in range(MANY)),
    "unknown tables": "".join(f"[k{place}]\n" for place in range(MANY)),
    "unknown items": "[[k]]\n" * MANY,
    "an array of comments": "a = [\n" + "1, #\n" * MANY + "]",
    "one key": "a = 1\n" * MANY,
    "a long line": "#" + "x" * 999_000,
    "a long file": "#" * 2_000_000,
    "a huge number": "[budget]\nepsilon = 1e999999999",
    "a huge text": '[budget]\nepsilon = "1e999999999"',
    "very many digits": "[budget]\nepsilon = " + "9" * 100_000,
    "no number": "[budget]\nepsilon = nan",
    "a key that steers": '"a\\u001b[31m\\u202e" = 1',
    "a data set that steers": 'dataset = "a\\u001b[31m"',
}


@pytest.mark.some(19)
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("kind", FILES)
def test_hostile_files_are_refused_in_little_work(
    kind: str, read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is letters parsed: every place was looked for in the whole file once, 60,000 times for as many keys."""
    file = tmp_path / "odd.toml"
    file.write_text(FILES[kind], encoding="utf-8")
    letters, parse = [0], toml_document.parse

    def counted(text: str) -> dict[str, Any]:
        letters[0] += len(text)
        return parse(text)

    monkeypatch.setattr(toml_document, "parse", counted)
    with pytest.raises(InvalidParameter) as caught:
        read(file)
    assert letters[0] <= 2 * len(FILES[kind]) + 1_000
    assert len(str(caught.value)) < 8_100
    assert is_harmless(str(caught.value))
    assert "k100 " not in str(caught.value)


def test_keys_as_deep_as_people_write_them_are_read() -> None:
    text = "a" + ".a" * 60 + " = [1.5, 2.5, 3.5" + ", 4.5" * 100 + "]\nb = 'x.y.z" + ".w" * 500 + "'\n"
    toml_document._check_depth(text)
    assert toml_document.line_of(text, ["b"]) == 2


STATEMENTS = '''# a comment
[unit]
column = "row"

[[publish]]
name = "one"
sql = """
SELECT [x] # no comment
FROM d"""

[[publish]]
name = 'two'
of = [
  "a", # one ]
  "b",
]
[publish.more]
deep.er = {x = 1, "y.z" = [2, 3]}
'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (["unit"], 2),
        (["unit", "column"], 3),
        (["publish", 0, "sql"], 7),
        (["publish", 1], 11),
        (["publish", 1, "name"], 12),
        (["publish", 1, "of", 1], 13),
        (["publish", 1, "more"], 17),
        (["publish", 1, "more", "deep", "er", "y.z", 1], 18),
        (["publish", 1, "nothing"], 11),
        (["nothing"], 1),
    ],
)
def test_the_line_of_a_place_is_where_it_is_first_said(place: list[str | int], line: int) -> None:
    assert toml_document.line_of(STATEMENTS, place) == line


@pytest.mark.parametrize("number", NUMBERS)
def test_odd_numbers_are_refused_everywhere(number: Any) -> None:
    usual: dict[str, Any] = {"bounds": (0, 10), "relation": "add-remove", "epsilon": 1}
    for changed in ({"epsilon": number}, {"bounds": (0, number)}, {"step": number or "x"}, {"delta": number}):
        with pytest.raises(InvalidParameter):
            dp.mean([1.0], **usual | changed)
    for attempt in (
        lambda: dp.between(0, number),
        lambda: dp.Budget(epsilon=number),
        lambda: dp.quantile([1.0], number, **usual),
        lambda: dp.histogram([1.0], edges=[0, number], relation="add-remove", epsilon=1),
        lambda: dp.mean([1.0], **usual).interval(number),
        lambda: opened().sql("SELECT COUNT(*) AS n FROM d", epsilon=number).release(),
    ):
        with pytest.raises(DiscreetError):
            attempt()


@pytest.mark.parametrize("number", ["1e5000", "1e999999999", "nan", "½", "١", "0x1", "1" * 100_000, "", "1/0", "1_000"])
def test_odd_numbers_on_the_command_line_are_usage(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("id,sex\n" + "".join(f"{row},f\n" for row in range(30)), encoding="utf-8")
    for words in (
        ["explain-epsilon", number],
        ["explain-epsilon", "--rho", number],
        ["explain-epsilon", "--mu", number],
        ["explain-epsilon", "1", "--delta", number],
        ["account", "calibrate", "--epsilon", number, "--delta", "1e-5"],
        ["init", "d.csv", "--unit", "id", "--epsilon", number, "--out", "own.toml", "--yes"],
        ["init", "d.csv", "--unit", "id", "--epsilon", "1", "--lifetime-epsilon", number, "--out", "a.toml", "--yes"],
        ["profile", "d.csv", "--unit", "id", "--epsilon", number, "--max-epsilon", "1", "--lifetime-epsilon", "1"],
        ["profile", "d.csv", "--unit", "id", "--epsilon", "1", "--max-epsilon", "1", "--lifetime-epsilon", number],
    ):
        assert run(words) == Code.USAGE, words[:2]
        assert len(capfd.readouterr().err) < 500
    assert not list(tmp_path.glob("*.toml"))


def test_a_notebook_shows_the_line_of_the_caller_and_the_message() -> None:
    """Notebooks ask an error for what they show; a traceback of two hundred lines hid the one that says what to do."""
    with opened() as session, pytest.raises(Refused) as caught:
        session.sql("SELECT x FROM d", epsilon=1)
    told = caught.value._render_traceback_()
    assert told[0].endswith('session.sql("SELECT x FROM d", epsilon=1)')
    assert told[-1] == f"Refused: {caught.value}"
    assert len(told) == 3
    assert InvalidParameter("never raised")._render_traceback_() == ["InvalidParameter: never raised"]
