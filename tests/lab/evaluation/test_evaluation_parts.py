"""Each measure against a slow and plain one, or a case that can be worked out by hand."""

from __future__ import annotations

import math
import zlib
from fractions import Fraction

import numpy as np
import pytest
from evaluation_world import DOMAIN, copied, promise, ward

from discreet.lab.attacks import through_table
from discreet.lab.evaluation import evaluate
from discreet.lab.evaluation.closest_records import closest, secrets_of_closest
from discreet.lab.evaluation.evaluation_page import png
from discreet.lab.evaluation.image_report import evaluate_images
from discreet.lab.evaluation.likeness import cramers_v
from discreet.lab.evaluation.promised_limits import ceiling
from discreet.lab.evaluation.table_rows import layout_of, read_rows
from discreet.lab.evaluation.usefulness import direct_error, downstream, workload
from discreet.pages.svg import heatmap, overlaid_bars, overlaid_steps, page_lines
from discreet.privacy import Relation, best_tpr, events, gaussian_sigma
from discreet.synth.domain.category import Category
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import Images
from discreet.synth.domain.numeric import Numeric
from discreet.synth.promise import Promise

LAYOUT = layout_of(DOMAIN)


def plain_distance(one, other):
    """The mean over columns, value by value."""
    codes = sum(one.codes[place] != other.codes[place] for place in LAYOUT.others)
    for mine, yours in zip(one.places, other.places, strict=True):
        if np.isnan(mine) or np.isnan(yours):
            codes += np.isnan(mine) != np.isnan(yours)
        else:
            codes += abs(float(mine) - float(yours))
    return codes / len(LAYOUT.names)


def test_the_closest_row_agrees_with_a_plain_search():
    asked, among = read_rows(LAYOUT, ward(20)), read_rows(LAYOUT, ward(60, seed=1))
    pairs = [[plain_distance(asked.take(a), among.take(b)) for b in range(60)] for a in range(20)]
    assert np.allclose(closest(LAYOUT, asked, among), np.min(pairs, axis=1), atol=1e-6)
    assert not closest(LAYOUT, among, among).any()


def test_guesses_agree_with_those_of_the_attack_lab():
    draw = np.random.default_rng(4)
    domain = Domain({name: Category(["a", "b", "c"]) for name in ("one", "two", "secret")})
    table = {name: np.array(["a", "b", "c"], object)[draw.integers(0, 3, 40)] for name in domain.names}
    layout = layout_of(domain)
    rows, lab = read_rows(layout, table), through_table(lambda rows: rows, secret="secret")(table)
    people = [{name: table[name][at] for name in ("one", "two")} for at in range(20)]
    guesses = secrets_of_closest(layout, rows.take(slice(20)), rows, 2)
    assert [["a", "b", "c"][code] for code in guesses] == [lab(known) for known in people]


def test_the_strength_of_a_link_is_zero_by_chance_and_one_where_a_column_tells_the_other():
    assert cramers_v(np.diag([30, 20, 50])) == pytest.approx(1.0, abs=0.02)
    assert cramers_v(np.outer([30, 20, 50], [4, 6])) == 0.0
    assert cramers_v(np.zeros((3, 3), np.int64)) == 0.0
    draw = np.random.default_rng(2)
    by_chance = np.bincount(draw.integers(0, 64, 3000), minlength=64).reshape(8, 8)
    assert cramers_v(by_chance) < 0.06


def told(epsilon, delta, relation=Relation.ADD_REMOVE, rows=1):
    event = events.ApproxDP(epsilon, delta)
    return Promise.of(event, method="told", relation=relation, delta=Fraction(delta), unit="who", rows_per_unit=rows)


def test_direct_errors_are_those_of_the_noise_that_would_be_added():
    delta = Fraction(1, 10**6)
    alone = 1.959964 * gaussian_sigma(1, delta)
    assert direct_error(told(1, delta), 1) == pytest.approx(alone)
    assert direct_error(told(1, delta), 9) == pytest.approx(3 * alone)
    assert direct_error(told(1, delta, Relation.REPLACE_ONE, rows=4), 1) == pytest.approx(4 * math.sqrt(2) * alone)
    assert direct_error(told(2, 0), 3) == pytest.approx(math.log(20) * 3 / 2)


def test_questions_of_a_table_to_itself_have_no_error():
    rows = read_rows(LAYOUT, ward(300))
    found = workload(LAYOUT, rows, rows, promise=promise(), label="ill", questions=None)
    assert {one.synthetic for one in found.asked} == {0.0}
    assert found.better_alone == 0
    other = workload(LAYOUT, read_rows(LAYOUT, ward(20, seed=8)), rows, promise=None, label=None, questions=[["sex"]])
    assert other.asked[0].columns == ("sex",)
    assert other.asked[0].synthetic > 1


def test_a_swap_counts_twice_under_add_remove():
    made = promise()
    assert ceiling(made, 0.1, swapped=False) == best_tpr(made.event, Fraction(0.1), relation=Relation.ADD_REMOVE)
    assert ceiling(made, 0.1, swapped=True) > ceiling(made, 0.1, swapped=False)


def test_models_learn_as_much_from_copies_as_from_real_rows_and_nothing_from_shuffled_ones():
    real, test = read_rows(LAYOUT, ward(500)), read_rows(LAYOUT, ward(300, seed=1))
    order = np.random.default_rng(3).permutation(500)
    shuffled = read_rows(LAYOUT, {**ward(500), "ill": ward(500)["ill"][order]})
    same = downstream(LAYOUT, real, real, test, label="ill", seen=False)
    lost = downstream(LAYOUT, shuffled, real, test, label="ill", seen=False)
    assert same.kept == 1.0
    assert lost.kept < 0.4
    number = downstream(LAYOUT, real, real, test, label="age", seen=False)
    assert number.number
    assert 0.3 < number.real <= 1


def test_pictures_that_are_copied_are_flagged_and_others_are_not():
    draw = np.random.default_rng(6)
    domain, labels = Images(8, 8, classes=[0, 1]), np.arange(400) % 2
    shown = np.clip(draw.normal(80 + 60 * labels[:, None, None], 30, (400, 8, 8)), 0, 255).astype(np.uint8)
    real, holdout, fresh = ((shown[part], labels[part]) for part in (slice(150), slice(150, 250), slice(250, 400)))
    made = told(1, Fraction(1, 10**6))
    leaky, honest = (
        evaluate_images(table, real, holdout=holdout, domain=domain, promise=made, error=1e-10).value
        for table in (copied(real), fresh)
    )
    assert leaky.alarming
    assert not honest.alarming
    assert honest.likeness.downstream.synthetic > 0.9
    assert honest.html().count('src="data:image/png;base64,') == 4


def test_a_sheet_is_a_readable_file():
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4)
    file = png(picture)
    start = file.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompress(file[start:-16]), np.uint8).reshape(3, 5)
    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    assert (lines[:, 1:] == picture).all()


def test_pictures_for_pages_refuse_what_they_cannot_draw():
    from discreet.errors import InvalidParameter

    assert heatmap([[None, -0.5], [1.0, None]], ["a", "<b>"], name="m", told="x").count("<rect") == 4
    assert "<b>" not in heatmap([[None, 1], [1, None]], ["a", "<b>"], name="m", told="<b>")
    assert overlaid_steps([0.5, 0.5], [1.0, 0.0]).count("<rect") == 2
    assert 'width="50.00%"' in overlaid_bars(0.2, 0.4, 0.4)
    for wrong in (
        lambda: heatmap([[1.0]], ["a", "b"], name="m", told="x"),
        lambda: heatmap([[1.0]], ["a"], name="<m>", told="x"),
        lambda: overlaid_steps([0.5], [0.5, 0.5]),
        lambda: overlaid_bars(0.5, 0.5, 0),
        lambda: page_lines({}, across="x", up="y", name="m"),
        lambda: page_lines({"a": ([0, 1], [0, 1])}, across="x", up="y", name="two words"),
    ):
        with pytest.raises(InvalidParameter):
            wrong()


def travel(rows, seed=0):
    """Nine of ten rows have an airport that is not declared, and the two numbers go together inside their bins."""
    draw = np.random.default_rng(seed)
    one = draw.random(rows)
    return {
        "airport": np.where(draw.random(rows) < 0.9, [f"x{n}" for n in draw.integers(0, 300, rows)], "big").astype(
            object
        ),
        "class": np.array(["a", "b"], object)[draw.integers(0, 2, rows)],
        "one": one,
        "two": np.clip(one + draw.normal(0, 0.05, rows), 0, 1),
    }


TRAVEL = Domain(
    {
        "airport": Category(["big"], other=True),
        "class": Category(["a", "b"]),
        "one": Numeric(0, 1, bins=2),
        "two": Numeric(0, 1, bins=2),
    }
)


def redrawn(table):
    """Draw all rows anew within their own cells: perfect, if nothing is finer than the cells of the domain."""
    coder = Coder(TRAVEL)
    return {name: np.asarray(one.values) for name, one in coder.decode(coder.codes(table)).items()}


def test_rows_called_other_and_places_within_bins_count_as_distance():
    real = travel(3000)
    found = evaluate(redrawn(real), real, domain=TRAVEL).value
    by_name = {one.name: one for one in found.likeness.overlays}
    assert by_name["airport"].lost == pytest.approx(0.9, abs=0.03)
    assert by_name["airport"].distance == pytest.approx(by_name["airport"].lost)
    assert by_name["class"].lost == by_name["class"].distance == 0
    pairs = found.likeness.fidelity.way(2)
    assert pairs.found.by_clique[0, 1] >= by_name["airport"].lost - 1e-9
    assert pairs.found.by_clique[2, 3] > 0.3  # Evenly drawn within four cells, where all lie near a line.
    told = [one for one in found.verdicts if one.about == "use"]
    assert any(one.kind == "bad" and "airport" in one.text for one in told)
    assert any("Correlations" in one.text and one.kind == "look" for one in told)
    (pair, was, now), *_ = found.likeness.correlations.changes
    assert pair == ("one", "two")
    assert (was > 0.95, now < 0.85) == (True, True)
    assert "of rows have a value that the synthetic table does not" in found.html()
    assert "Correlations of numbers" in found.html()
    assert found.document()["likeness"]["columns"][0]["undeclared"] == by_name["airport"].lost


def test_a_copy_is_no_distance_away_whatever_nobody_declared():
    real = travel(500)
    found = evaluate(real, real, domain=TRAVEL).value
    assert [(one.distance, one.lost) for one in found.likeness.overlays] == [(0, 0)] * 4
    assert found.likeness.fidelity.way(2).found.worst[1] == 0


@pytest.mark.parametrize(
    "declared", [Category([1, 2]), Category(["a"], null=True), Category(["a"]), Category([True, False])]
)
def test_undeclared_values_are_known_for_all_kinds_of_categories(declared):
    """Whatever cell they go to: other, missing, or the first."""
    layout = layout_of(Domain({"x": declared}))
    listed = list(declared.values)
    rows = read_rows(layout, {"x": [*listed, "strange", "strange", "stranger", None]})
    keys = rows.undeclared[:, 0]
    assert (keys[: len(listed)] == 0).all()
    assert keys[-4] == keys[-3] != 0
    assert keys[-2] not in (0, keys[-3])
    assert bool(keys[-1] == 0) is declared.null


def test_a_column_that_is_all_other_is_said():
    real = travel(500) | {"airport": np.array([f"x{n}" for n in range(500)], object)}
    found = evaluate(redrawn(real), real, domain=TRAVEL).value
    assert any("airport 100 %" in one.text and "holds nothing of what it held" in one.text for one in found.verdicts)
