"""The lab: what ε means is what is proven, attacks stay below the ceiling, and nobody loads the machine with them."""

from __future__ import annotations

import json
from html import unescape

import numpy as np
import pytest

import discreet as dp
from discreet.server.pages import lab_results
from discreet.server.pages.lab_results import ATTACKED_AT, MEANINGS, lab_attacks, meaning_table

pytestmark = pytest.mark.long
SURE = 1e-9


def test_every_place_of_the_slider_shows_what_is_proven(world):
    """The numbers that the script shows are those of `explain_epsilon`, in the order of the slider."""
    page = world.browser("reader").get("/lab")
    steps = json.loads(unescape(page.text.split('data-steps="')[1].split('"')[0]))
    assert [step["epsilon"] for step in steps] == list(MEANINGS)
    for step in steps[::5]:
        told = dp.privacy.explain_epsilon(step["epsilon"])
        assert step["bars"][3][0] == told.success
        assert [bar[0] for bar in step["bars"][:3]] == [belief.after for belief in told.beliefs[:3]]
    shares = np.array([[bar.after for bar in meaning_table()[epsilon]] for epsilon in MEANINGS])
    assert (np.diff(shares, axis=0) >= 0).all()  # More ε never tells less.


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("place=0", "0.01"),
        ("epsilon=10", "10"),
        ("place=99", "1"),
        ("place=-1", "1"),
        ("epsilon=%3Cscript%3E", "1"),
        ("", "1"),
    ],
)
def test_without_a_script_the_form_chooses_the_same(world, said, shown):
    page = world.browser("auditor").get(f"/lab?{said}")
    assert page.status_code == 200
    assert f'<output id="epsilon" for="place">{shown}</output>' in page.text


@pytest.mark.parametrize("epsilon", ATTACKED_AT)
def test_exact_answers_give_people_away_and_private_ones_stay_below_the_ceiling(epsilon):
    for one in lab_attacks(epsilon):
        assert one.exact.share > 0.85
        assert one.hidden.share > 0.85
        # How many an attacker accuses wrongly is estimated, too, which the ceiling on the page allows for at 95 % only.
        assert one.private.interval(SURE)[0] <= one.ceiling + 0.1
        assert one.ceiling <= 1


def test_answers_without_their_noise_would_exceed_the_ceiling(monkeypatch):
    """The planted mistake: counts that are published as they are, and claimed to be private."""
    monkeypatch.setattr(lab_results, "_noisy", lambda table, scale: _claimed(table, scale))
    found = lab_results._differencing("0.1")
    assert found.private.of  # Drawn anew, noise is what the table says that it is …
    honest = lab_results._guessed(0)
    assert honest.interval(SURE)[0] > found.ceiling  # … and exact counts would be found out.


def _claimed(table, scale):
    from dataclasses import replace

    from discreet.lab.attacks.count_tables import CountNoise

    return replace(table, noise=CountNoise.LAPLACE, deviation=float(scale))


def test_what_is_said_to_hide_nothing_hides_nothing():
    members, _ = lab_results._crowd()
    assert members.sum(axis=0).min() >= lab_results._HIDDEN_BELOW


def test_attacks_are_computed_once_for_each_choice_and_for_no_other(world, monkeypatch):
    before = lab_attacks("1")
    monkeypatch.setattr(lab_results, "_differencing", None)  # Would fail if it were computed again.
    assert lab_attacks("1") is before
    with pytest.raises(KeyError):
        lab_attacks("1.5")
    browser = world.browser("analyst")
    for said in ("epsilon=1.5", "place=77", "epsilon=1e308", "place=x"):
        page = browser.get(f"/lab/attacks?{said}")
        assert page.status_code == 200
        assert "no attacker exceeds" in page.text


def test_the_lab_is_for_everybody_who_is_signed_in_and_reads_nothing_that_is_served(world, monkeypatch):
    from discreet.query.session.session import Session

    def touched(*_, **__):
        raise AssertionError("a served data set was asked")

    lab_attacks("1")
    browsers = [world.browser(role) for role in ("owner", "custodian", "analyst", "auditor", "reader")]
    monkeypatch.setattr(Session, "sql", touched)
    monkeypatch.setattr(Session, "for_principal", touched)
    for browser in browsers:
        assert browser.get("/lab").status_code == 200
        assert browser.get("/lab/attacks").status_code == 200
    assert world.client().get("/lab").status_code == 303
