"""The dummy of a release is its whole bundle, says so everywhere, charges nothing and needs no data."""

from __future__ import annotations

import json

from plan_texts import plan_in

from discreet.release import dummy


def test_a_dummy_is_a_whole_bundle_that_says_what_it_is(tmp_path):
    last = 'reason = "published by law since 1998"\n'
    series = '\n[[running]]\nname = "so_far"\nfrom = "stays"\nday = "admitted"\nfirst = 2026-01-01\n'
    plan = plan_in(tmp_path, (last, f"{last}{series}days = 365\nrho = 0.1\n"))
    bundle = dummy(plan, tmp_path / "try", plan.schedule.period(2))
    assert "2026-03" in bundle.name
    assert "DUMMY" in bundle.name
    for page in ("README.txt", "guarantee.md", "dictionary.md", "report.html"):
        assert "dummy" in (bundle / page).read_text(encoding="utf-8").lower()
    assert all("DUMMY" in file.name for file in (bundle / "tables").iterdir())
    assert {file.name.partition(".")[0] for file in (bundle / "tables").iterdir()} == {
        "so_far",
        *(table.name for table in plan.tables),
    }
    days = (bundle / "tables" / "so_far.DUMMY.csv").read_text(encoding="utf-8").splitlines()
    assert len(days) == 1 + 31 + 28 + 31
    assert json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))


def test_a_dummy_opens_no_private_file_and_no_ledger_and_all_its_rows_are_in_the_period(tmp_path):
    plan = plan_in(tmp_path, ("epsilon = 1\n", "epsilon = 20\n"))
    bundle = dummy(plan, tmp_path / "try")
    assert not plan.policy.tables["stays"].source.exists()
    assert not plan.policy.ledger.exists()
    text = (bundle / "tables" / "stays.DUMMY.csv").read_text(encoding="utf-8")
    counted = float(text.splitlines()[1].split(",")[0])
    assert counted > 150  # Of 1000 rows of some 300 patients over ten years, eight would be in a month.
