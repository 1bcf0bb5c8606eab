"""A new user's path: the lines on the first pages are at most ten, and answer a question about one's own CSV."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import discreet as dp

ROOT = Path(__file__).parents[3]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OWN = "age,clinic,remark\n" + "".join(
    f'{20 + n % 60},{("Harbour", "Market")[n % 2]},"a ""quoted"", one"\n' for n in range(500)
)


def first_lines(page: str) -> str:
    """The first example of a page that opens a session."""
    return next(block for block in _BLOCK.findall((ROOT / page).read_text()) if "dp.Session(" in block)


@pytest.mark.long
@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_four_statements_answer_a_question_about_ones_own_csv(page, tmp_path, capsys):
    lines = first_lines(page)
    assert len(ast.parse(lines).body) <= 4
    assert max(map(len, lines.splitlines())) <= 88  # No wider than the column of a page.
    (tmp_path / "visits.csv").write_text(OWN)
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=True)
    with capsys.disabled():
        print(f"\n{page}: from starting Python to the first private answer {time.monotonic() - started:.1f} s")
    assert "Harbour" in done.stdout
    assert "±" in done.stdout
    assert "Hillside" in done.stdout  # A public key that nobody has is listed too.


def test_the_first_lines_are_the_same_on_both_pages():
    assert first_lines("README.md") == first_lines("docs/quickstart.md")


@pytest.mark.long
def test_the_example_runs(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "shop.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("±") > 10
    assert "questions like the last one" in done.stdout


def test_a_policy_opens_the_session_it_describes(tmp_path):
    (tmp_path / "visits.csv").write_text(OWN)
    (tmp_path / "cities.csv").write_text("clinic,town\nHarbour,Here\nMarket,There\n")
    (tmp_path / "policy.toml").write_text("""
dataset = "clinics"
ledger = "clinics.ledger"
version = "1"
anchor = "elsewhere.anchor"
[unit]
column = "row"
[budget]
epsilon = 2
[[quotas]]
principal = "*"
epsilon = 0.5
[tables.visits]
[tables.visits.columns]
age = { low = 0, high = 120, whole = true }
clinic = { categories = ["Harbour", "Market"] }
[tables.cities]
source = "cities.csv"
public = true
""")
    policy = tmp_path / "policy.toml"
    with dp.Session.from_policy(policy, principal="ana", tables={"visits": tmp_path / "visits.csv"}) as session:
        query = "SELECT town, AVG(age) AS age FROM visits JOIN cities ON visits.clinic = cities.clinic GROUP BY town"
        assert len(session.sql(query, epsilon="0.5").release()) == 2
        assert (tmp_path / "elsewhere.anchor").exists()
        with pytest.raises(dp.BudgetExceeded, match="quota"):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").release()
    with pytest.raises(dp.InvalidParameter, match="hand it over"):
        dp.Session.from_policy(policy, principal="ana")
    with pytest.raises(dp.InvalidParameter, match="Did you mean 'visits'"):
        dp.Session.from_policy(policy, principal="ana", tables={"visit": tmp_path / "visits.csv"})
