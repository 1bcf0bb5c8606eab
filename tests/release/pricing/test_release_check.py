"""Everything that can be found wrong without data is found, all of it at once, each with its line."""

from __future__ import annotations

import pytest
from plan_texts import plan_in

from discreet.errors import InvalidParameter, Refused
from discreet.release import check


def test_a_good_plan_is_told_to_be_right(tmp_path):
    checked = check(plan_in(tmp_path))
    assert str(checked).startswith("plan.toml is right: 6 tables, ε = 1 for a release.")
    assert checked.priced.epsilon <= 1
    assert any("count the same rows: one row of a patient in all groups together" in note for note in checked.notes)


def test_several_mistakes_are_told_at_once_and_those_of_a_family_once(tmp_path):
    with pytest.raises(Refused) as refused:
        check(
            plan_in(
                tmp_path,
                ("FROM stays GROUP BY sex", "FROM stays GROUP BY six"),
                ('where = "cost > 0"', 'where = "cst > 0"'),
                ('table = "stays"', 'table = "stay"'),
            )
        )
    told = str(refused.value)
    assert [told.count(f"line {line}, ") for line in (46, 53, 64)] == [1, 1, 1]


def test_a_first_release_that_the_lifetime_budget_does_not_hold_is_refused(tmp_path):
    with pytest.raises(Refused, match="line 10, budget: the lifetime budget does not hold one release"):
        check(plan_in(tmp_path, ("epsilon = 40", "epsilon = 0.5")))


def test_a_quota_that_holds_no_release_is_refused(tmp_path):
    quota = '[[quotas]]\nprincipal = "*"\nwindow = "day"\nepsilon = 0.5\ndelta = 1e-6\n\n[release]'
    with pytest.raises(Refused, match="line 25, quotas: a quota does not hold one release"):
        check(plan_in(tmp_path, ("[release]", quota)))
    assert check(plan_in(tmp_path, ("[release]", quota.replace("0.5", "5"))))


def test_public_tables_are_read_and_private_ones_are_not(tmp_path):
    (tmp_path / "districts.csv").write_text("district,river\nHarbour,1\nHill,0\nMill,1\n", encoding="utf-8")
    changes = (
        ("[release]", '[tables.districts]\nsource = "districts.csv"\npublic = true\n\n[release]'),
        ("SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex",
         "SELECT river, COUNT(*) AS stays FROM stays JOIN districts USING (district) GROUP BY river"),
    )  # fmt: skip
    (table, *_) = check(plan_in(tmp_path, *changes)).priced.tables
    assert table.groups == 2
    (tmp_path / "districts.csv").unlink()
    with pytest.raises(InvalidParameter, match="districts"):
        check(plan_in(tmp_path, *changes))


def test_contradicting_invariants_are_refused_with_their_line(tmp_path):
    more = "".join(
        f'\n[[invariants]]\ntable = "stays_by_region"\ncolumn = "stays"\nvalue = {value}\n'
        f'where = {{ region = "{region}" }}\nreason = "law"\n'
        for region, value in (("Coast", 5000), ("Inland", 6000))
    )
    reason = 'reason = "published by law since 1998"\n'
    with pytest.raises(InvalidParameter, match="line 64, invariants"):
        check(plan_in(tmp_path, (reason, reason + more)))
    assert check(plan_in(tmp_path, (reason, reason + more.replace("6000", "7000"))))
