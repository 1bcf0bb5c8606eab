"""An evaluation tells a table that copies from one that keeps its promise, and a good one from a useless one."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from evaluation_world import DOMAIN, copied, independent, promise, ward

from discreet.errors import InvalidParameter
from discreet.lab.evaluation import evaluate, evaluate_publicly
from discreet.pages.kit import prose
from discreet.privacy.not_private import HEADING, NotPrivate

# A false alarm of 1e-10 for each verdict; a table that copies is found out with certainty, for all practical purposes.
ERROR = 1e-10


@pytest.fixture(scope="module")
def real():
    return ward(400)


@pytest.fixture(scope="module")
def holdout():
    return ward(300, seed=1)


@pytest.fixture(scope="module")
def honest(real, holdout):
    table = independent(real)
    return evaluate(
        table, real, domain=DOMAIN, holdout=holdout, refit=independent, secret="ill", promise=promise(), error=ERROR
    ).value


@pytest.fixture(scope="module")
def leaky(real, holdout):
    return evaluate(
        real, real, domain=DOMAIN, holdout=holdout, refit=copied, secret="ill", promise=promise(), error=ERROR
    ).value


def test_a_table_that_copies_rows_is_flagged(leaky):
    assert leaky.alarming
    once, anew = leaky.attacked.searches
    assert once.refutes(ERROR)
    assert anew.refutes(ERROR)
    assert leaky.attacked.closeness.copied(ERROR)
    assert all(guessed.gains(ERROR) for guessed in leaky.attacked.guessed)
    assert leaky.verdicts[0].kind == "bad"
    assert "must not be published" in leaky.verdicts[0].text


def test_one_table_that_copies_proves_an_epsilon_beyond_its_promise(real):
    """With an error as it is usual, so that few people suffice; a kept promise is refuted once in a thousand."""
    found = evaluate(real, real, domain=DOMAIN, refit=copied, promise=promise()).value
    assert found.attacked.searches[0].level > promise().epsilon


def test_a_table_that_keeps_its_promise_is_not_flagged(honest):
    assert not honest.alarming
    assert not any(search.refutes(ERROR) or search.finds(ERROR) for search in honest.attacked.searches)
    assert not any(guessed.refutes(ERROR) or guessed.gains(ERROR) for guessed in honest.attacked.guessed)
    assert not honest.attacked.closeness.copied(ERROR)
    assert [verdict.kind for verdict in honest.verdicts if verdict.about == "privacy"] == ["good", "good"]


def test_copies_of_numbers_are_seen_without_rows_that_were_held_out(real):
    assert evaluate(real, real, domain=DOMAIN, promise=promise()).value.alarming
    quiet = evaluate(ward(600, seed=2), real, domain=DOMAIN, promise=promise()).value
    assert not quiet.alarming
    assert any("No attack was run" in verdict.text for verdict in quiet.verdicts)


def test_columns_drawn_one_by_one_keep_no_links_and_a_fresh_sample_keeps_all():
    """20,000 rows: of 400, one run in six finds too few links to say, and of 3,000 "0.8" is three deviations away."""
    many = ward(20_000)
    apart = evaluate(independent(many), many, domain=DOMAIN).value.likeness
    fresh = evaluate(ward(20_000, seed=3), many, domain=DOMAIN).value.likeness
    assert apart.fidelity.kept < 0.25
    assert fresh.fidelity.kept > 0.8
    assert {way.columns for way in fresh.fidelity.ways} == {1, 2, 3}
    assert fresh.associations.largest < apart.associations.largest


def test_a_table_without_a_promise_says_so_first(real):
    found = evaluate(ward(600, seed=4), real, domain=DOMAIN).value
    assert found.verdicts[0].kind == "bad"
    assert "no promise" in found.verdicts[0].text
    assert found.likeness.workload.asked[0].alone is None


def test_what_is_exact_is_not_private(real):
    found = evaluate(real, real, domain=DOMAIN)
    assert isinstance(found, NotPrivate)
    assert str(found).startswith(HEADING)
    assert found.value.document()["heading"] == HEADING


class _Reader(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        places = [given[key] for key in ("src", "href", "srcset", "action") if given.get(key)]
        self.loads += [place for place in places if not place.startswith(("data:image/png", "#"))]
        self.loads += [tag] if tag in {"script", "link", "iframe", "object"} or "style" in given else []
        if tag not in {"meta", "br", "img"} and not tag.startswith(("rect", "line", "poly", "circle", "path")):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open and not tag.startswith(("rect", "line", "poly", "circle", "path")):
            assert self.open.pop() == tag


def test_the_page_loads_nothing_runs_nothing_and_says_whose_it_is(honest, leaky):
    for found in (honest, leaky):
        page, reader = found.html(), _Reader()
        reader.feed(page)
        assert reader.loads == []
        assert reader.open == []
        assert page.count(HEADING) >= 3  # a bar that stays, a box, and the head of every printed sheet
        assert "http" not in page.replace("http-equiv", "")
        assert all(f"<span>{prose(verdict.text)}</span>" in page for verdict in found.verdicts)


def test_names_of_columns_are_text_and_nothing_else():
    from discreet.synth.domain.category import Category
    from discreet.synth.domain.domain import Domain

    name = '<img src=x onerror="alert(1)">'
    domain = Domain({name: Category(["<b>", "&"]), "other": Category(["x", "y"])})
    table = {name: np.array(["<b>", "&"] * 20, object), "other": np.array(["x", "y", "y", "x"] * 10, object)}
    found = evaluate(table, table, domain=domain, title="<script>").value
    page = found.html()
    assert "<img" not in page
    assert "<b>&" not in page
    assert "<script" not in page


def test_a_public_report_reads_no_private_row_and_shows_no_attack(holdout):
    found = evaluate_publicly(independent(holdout), ward(400, seed=5), domain=DOMAIN, promise=promise())
    assert found.attacked is None
    assert HEADING not in found.html()
    assert "closest row" not in found.html()
    assert json.loads(json.dumps(found.document()))["standing"] == "public"


def test_figures_are_one_json_object(honest):
    written = json.loads(json.dumps(honest.document(), allow_nan=False))
    assert written["attacks"]["membership"][1]["refitted"] is True
    assert len(written["likeness"]["marginals"]) == 3
    assert honest.tell().splitlines()[1] == HEADING


def test_mistakes_are_refused_with_a_way_out(real):
    with pytest.raises(InvalidParameter, match="domain="):
        evaluate(real, real)
    with pytest.raises(InvalidParameter, match="label must be one of"):
        evaluate(real, real, domain=DOMAIN, label="nothing")
    with pytest.raises(InvalidParameter, match="refits must be 4, 6"):
        evaluate(real, real, domain=DOMAIN, refit=copied, refits=3)
    with pytest.raises(InvalidParameter, match="error must be a chance"):
        evaluate(real, real, domain=DOMAIN, error=2)
    with pytest.raises(InvalidParameter, match="at least two rows"):
        evaluate({name: column[:1] for name, column in real.items()}, real, domain=DOMAIN)
    with pytest.raises(InvalidParameter, match="list of columns"):
        evaluate(real, real, domain=DOMAIN, workload=["sex"])
