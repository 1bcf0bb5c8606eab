"""A policy file says what the constructor says; whatever is wrong in it is named with its line and a way out."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest

from discreet.errors import InvalidParameter
from discreet.ledger.budget import Budget, Quota
from discreet.query.policy import Resources, Unit
from discreet.query.session.policy_file import policy_schema, read_policy
from discreet.schema.columns import between, boolean, categories, text
from discreet.schema.toml_document import line_of

GOOD = """\
dataset = "shop"
ledger = "shop.ledger"
version = "2026-11"

[unit]
column = "customer_id"
max_groups = 3
max_rows_per_group = 2

[budget]
epsilon = 3
delta = 1e-6

[[quotas]]
principal = "*"
window = "day"
epsilon = 0.5

[tables.orders]
source = "orders.parquet"

[tables.orders.columns]
price = { low = 0, high = 99.5, step = 0.01 }
age = { low = 0, high = 100, missing = 40 }
day = { low = 2026-01-01, high = 2026-12-31 }
city = { categories = ["Bern", "Lugano"] }
paid = { kind = "boolean" }
note = { kind = "text" }

[tables.cities]
source = "cities.csv"
public = true

[resources]
seconds = 60
memory = 1_000_000_000
"""


def written(folder: Path, content: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(content, encoding="utf-8")
    return path


def test_a_policy_file_says_what_the_constructor_would(tmp_path):
    policy = read_policy(written(tmp_path, GOOD))
    assert (policy.dataset, policy.version, policy.ledger) == ("shop", "2026-11", tmp_path / "shop.ledger")
    assert policy.unit == Unit("customer_id", max_groups=3, max_rows_per_group=2)
    assert policy.budget == Budget(epsilon=3, delta="1e-6")
    assert policy.quotas == (Quota(Budget(epsilon="0.5"), principal="*", window="day"),)
    assert policy.resources == Resources(seconds=60, memory=10**9)
    assert policy.tables["cities"].public
    assert policy.tables["orders"].source == tmp_path / "orders.parquet"
    assert policy.tables["orders"].columns == {
        "price": between(0, "99.5", step="0.01"),
        "age": between(0, 100, missing=40),
        "day": between(date(2026, 1, 1), date(2026, 12, 31)),
        "city": categories(["Bern", "Lugano"]),
        "paid": boolean(),
        "note": text(),
    }


def test_a_policy_file_says_what_categories_mean(tmp_path):
    wholes = GOOD.replace(
        'categories = ["Bern", "Lugano"]', 'categories = [1, 2], labels = { 1 = "Bern", 2 = "Lugano" }'
    )
    texts = GOOD.replace('categories = ["Bern", "Lugano"]', 'categories = ["01", "2"], labels = { 01 = "Bern" }')
    for content, declared in (
        (wholes, categories([1, 2], labels={1: "Bern", 2: "Lugano"})),
        (texts, categories(["01", "2"], labels={"01": "Bern"})),
    ):
        assert read_policy(written(tmp_path, content)).tables["orders"].columns["city"] == declared
        jsonschema.validate(tomllib.loads(content)["tables"]["orders"]["columns"]["city"], _column_schema())


def test_a_policy_file_says_in_whose_local_time_windows_begin(tmp_path):
    said = 'column = "customer_id"\nwindow = "day"\ntime = "at"\nzone = "Europe/Berlin"'
    content = GOOD.replace('column = "customer_id"', said, 1)
    unit = read_policy(written(tmp_path, content)).unit
    assert (unit.window, unit.time, unit.zone) == ("day", "at", "Europe/Berlin")
    jsonschema.validate(tomllib.loads(content)["unit"], policy_schema()["$defs"]["UnitModel"])
    with pytest.raises(InvalidParameter, match="no time zone"):
        read_policy(written(tmp_path, content.replace("Berlin", "Atlantis")))


@pytest.mark.parametrize(
    ("said", "declared"),
    [
        ('categories = ["Bern", "Lugano"], of_unit = true', categories(["Bern", "Lugano"], of_unit=True)),
        ("low = 0, high = 9, of_unit = true", between(0, 9, of_unit=True)),
        ('kind = "boolean", of_unit = true', boolean(of_unit=True)),
        ('kind = "text", of_unit = true', text(of_unit=True)),
        ('kind = "text", of_unit = false', text()),
    ],
)
def test_a_policy_file_says_which_columns_are_one_for_each_unit(tmp_path, said, declared):
    content = GOOD.replace('categories = ["Bern", "Lugano"]', said)
    assert read_policy(written(tmp_path, content)).tables["orders"].columns["city"] == declared
    jsonschema.validate(tomllib.loads(content)["tables"]["orders"]["columns"]["city"], _column_schema())


def _column_schema():
    schema = policy_schema()
    return schema["$defs"]["ColumnModel"] | {"$defs": schema["$defs"]}


def test_a_policy_file_may_name_the_unit(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(GOOD.replace("[unit]\n", '[unit]\nname = "family"\n'), encoding="utf-8")
    unit = read_policy(path).unit
    assert (unit.noun, unit.nouns) == ("family", "families")
    path.write_text(GOOD.replace("[unit]\n", '[unit]\nname = "a\\u001b[31m"\n'), encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r"unit.*control character") as refused:
        read_policy(path)
    assert str(refused.value).isprintable()


def test_a_policy_file_may_say_which_charges_are_expected(tmp_path):
    content = GOOD.replace("epsilon = 3\n", 'epsilon = 3\nexpect = "training"\n')
    assert content != GOOD
    assert read_policy(written(tmp_path, content)).budget == Budget(epsilon=3, delta="1e-6", expect="training")
    with pytest.raises(InvalidParameter, match="expect"):
        read_policy(written(tmp_path, content.replace('"training"', '"noise"')))


def test_decimals_of_a_policy_are_exact(tmp_path):
    content = GOOD.replace("epsilon = 3\n", "epsilon = 0.1\n")
    assert read_policy(written(tmp_path, content)).budget.epsilon == Fraction(1, 10)


# What is changed in the good file, the line that must be named, and words of the way out.
BAD = [
    ('["Bern", "Lugano"] }', '["Bern"], labels = { Basel = "BS" } }', 26, "none of the categories"),
    ('["Bern", "Lugano"] }', '["Bern"], labels = { Bern = "a\\u001b" } }', 26, "control characters"),
    ('{ low = 0, high = 100, missing = 40 }', '{ low = 0, high = 9, labels = { 0 = "a" } }', 24, "say one of"),
    ('dataset = "shop"\n', "", 1, "missing"),
    ('dataset = "shop"', 'dataset = ""', 1, "must not be empty"),
    ('dataset = "shop"', "dataset = 7", 1, "string"),
    ('ledger = "shop.ledger"\n', "", 1, "the path of the ledger"),
    ('version = "2026-11"', "version = 2026", 3, "string"),
    ('version = "2026-11"', 'versoin = "2026-11"', 3, "did you mean version"),
    ('version = "2026-11"', 'relation = "replace-one"', 5, "units = 12000 in [unit]"),
    ('version = "2026-11"', 'relation = "both"', 3, "'replace-one'"),
    ("max_groups = 3", "max_groups = 3\nunits = 300", 5, 'say relation="replace-one" too'),
    ("max_groups = 3", "max_groups = 3\nunits = 0", 8, "greater than or equal to 1"),
    ('column = "customer_id"\n', "", 5, "missing"),
    ('column = "customer_id"', 'column = ""', 6, "must not be empty"),
    ('column = "customer_id"', 'colum = "customer_id"', 6, "did you mean column"),
    ('column = "customer_id"', 'column = "row"', 5, "a row is in one group, once; leave them out"),
    ("max_groups = 3", "max_groups = 0", 7, "greater than or equal to 1"),
    ("max_groups = 3", "max_groups = 2.5", 7, "integer"),
    ("max_groups = 3", 'max_groups = "3"', 7, "integer"),
    ("max_rows_per_group = 2", "max_rows_per_group = -2", 8, "greater than or equal to 1"),
    ("max_rows_per_group = 2", "rows = 2", 8, "what can stand here"),
    ("epsilon = 3", "epsilon = 0", 11, "above 0"),
    ("epsilon = 3", "epsilon = -1", 11, "above 0"),
    ("epsilon = 3", "epsilon = nan", 11, "finite"),
    ("epsilon = 3", "epsilon = inf", 11, "finite"),
    ("epsilon = 3", 'epsilon = "three"', 11, "decimal such as"),
    ("epsilon = 3", "epsilon = true", 11, "must be a number"),
    ("epsilon = 3", "rho = 1", 10, "either rho or epsilon"),
    ("epsilon = 3\n", "", 10, "delta needs an epsilon"),
    ("delta = 1e-6", "delta = 1", 10, "below 1"),
    ("delta = 1e-6", "delta = 1e-6\ndelta = 1e-7", 13, "not toml"),
    ('window = "day"', 'window = "hour"', 16, "day"),
    ('principal = "*"', "principal = 3", 15, "string"),
    ("epsilon = 0.5", "eps = 0.5", 17, "did you mean"),
    ("\nepsilon = 0.5", "", 14, "with a limit"),
    ('principal = "*"\nwindow = "day"\n', "", 14, "for all charges use the budget"),
    ('source = "orders.parquet"', "source = 4", 20, "string"),
    (
        *('source = "orders.parquet"', 'path = "orders.parquet"', 20),
        "what can stand here: columns, csv, postgres, public, source",
    ),
    ("price = { low = 0, high = 99.5, step = 0.01 }", "price = { low = 5, high = 5 }", 23, "low must be below high"),
    ("price = { low = 0, high = 99.5, step = 0.01 }", "price = { low = 0 }", 23, "low and high"),
    ("price = { low = 0, high = 99.5, step = 0.01 }", "price = {}", 23, "low and high"),
    ("price = { low = 0, high = 99.5, step = 0.01 }", 'price = "0..5"', 23, "in it: categories, format, high, kind"),
    ("step = 0.01", "step = 0", 23, "above 0"),
    ("step = 0.01", "stop = 0.01", 23, "did you mean step"),
    ("missing = 40", "missing = 400", 24, "between low and high"),
    ("missing = 40", 'kind = "text"', 24, "say one of"),
    ("high = 2026-12-31", "high = 400", 25, "two dates or two timestamps"),
    ("high = 2026-12-31", "high = 2025-12-31", 25, "before high"),
    ('["Bern", "Lugano"]', "[]", 26, "at least one value"),
    ('["Bern", "Lugano"]', '["Bern", "Bern"]', 26, "distinct"),
    ('["Bern", "Lugano"]', '["Bern", 3]', 26, "all texts or all whole numbers"),
    ('["Bern", "Lugano"]', '"Bern"', 26, "list"),
    ('kind = "boolean"', 'kind = "money"', 27, "boolean"),
    ("public = true", 'public = "yes"', 32, "boolean"),
    ("public = true", "public = tru", 32, "not toml"),
    ("seconds = 60", "seconds = -1", 35, "above 0"),
    ("memory = 1_000_000_000", "memory = 5", 34, "at least"),
    ("memory = 1_000_000_000", "threads = 0", 36, "greater than or equal to 1"),
    ("[unit]", "[unit", 5, "not toml"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "words"), BAD, ids=range(len(BAD)))
def test_a_bad_policy_names_the_line_and_a_way_out(old, new, line, words, tmp_path):
    content = GOOD.replace(old, new, 1)
    assert content != GOOD
    with pytest.raises(InvalidParameter) as refused:
        read_policy(written(tmp_path, content))
    assert f"line {line}" in str(refused.value)
    assert words in str(refused.value).lower()


def test_forty_bad_policies_are_tried():
    assert len(BAD) >= 40


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x = 1\n" + b"#" * 1_000_001], ids=["bytes", "huge"])
def test_what_is_no_policy_at_all_is_refused(content, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidParameter):
        read_policy(path)
    with pytest.raises(InvalidParameter, match="check the path"):
        read_policy(tmp_path / "nowhere.toml")


def test_several_errors_are_told_at_once(tmp_path):
    content = GOOD.replace("max_groups = 3", "max_groups = 0").replace("public = true", "public = 3")
    with pytest.raises(InvalidParameter) as refused:
        read_policy(written(tmp_path, content))
    assert str(refused.value).count("line ") == 2


def test_lines_are_found_in_statements_of_many_lines():
    content = 'a = 1\n\nb = [\n  "x", # with, commas,\n  "y",\n]\n# remark\n[c]\nd.e = """\n\n"""\nf = 2\n'
    assert [line_of(content, place) for place in (["a"], ["b"], ["c"], ["c", "d", "e"], ["c", "f"])] == [1, 3, 8, 9, 12]
    assert line_of(content, ["c", "nothing"]) == 8
    assert line_of(content, ["nothing"]) == 1


def test_the_published_schema_is_the_one_of_the_models():
    """If this fails, `python scripts/make_policy_schema.py` renews it."""
    published = Path(__file__).parents[3] / "docs" / "schema" / "policy.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == policy_schema()


def test_the_published_schema_accepts_a_good_policy_and_refuses_bad_ones():
    validator = jsonschema.Draft202012Validator(policy_schema())

    def problems(content: str) -> list[object]:
        return list(validator.iter_errors(json.loads(json.dumps(tomllib.loads(content), default=str))))

    assert problems(GOOD) == []
    assert problems(GOOD.replace("max_groups = 3", "max_groups = 0"))
    assert problems(GOOD.replace("public = true", "publik = true"))
    assert problems(GOOD.replace('dataset = "shop"\n', ""))
