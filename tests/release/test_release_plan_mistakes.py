"""Whatever is wrong in a plan file is named with its line and what to write instead; nothing else is ever raised."""

from __future__ import annotations

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_texts import GOOD, written

from discreet.errors import InvalidParameter, Refused
from discreet.release import check, read_release_plan

SQL = "SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"
FAMILY = 'groupings = [[], ["region"], ["district"], ["district", "sex"]]'
MEASURES = 'measures = { stays = "COUNT(*)", cost = "SUM(cost)" }'
MEMBERS = '{ Coast = ["Harbour"], Inland = ["Hill", "Mill"] }'
LAST = 'reason = "published by law since 1998"\n'
SCHEDULE = 'every = "month"\nfirst = 2026-01-01\ncolumn = "admitted"'
SERIES = '\n[[running]]\nname = "so_far"\nfrom = "stays"\nday = "admitted"\nfirst = 2026-01-01\ndays = 365\nrho = 0.1\n'

# What is changed in the good file, the line that must be named, and words of the way out.
BAD = [
    # The policy.
    ('dataset = "hospital"\n', "", 1, "the name of the data set"),
    ('ledger = "hospital.ledger"', "ledger = 5", 5, "string"),
    ('column = "patient"', "max_groups = 2", 7, "the column whose values tell people apart"),
    ('column = "patient"', 'column = "patient"\nmax_groups = 0', 9, "greater than or equal to 1"),
    ("epsilon = 40", "rho = 4", 10, "either rho or epsilon"),
    ("epsilon = 40", "epsilon = -4", 11, "above 0"),
    ("delta = 1e-5", "delta = 2", 10, "below 1"),
    ('source = "stays.parquet"', 'file = "stays.parquet"', 15, "here: columns, csv, postgres, public, source"),
    ('source = "stays.parquet"', 'source = "a\\u0000b"', 15, "control character"),
    ('categories = ["f", "m"]', 'categories = ["f", "f"]', 19, "distinct"),
    ("low = 0, high = 20000", "low = 9, high = 1", 20, "low must be below high"),
    ("low = 2020-01-01", "low = 2020", 21, "two dates or two timestamps"),
    ('kind = "boolean"', 'kind = "bool"', 22, "boolean"),
    ('ward = { kind = "text" }', 'patient = { kind = "text" }', 14, "leave it out of columns"),
    ('ward = { kind = "text" }', 'Sex = { kind = "text" }', 14, "rename one of them"),
    ("[tables.stays]\n", "[tables.stays]\npublic = true\n", 51, "there is no private table"),
    ("[release]", '[tables.more]\nsource = "stays.parquet"\npublic = true\n\n[release]', 14, "hand it over once"),
    # Names.
    ('name = "stays"\ntitle', "title", 1, "the name of the series of releases"),
    ('name = "stays"\ntitle', 'name = "../stays"\ntitle', 1, "letters, digits, - or _"),
    ('name = "stays"\ntitle', 'name = ""\ntitle', 1, "letters, digits, - or _"),
    ('name = "stays"\ntitle', 'name = "con"\ntitle', 1, "the name of a file"),
    ('title = "Hospital stays"', 'titel = "Hospital stays"', 2, "did you mean title"),
    ('title = "Hospital stays"', "title = 5", 2, "string"),
    ('name = "by_sex"', 'name = "by sex"', 44, "such as by_sex"),
    ('name = "by_sex"\n', "", 43, "the name of the table, and of its files"),
    ('name = "by_sex"', 'name = "wards"', 59, "rename one of them"),
    ('name = "by_sex"', 'name = "STAYS_by_region"', 51, "rename one of them"),
    # What one release may spend.
    ("[release]", "[releases]", 25, "did you mean release"),
    ("epsilon = 1\n", "", 25, "say either epsilon"),
    ("epsilon = 1\n", "epsilon = 1\nrho = 0.1\n", 25, "say either epsilon"),
    ("epsilon = 1\ndelta = 1e-7", "rho = 0.1", 25, "rho needs a delta"),
    ("epsilon = 1\n", "epsilon = 0\n", 26, "above 0"),
    ("epsilon = 1\n", "epsilon = nan\n", 26, "finite"),
    ("epsilon = 1\n", 'epsilon = "one"\n', 26, "decimal such as"),
    ("epsilon = 1\n", "epsilon = 1000\n", 25, "at most 100"),
    ("epsilon = 1\n", "epsilon = 1e-300\n", 25, "at least 1e-6"),
    ("delta = 1e-7", "delta = 1", 27, "far below one over the number of people"),
    ("delta = 1e-7", "delta = 0", 27, "far below one over the number of people"),
    ("delta = 1e-7", "delta = 1e-8", 25, "raise delta here, lower it there, or list the groups"),
    ("delta = 1e-7", "delta = 1e-7\nsplit = \"fair\"", 28, "'accuracy' or 'even'"),
    ("delta = 1e-7", "delta = 1e-7\nepsilon = 2", 28, "not toml"),
    ("epsilon = 1\n", "epsilon = 50\n", 10, "raise [budget], or lower what [release] may spend"),
    ("epsilon = 40\ndelta = 1e-5", "epsilon = 40", 10, "one kind"),
    # The schedule.
    ('every = "month"', 'every = "fortnight"', 30, "'once', 'day', 'week'"),
    ('every = "month"\n', "", 29, "how often"),
    ("first = 2026-01-01\n", "", 29, "say the first day of the first period"),
    ("first = 2026-01-01", "first = 2026-01-31", 29, "from 1 to 28"),
    ("first = 2026-01-01", 'first = "January"', 31, "date"),
    ("first = 2026-01-01", "first = 2026-13-01", 31, "not toml"),
    (SCHEDULE, 'every = "once"\ncolumn = "admitted"', 29, "leave the column out"),
    ('column = "admitted"', 'column = "admited"', 32, "did you mean 'admitted'"),
    ('column = "admitted"', 'column = "cost"', 32, "there are: admitted"),
    ("admitted = { low = 2020-01-01, high = 2029-12-31 }\n", "", 31, "declare admitted = { low"),
    # Output.
    ('folder = "published"', 'folder = ""', 35, "must not be empty"),
    ('formats = ["csv", "parquet"]', 'formats = ["xlsx"]', 36, "'csv' or 'parquet'"),
    ('formats = ["csv", "parquet"]', "formats = []", 36, "at least 1"),
    ('formats = ["csv", "parquet"]', 'format = "csv"', 36, "did you mean formats"),
    ('formats = ["csv", "parquet"]', 'tidy = "yes"', 36, "boolean"),
    # Levels.
    ('of = "district"', 'of = "distric"', 50, "did you mean 'district'"),
    ('of = "district"', 'of = "region"', 40, "circle"),
    ('of = "district"\n', "", 38, "the column, or the level, that it groups"),
    (MEMBERS, '{ Coast = ["Harbour"], Inland = ["Hill"] }', 50, "leaves out 'mill'"),
    (MEMBERS, '{ Coast = ["Harbour", "Hill"], Inland = ["Hill", "Mill"] }', 50, "more than once"),
    (MEMBERS, '{ Coast = ["Harbor"], Inland = ["Hill", "Mill"] }', 50, "as they are declared"),
    (MEMBERS, "{}", 41, "at least 1"),
    (MEMBERS, '["Harbour"]', 41, "table"),
    ('[[levels]]\nname = "region"', '[levels]\nname = "region"', 38, "list"),
    ('name = "region"', 'name = "area"', 50, "urgent, ward, area"),
    ("[[publish]]", '[[levels]]\nname = "region"\nof = "sex"\nmembers = { a = ["f"] }\n[[publish]]', 39, "rename one"),
    ("[[publish]]", '[[levels]]\nname = "x"\nof = "cost"\nmembers = { a = [1] }\n[[publish]]', 43, "leaves out"),
    # A table by its SQL.
    (SQL, "SELECT sex, COUNT(*) AS stays FROM stay GROUP BY sex", 46, "did you mean stays"),
    (SQL, "SELECT sex, COUNT(*) AS stays FROM stays GROUP BY six", 46, "did you mean sex"),
    (SQL, "SELECT sex, COUNT(* AS stays FROM stays GROUP BY sex", 46, "check the words around the caret"),
    (SQL, "SELECT patient FROM stays", 46, "way out"),
    (SQL, "SELECT sex, SUM(ward) AS stays FROM stays GROUP BY sex", 46, "way out"),
    (SQL, "DROP TABLE stays", 46, "way out"),
    (SQL, "SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex; SELECT 1", 46, "way out"),
    (SQL, "SELECT sex, COUNT(*) AS n, SUM(cost) AS n_low FROM stays GROUP BY sex", 47, "rename it"),
    (SQL, "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) AS stays FROM stays", 46, "stands in the plan"),
    (f'sql = "{SQL}"\n', "", 43, "say how the table is made"),
    (f'sql = "{SQL}"', f'sql = "{SQL}"\nby = ["sex"]', 43, "leave out sql, or else by"),
    (f'sql = "{SQL}"', f'query = "{SQL}"', 46, "what can stand here"),
    (f'sql = "{SQL}"', f'sql = "{SQL}"\nkeys = {{ ward = ["A"] }}', 46, "no key of this question"),
    ('expected = { "*" = 5000 }', 'expected = { "*" = 0 }', 47, "above 0"),
    ('expected = { "*" = 5000 }', 'expected = { "*" = 5000, stay = 3 }', 47, "did you mean 'stays'"),
    ('expected = { "*" = 5000 }', "expected = 5000", 47, "table"),
    ('expected = { "*" = 5000 }\n', "", 47, "expected"),
    ("relative_error = 0.02", "relative_error = 0", 48, "above 0"),
    ("relative_error = 0.02", "relative_error = 0.02\nerror = 5", 43, "say one of error and relative_error"),
    ("relative_error = 0.02", "error = 1", 25, "raise epsilon in [release]"),
    ("relative_error = 0.02", "error = 0.01", 25, "or let errors be"),
    ("relative_error = 0.02", "share = 1.5", 48, "at most 1"),
    ("relative_error = 0.02", "share = 0.95", 48, "make them smaller"),
    ("relative_error = 0.02", "epsilon = 200", 48, "at most 100"),
    ("relative_error = 0.02", "delta = 1e-9", 47, "leave it out"),
    # A family.
    ('from = "stays"', 'from = "stay"', 50, "did you mean 'stays'"),
    ('where = "cost > 0"', 'where = "cst > 0"', 53, "did you mean cost"),
    ('where = "cost > 0"', 'where = "cost > 0) OR (cost < 5"', 50, "parentheses in pairs"),
    ('where = "cost > 0"', 'where = "cost > 0 -- all"', 50, "no comment"),
    ('where = "cost > 0"', "where = \"ward = 'A\"", 50, "quotation mark"),
    ("groupings", "grouping", 54, "did you mean groupings"),
    (FAMILY, 'by = ["district"]\n' + FAMILY, 50, "say what to group by"),
    (FAMILY + "\n", "", 50, "say what to group by"),
    (FAMILY, "groupings = []", 54, "at least 1"),
    (FAMILY, 'groupings = ["district"]', 54, "list"),
    (FAMILY, 'groupings = [["district"], ["district"]]', 50, "leave one out"),
    (FAMILY, 'groupings = [["sex", "sex"]]', 50, "leave one out"),
    (FAMILY, 'groupings = [["distrikt"]]', 50, "did you mean 'district'"),
    (FAMILY, 'groupings = [["ward"]]', 50, "keys = { ward = […] }"),
    (f"{FAMILY}\n{MEASURES}", 'by = ["admitted", "cost", "sex"]\nmeasures = { n = "COUNT(*)" }', 50, "leave out a"),
    (MEASURES + "\n", "", 50, 'measures = { stays = "count(*)" }'),
    (MEASURES, 'measures = { stays = "COUNT(" }', 50, "parentheses in pairs"),
    (MEASURES, 'measures = { stays = "ward" }', 55, "way out"),
    (MEASURES, 'measures = { stays = "SUM(ward)" }', 55, "way out"),
    (MEASURES, 'measures = { district = "COUNT(*)" }', 50, "give the measure another name"),
    ('expected = { "*" = 800 }', "delta = 1e-9", 50, "leave it out"),
    ('expected = { "*" = 800 }', 'keys = { ward = ["A"] }', 50, "which no grouping uses"),
    ('expected = { "*" = 800 }\n', "", 50, 'split = "even"'),
    # Invariants.
    ('table = "stays"', 'table = "stay"', 64, "did you mean 'stays'"),
    ('column = "stays"', 'column = "stay"', 64, "did you mean 'stays'"),
    ("value = 12000", "value = 12000.5", 64, "whole number"),
    ("value = 12000", "value = -1", 64, "not negative"),
    ("value = 12000", "value = 1e400", 64, "write the publicly known number"),
    ("value = 12000", 'value = "many"', 67, "decimal such as"),
    ("value = 12000", 'value = 12000\nwhere = { sex = "f" }', 64, "where = {}"),
    ('table = "stays"', 'table = "stays_by_region"', 64, "where = { region = … }"),
    ('table = "stays"', 'table = "stays_by_region"\nwhere = { region = "Sea" }', 64, "one of its listed values"),
    ('table = "stays"', 'table = "wards"', 64, "an invariant needs listed ones"),
    (LAST, "", 64, "why everybody knows it"),
    (LAST, LAST + '\n[[invariants]]\ntable = "stays"\ncolumn = "stays"\nvalue = 9\n' + LAST, 70, "leave one out"),
    # Totals so far.
    (LAST, LAST + SERIES.replace('day = "admitted"\n', ""), 70, "the column with the day"),
    (LAST, LAST + SERIES.replace("days = 365", "days = 0"), 75, "greater than or equal to 1"),
    (LAST, LAST + SERIES.replace('"stays"', '"stay"'), 70, "did you mean 'stays'"),
    (LAST, LAST + SERIES.replace('"so_far"', '"stays"'), 71, "rename one of them"),
    (LAST, LAST + SERIES.replace('day = "admitted"', 'day = "cost"'), 73, "there are: admitted"),
    (LAST, LAST + SERIES + 'where = "cst > 0"\n', 77, "did you mean cost"),
    (LAST, LAST + SERIES.replace("rho = 0.1\n", ""), 70, "say exactly one of epsilon, rho, share and error"),
    (LAST, LAST + SERIES + "max_days = 400\n", 70, "lower it"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "words"), BAD, ids=range(len(BAD)))
def test_a_bad_plan_names_the_line_and_the_fix(old, new, line, words, tmp_path):
    content = GOOD.replace(old, new, 1)
    assert content != GOOD
    with pytest.raises((InvalidParameter, Refused)) as refused:
        check(read_release_plan(written(tmp_path, content)))
    told = str(refused.value).lower()
    assert f"line {line}" in told
    assert words in told


def test_a_hundred_bad_plans_are_tried():
    assert len(BAD) >= 100


def test_nothing_to_publish_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="nothing is published"):
        read_release_plan(written(tmp_path, GOOD.partition("[[publish]]")[0]))


def test_what_is_no_plan_at_all_is_refused(tmp_path):
    for content in (b"\xff\xfe", b"x = 1\n" + b"#" * 1_000_001, b"[" * 5000, b"x = 1e99999999999"):
        path = tmp_path / "plan.toml"
        path.write_bytes(content)
        with pytest.raises(InvalidParameter):
            read_release_plan(path)
    with pytest.raises(InvalidParameter, match="check the path"):
        read_release_plan(tmp_path / "nowhere.toml")


VALUES = st.sampled_from(
    ["0", "-1", "1e-7", "1e400", "nan", "inf", "true", "[]", "{}", '""', '"x"', "2026-01-01", "[[]]", '["sex"]',
     '[["sex"], []]', "{ a = 1 }", '{ a = ["Hill"] }', '"SELECT 1"', '"COUNT(*)"', "9" * 400, '"\'"', '"stays"',
     '"a\\u0000b"', "00:00:00", "2026-01-01T00:00:00Z"]
)  # fmt: skip


@given(number=st.integers(0, len(GOOD.splitlines()) - 1), value=VALUES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_value_is_read_or_refused_for_all_lines(number, value, tmp_path):
    lines = GOOD.splitlines()
    if "=" in lines[number]:
        lines[number] = f"{lines[number].partition('=')[0]}= {value}"
    read_or_refused(tmp_path, "\n".join(lines))


@given(start=st.integers(0, len(GOOD)), length=st.integers(0, 12), new=st.text(string.printable, max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_read_or_refused_for_all_damages(start, length, new, tmp_path):
    read_or_refused(tmp_path, GOOD[:start] + new + GOOD[start + length :])


@pytest.mark.slow
@given(number=st.integers(0, len(GOOD.splitlines()) - 1), value=VALUES)
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_value_is_checked_or_refused_for_all_lines(number, value, tmp_path):
    lines = GOOD.splitlines()
    if "=" in lines[number]:
        lines[number] = f"{lines[number].partition('=')[0]}= {value}"
    read_or_refused(tmp_path, "\n".join(lines), check)


def read_or_refused(folder, content, look=lambda plan: None):
    """Whatever is wrong is told by an error of ours that names the file."""
    told = ""
    try:
        look(read_release_plan(written(folder, content)))
    except (InvalidParameter, Refused) as error:
        told = str(error)
    assert not told or "plan.toml" in told
