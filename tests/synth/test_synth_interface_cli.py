"""`discreet synth`: priced, agreed, charged, then read; a mistake is named with its line, and never with a value."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from synth_toys import CANARY

from discreet.cli.command_runner import run
from discreet.cli.exits import Code
from discreet.synth.domain.category import Category
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.domain_file import domain_text, read_domain
from discreet.synth.domain.numeric import Numeric

DOMAIN = """\
[columns.age]
low = 0
high = 99
whole = true
bins = 10
null = true

[columns.sex]
values = ["f", "m"]

[[impossible]]
age = [0, 15]
sex = "m"
"""
Run = Callable[..., tuple[int, str, str]]
FIT = (
    "synth",
    "fit",
    "visits.csv",
    "--method",
    "independent",
    "--epsilon",
    "1",
    "--delta",
    "1e-6",
    "--max-epsilon",
    "1",
    "--lifetime-epsilon",
    "1",
)


@pytest.fixture
def discreet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    rows = [f"{place % 120},{'f' if place % 3 else CANARY},p{place // 2},{CANARY}" for place in range(120)]
    Path("visits.csv").write_text("\n".join(["age,sex,who,name", *rows]), encoding="utf-8")
    Path("domain.toml").write_text(DOMAIN, encoding="utf-8")

    def called(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = int(run(arguments))
        out, err = capfd.readouterr()
        assert CANARY not in out + err
        return code, out, err

    return called


def test_from_a_file_to_made_up_rows(discreet: Run) -> None:
    asked = (*FIT, "--domain", "domain.toml", "--unit", "who", "--rows-per-unit", "2", "--out", "m.safetensors")
    code, out, err = discreet(*asked, "--json")
    assert code == Code.OK, err
    told = json.loads(out)
    assert (told["method"], told["unit"], told["rows_per_unit"]) == ("independent", "who", 2)
    assert told["epsilon"] <= 1
    assert discreet("synth", "sample", "m.safetensors", "--rows", "50", "--out", "s.csv")[0] == Code.OK
    with Path("s.csv").open(newline="", encoding="utf-8") as file:
        drawn = list(csv.DictReader(file))
    assert len(drawn) == 50
    assert {row["sex"] for row in drawn} <= {"f", "m"}
    assert not [row for row in drawn if row["sex"] == "m" and row["age"] and int(row["age"]) <= 15]
    assert CANARY.encode() not in Path("m.safetensors").read_bytes() + Path("s.csv").read_bytes()
    alone = ("synth", "sample", "m.safetensors", "--rows", "20", "--where", "sex=m", "--where", "age=20..29")
    assert discreet(*alone, "--out", "men.csv")[0] == Code.OK
    with Path("men.csv").open(newline="", encoding="utf-8") as file:
        men = list(csv.DictReader(file))
    assert len(men) == 20
    assert all(row["sex"] == "m" and 20 <= int(row["age"]) <= 29 for row in men)
    for wrong in ("sex", "sex=x", "who=1", "age=3..x"):
        assert discreet("synth", "sample", "m.safetensors", "--where", wrong, "--out", "no.csv")[0] == Code.USAGE
    code, _, err = discreet(*alone, "--where", "sex=f", "--out", "no.csv")
    assert code == Code.USAGE
    assert "names 'sex' twice" in err
    # All of the budget is spent, and a second model is not paid for from a first one's file.
    assert discreet(*asked)[0] == Code.USAGE
    assert discreet(*asked[:-1], "n.safetensors")[0] == Code.EXHAUSTED


WRONG = {
    "--unit": (),
    "declare": ("--unit", "row"),
    ".safetensors": ("--unit", "row", "--domain", "domain.toml", "--out", "model.pkl"),
    "folder": ("--unit", "row", "--domain", "domain.toml", "--out", "no/model.safetensors"),
    "gan": ("--unit", "row", "--domain", "domain.toml", "--method", "gan"),
    "--max-epsilon": ("--unit", "row", "--domain", "domain.toml", "--max-epsilon", "zero"),
    "rows_per_unit": ("--unit", "who", "--domain", "domain.toml", "--ledger", "other.ledger"),
}


def test_what_is_wrong_is_said_before_anything_is_spent(discreet: Run) -> None:
    for words, more in WRONG.items():
        code, _, err = discreet(*FIT, *more)
        assert code == Code.USAGE, err
        assert words in err
        assert not Path("model.safetensors").exists()
    code, _, err = discreet(*FIT, "--domain", "domain.toml", "--unit", "row")
    assert code == Code.OK, err


def test_a_price_that_was_not_agreed_to_is_refused(discreet: Run) -> None:
    asked = [word if word != "1" or FIT[place - 1] == "--epsilon" else "0.5" for place, word in enumerate(FIT)]
    assert discreet(*asked, "--domain", "domain.toml", "--unit", "row")[0] == Code.REFUSED
    assert not Path("model.safetensors").exists()


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (("high = 99", "high = -1"), "line 1, columns.age"),
        (('values = ["f", "m"]', 'values = ["f", "f"]'), "line 8, columns.sex"),
        (("null = true", "nul = true"), "line 6, columns.age.nul"),
        (("bins = 10", "bins = 0"), "line 5, columns.age.bins"),
        (('sex = "m"', 'sex = "x"'), "line 11, impossible.0"),
        (("[columns.sex]", "[columns.sex]\nlow = 3"), "line 8, columns.sex"),
        (("[columns.age]", "[columns.age"), "not TOML"),
    ],
)
def test_a_mistake_in_a_domain_file_is_named_with_its_line(discreet: Run, wrong: tuple[str, str], line: str) -> None:
    Path("domain.toml").write_text(DOMAIN.replace(*wrong), encoding="utf-8")
    code, _, err = discreet(*FIT, "--domain", "domain.toml", "--unit", "row")
    assert code == Code.USAGE
    assert line in err


def test_a_draft_names_columns_and_no_values(discreet: Run) -> None:
    code, out, _ = discreet("synth", "domain", "visits.csv", "--out", "draft.toml", "--json")
    assert code == Code.OK
    assert json.loads(out)["unfinished"] == ["age", "sex", "who", "name"]
    assert CANARY not in Path("draft.toml").read_text(encoding="utf-8")
    assert discreet("synth", "domain", "visits.csv", "--out", "draft.toml")[0] == Code.USAGE
    code, _, err = discreet(*FIT, "--domain", "draft.toml", "--unit", "row")
    assert code == Code.USAGE
    assert "columns.age: say values" in err


def test_a_domain_comes_back_from_its_file(tmp_path: Path) -> None:
    domain = Domain(
        {
            "a b": Numeric("-1/3", "2.5", bins=[0, 1], null=True),
            'q"é': Category(["x\ty", "ü"], other=True),
            "n": Category([1, 2], null=True),
            "t": Category([True, False]),
            "open": Category.unlisted(most=7),
            "bins": Numeric(0, 10, whole=True, bins="quantiles"),
            "day": Numeric.dates(date(2025, 1, 1), date(2025, 12, 31), bins=[date(2025, 7, 1)]),
        }
    )
    (tmp_path / "d.toml").write_text(domain_text(domain), encoding="utf-8")
    assert read_domain(tmp_path / "d.toml") == domain


def test_a_domain_is_proposed_from_a_public_file_alone(discreet: Run) -> None:
    Path("public.csv").write_text("age,sex\n" + "3,f\n88,m\n" * 20, encoding="utf-8")
    assert discreet("synth", "domain", "public.csv", "--public", "--out", "proposed.toml")[0] == Code.OK
    assert read_domain("proposed.toml").columns == {
        "age": Numeric(0, 90, whole=True),
        "sex": Category(["f", "m"], other=True),
    }
    assert discreet("synth", "domain", "policy.toml", "--public", "--out", "p.toml")[0] == Code.USAGE
