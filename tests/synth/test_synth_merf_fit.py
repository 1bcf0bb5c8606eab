"""DP-MERF from rows to samples: rows count through one noisy sum and in no other way, and what is learnt is right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from recorded import replayed

import discreet as dp
from discreet import privacy
from discreet.errors import DiscreetError, InvalidParameter
from discreet.privacy.relation import Relation
from discreet.synth.domain.category import Category
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import ImageRows, Images
from discreet.synth.domain.numeric import Numeric
from discreet.synth.merf import HermiteImages, MerfImages, MerfTables
from discreet.synth.merf.features import CellEmbedding, PictureEmbedding, cell_waves, picture_waves
from discreet.synth.merf.matching import CellMatching, PictureMatching
from discreet.synth.merf.merf_images import MerfImagePlan
from discreet.synth.merf.merf_models import MerfImageModel
from discreet.synth.merf.sensitivity import NoisySums, SumPrice, summed
from discreet.synth.method import Terms

torch.set_num_threads(1)
DELTA = Fraction(1, 10**5)
SMALL = Images(4, 4, classes=["left", "right"])
QUICK = MerfImages(waves=30, steps=4, hidden=8, codes=3)
DOMAIN = Domain(
    {
        "age": Numeric(0, 79, whole=True, bins=8, null=True),
        "sex": Category(["f", "m"]),
        "smokes": Category(["no", "yes"]),
        "ill": Category(["no", "yes"]),
    }
)


def terms(domain: Any, relation: Relation = Relation.ADD_REMOVE, **more: Any) -> Terms[Any]:
    return Terms(domain=domain, epsilon=Fraction(1), delta=DELTA, relation=relation, **more)


def halves(count: int, shift: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.str_]]:
    """Pictures that are bright on one side, which their label names."""
    places = np.arange(count)
    pictures = np.zeros((count, 4, 4), dtype=np.uint8)
    right = places % 2 == 1
    pictures[~right, :, :2] = (200 + (places[~right] * 7 + shift) % 50)[:, None, None]
    pictures[right, :, 2:] = (200 + (places[right] * 5 + shift) % 50)[:, None, None]
    return pictures.reshape(count, 16), np.where(right, "right", "left")


def rows_of(count: int = 60, shift: int = 0) -> ImageRows:
    return SMALL.rows(*halves(count, shift))


# --- rows count through the released sums and in no other way ---


def fitted_arrays(
    plan: Any, rows: Any, released: Callable[[SumPrice, NDArray[np.int64]], NoisySums], patch: Any
) -> Any:
    """Fit with recorded chance and a release that does not look at the sums."""
    patch.setattr(SumPrice, "release", released)
    with replayed("merf"):
        return plan.fit(rows, progress=False).document()[1]


def same(left: Any, right: Any) -> bool:
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def blind(price: SumPrice, sums: NDArray[np.int64]) -> NoisySums:
    ramp = np.arange(sums.size, dtype=np.int64).reshape(sums.shape) * 1000 + 10**6
    return NoisySums(ramp, price.variance)


@dataclass(frozen=True)
class LengthFromPrivateRows:
    """The reference code: waves as long as the median distance of ten private rows, which are then discarded."""

    plan: MerfImagePlan

    def fit(self, rows: ImageRows, *, progress: bool) -> MerfImageModel:
        ten = rows.pixels()[:10].astype(np.float64)
        median = float(np.median(np.linalg.norm(ten[:, None] - ten[None], axis=2)))
        shorter = replace(QUICK, waves=10 + int(median) % 20).embedding(SMALL)
        return replace(self.plan, embedding=shorter).fit(rows, progress=progress)


@dataclass(frozen=True)
class BestOnPrivateTestRows:
    """The reference code: a grid of options, and the one that does best on private rows is kept."""

    plan: MerfImagePlan

    def fit(self, rows: ImageRows, *, progress: bool) -> MerfImageModel:
        tried = [
            replace(self.plan, recipe=replace(QUICK, codes=codes)).fit(rows, progress=progress) for codes in (2, 3)
        ]
        return tried[int(rows.pixels()[0, 0]) % 2]  # what stands for the better score on private rows


@dataclass(frozen=True)
class PrivateCounts:
    """Labels of samples drawn by the true counts of the classes."""

    plan: MerfImagePlan

    def fit(self, rows: ImageRows, *, progress: bool) -> MerfImageModel:
        counts = np.bincount(rows.labels(), minlength=2).astype(np.float64)
        return replace(self.plan.fit(rows, progress=progress), counts=counts)


def test_given_the_released_sums_the_model_does_not_depend_on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = QUICK.plan(terms(SMALL))
    before = fitted_arrays(plan, rows_of(), blind, monkeypatch)
    assert same(before, fitted_arrays(plan, rows_of(61, shift=9), blind, monkeypatch))
    table = MerfTables(waves=10, steps=3, hidden=8, codes=2).plan(terms(DOMAIN, label="ill"))
    one, two = (table_rows(count) for count in (40, 43))
    assert same(fitted_arrays(table, one, blind, monkeypatch), fitted_arrays(table, two, blind, monkeypatch))


@pytest.mark.parametrize("leak", [LengthFromPrivateRows, BestOnPrivateTestRows, PrivateCounts])
def test_planted_leaks_beside_the_sums_are_caught(leak: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = leak(QUICK.plan(terms(SMALL)))
    found = [fitted_arrays(plan, rows_of(61, shift=shift), blind, monkeypatch) for shift in (0, 9, 12)]
    found.append(fitted_arrays(plan, rows_of(60), blind, monkeypatch))
    assert not all(same(found[0], other) for other in found[1:])


def test_rows_are_read_once_and_after_the_waves_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    original = PictureEmbedding.__post_init__
    monkeypatch.setattr(PictureEmbedding, "__post_init__", lambda self: (order.append("waves"), original(self))[1])
    read = ImageRows.pixels
    monkeypatch.setattr(ImageRows, "pixels", lambda self: (order.append("rows"), read(self))[1])
    QUICK.plan(terms(SMALL)).fit(rows_of(), progress=False)
    assert order == ["waves", "rows"]


# --- what is matched is what was summed ---


def test_features_of_pictures_are_those_that_were_summed() -> None:
    """Each wave is matched with its own sum: a closure over the last of several waves would not be."""
    pictures, named = halves(40)
    labels = (named == "right").astype(np.int32)
    embedding = PictureEmbedding(picture_waves(4, 4, 60), constant=900, brightness=5000, darkest=300)
    sums = NoisySums(summed(embedding, pictures, labels, 2), Fraction(1))
    matching = PictureMatching(embedding, sums)
    with torch.no_grad():
        matching.canvas.log_spread.fill_(-30)
        ordered = torch.from_numpy(np.concatenate([pictures[labels == 0], pictures[labels == 1]]) / 255).float()
        for _ in range(3):
            picked, wanted = matching.pick(torch.Generator())
            found = matching.features(ordered, picked, torch.Generator())
            assert torch.allclose(found.mean(dim=1), wanted, atol=2e-3)
            assert not torch.allclose(found.mean(dim=1)[:, :60], wanted[:, :60].roll(1, dims=1), atol=0.02)


def test_features_of_tables_are_those_that_were_summed() -> None:
    sizes = (4, 3, 2)
    embedding = CellEmbedding(sizes, cell_waves(sizes, (4, 0, 0), 50), constant=900, weight=3000)
    codes = np.array([[0, 1, 1], [3, 2, 0], [3, 0, 1], [2, 2, 0]], dtype=np.int32)
    labels = np.array([0, 0, 1, 1], dtype=np.int32)
    matching = CellMatching(embedding, NoisySums(summed(embedding, codes, labels, 2), Fraction(1)))
    certain = torch.full((4, 9), -50.0)
    certain.scatter_(1, torch.from_numpy(codes + embedding.starts), 50.0)
    picked, wanted = matching.pick(torch.Generator())
    found = matching.features(certain, picked, torch.Generator())
    assert torch.allclose(found.mean(dim=1), wanted, atol=2e-3)


def test_waves_over_pictures_of_all_sizes_can_be_summed_exactly() -> None:
    for height, width, count in ((1, 1, 20), (1, 9, 20), (128, 128, 15)):
        waves = picture_waves(height, width, count)
        assert waves.shape == (height * width, count)
        assert 255 * np.abs(waves).sum(axis=0).max() < 1 << 24


def test_waves_over_columns_see_two_or_three_of_them() -> None:
    waves = cell_waves((5, 3, 4, 2), (5, 0, 3, 0), 40)
    parts = np.split(waves, np.cumsum((5, 3, 4, 2))[:-1])
    seen = sum((np.abs(part).sum(axis=0) > 0).astype(int) for part in parts)
    assert set(np.unique(seen)) <= {2, 3}
    used = parts[0][:, np.abs(parts[0]).sum(axis=0) > 0]
    assert np.abs(np.diff(used, n=2, axis=0)).max() <= 2  # Numbers turn a wave evenly, up to rounding.
    assert cell_waves((3,), (0,), 4).shape == (3, 4)


# --- models ---


def table_rows(count: int) -> Any:
    from discreet.synth.domain.coding import Coder, TableRows
    from discreet.synth.domain.source_tables import table_of

    places = np.arange(count)
    columns = {
        "age": (places * 7 % 80).tolist(),
        "sex": np.where(places % 2, "f", "m").tolist(),
        "smokes": np.where(places % 3 == 0, "yes", "no").tolist(),
        "ill": np.where(places % 3 == 0, "yes", "no").tolist(),
    }
    return TableRows(Coder(DOMAIN), table_of(columns))


def test_plan_charges_exactly_what_was_asked_under_both_relations() -> None:
    for relation in Relation:
        for plan in (QUICK.plan(terms(SMALL, relation)), MerfTables().plan(terms(DOMAIN, relation, label="ill"))):
            assert 0.999 < privacy.epsilon(plan.event, DELTA, relation=relation) <= 1
            single = plan.price.squared_sensitivity
        thrice = MerfTables().plan(terms(DOMAIN, relation, label="ill", rows_per_unit=3))
        assert thrice.price.squared_sensitivity == 9 * single
        assert thrice.domain is DOMAIN


def test_a_planned_reach_is_that_of_the_embedding() -> None:
    pictures = QUICK.plan(terms(SMALL))
    claimed = pictures.embedding.reach.squared_sensitivity(Relation.ADD_REMOVE)
    assert pictures.price.squared_sensitivity == claimed
    for label in (None, "ill"):
        table = MerfTables(waves=10).plan(terms(DOMAIN, Relation.REPLACE_ONE, label=label))
        assert table.price.squared_sensitivity == table.embedding.reach.squared_sensitivity(Relation.REPLACE_ONE)


def test_pictures_learn_their_classes(tmp_path: Path) -> None:
    model = dp.synthesize(
        halves(4000),
        MerfImages(waves=60, steps=60, hidden=24, codes=4),
        domain=SMALL,
        epsilon=1,
        delta=1e-5,
        progress=False,
    )
    assert abs(model.fitted.rows - 4000) < 400
    model.save(tmp_path / "digits.safetensors")
    again = dp.synth.load(tmp_path / "digits.safetensors")
    pictures, labels = again.fitted.sample(400)
    assert pictures.dtype == np.uint8
    right = pictures.reshape(-1, 4, 4).astype(int)[:, :, 2:].sum(axis=(1, 2)) > pictures.sum(axis=1) / 2
    assert np.mean(right == (labels == 1)) > 0.9


def test_tables_learn_how_columns_go_together(tmp_path: Path) -> None:
    columns = {name: np.asarray(column.values) for name, column in table_rows(6000)._columns.items()}
    model = dp.synthesize(
        columns, MerfTables(waves=40, steps=70, hidden=24, codes=4), domain=DOMAIN, label="ill", epsilon=1, delta=1e-5,
        progress=False,
    )  # fmt: skip
    model.save(tmp_path / "table.safetensors")
    frame = dp.synth.load(tmp_path / "table.safetensors").sample(2000).to_pandas()
    assert np.mean((frame["smokes"] == "yes") == (frame["ill"] == "yes")) > 0.9  # equal in every row
    assert 0.25 < np.mean(frame["ill"] == "yes") < 0.42  # one in three
    assert set(frame["sex"]) <= {"f", "m"}
    assert frame["age"].dropna().between(0, 79).all()


def test_without_a_label_all_columns_are_modelled() -> None:
    plan = MerfTables(waves=10, steps=3, hidden=8, codes=2).plan(terms(DOMAIN))
    model = plan.fit(table_rows(50), progress=False)
    assert model.codes(7).shape == (7, 4)
    assert (model.codes(100) < np.array(DOMAIN.sizes)).all()
    assert model.codes(0).shape == (0, 4)
    assert "one noisy sum" in plan.describe()


@pytest.mark.parametrize("option", [{"waves": 0}, {"steps": -1}, {"hidden": 10**9}, {"codes": 1.5}])
def test_nonsense_is_refused_before_anything_is_read(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        MerfImages(**option).plan(terms(SMALL))
    with pytest.raises(InvalidParameter):
        MerfTables(**option).plan(terms(DOMAIN))


def test_features_that_no_memory_holds_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="fewer waves"):
        MerfImages(waves=9000).plan(terms(Images(128, 128, classes=["a"])))
    with pytest.raises(InvalidParameter, match="128 x 128"):
        MerfImages().plan(terms(Images(129, 128, classes=["a"])))
    with pytest.raises(InvalidParameter, match="fewer cells"):
        MerfTables().plan(terms(Domain({"a": Category(range(100_000)), "b": Category([1, 2])})))
    with pytest.raises(InvalidParameter, match="fewer pairs"):
        HermiteImages().plan(terms(Images(512, 512, classes=range(20))))


def test_labels_of_no_use_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="more than 200 cells"):
        MerfTables().plan(terms(Domain({"a": Category(range(300)), "b": Category([1, 2])}), label="a"))
    with pytest.raises(InvalidParameter, match="beside the label"):
        MerfTables().plan(terms(Domain({"a": Category([1, 2])}), label="a"))


def test_changed_documents_are_refused() -> None:
    said, arrays = QUICK.plan(terms(SMALL)).fit(rows_of(), progress=False).document()
    assert MerfImageModel.restored(SMALL, (said, arrays)).sample(3)[0].shape == (3, 16)
    wrong: list[dict[str, Any]] = [
        {name: array for name, array in arrays.items() if name != "second"},
        arrays | {"counts": -arrays["counts"] - 1},
        arrays | {"spread": arrays["spread"][:, :3]},
        arrays | {"last": arrays["last"][:, :3], "last_start": arrays["last_start"][:3]},
        arrays | {"first": arrays["first"].astype(np.int64)},
    ]
    for changed in wrong:
        with pytest.raises(DiscreetError):
            MerfImageModel.restored(SMALL, (said, changed))


def test_empty_tables_make_a_model() -> None:
    model = QUICK.plan(terms(SMALL)).fit(SMALL.rows(np.zeros((0, 16), dtype=np.uint8), []), progress=False)
    pictures, labels = model.sample(5)
    assert pictures.shape == (5, 16)
    assert set(labels) <= {0, 1}
    assert model.rows >= 1


def test_planning_and_drawing_need_no_torch() -> None:
    script = "import discreet.synth.merf, sys; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
