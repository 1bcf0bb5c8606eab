"""dp.synthesize: nothing is read before it is paid, no failure tells anything, and nothing undeclared gets out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from safetensors import safe_open
from safetensors.numpy import save_file
from synth_hostile import belongs, columns, hostile
from synth_toys import CANARY, Columns, ColumnsModel, ColumnsPlan, Guarded, Purse

import discreet as dp
from discreet.privacy import GDP, ApproxDP, Event, PureDP, Relation, epsilon
from discreet.synth import Category, Domain, Images, Numeric
from discreet.synth.domain.coding import Coder, TableRows
from discreet.synth.fitted_models import SyntheticModel, are_impossible
from discreet.synth.method import Terms
from discreet.synth.promise import Promise
from discreet.synth.synthesis_plan import choose_for_images, choose_for_table, paid
from discreet.synth.tables import AIM, MST

DOMAIN = Domain(
    {
        "age": Numeric(0, 99, whole=True, bins=10, null=True),
        "sex": Category(["f", "m"], null=True),
        "weight": Numeric("0.5", "200.5", bins=8),
        "kind": Category([1, 2, 3]),
    }
)
HOSTILE: dict[str, list[Any]] = {
    "age": [31, CANARY, None, float("nan"), float("inf"), -(10**400), b"x", 17, 18, 19] * 3,
    "sex": ["f", CANARY, None, 3, "m", "F", [1], "f", "m", "f"] * 3,
    "weight": [77.7, CANARY, 1e308, None, "70", object(), True, 60.5, 80, 90] * 3,
    "kind": [1, 777777, None, CANARY, "2", 3.0, 2.5, 1, 2, 3] * 3,
}


def fit(table: Any = HOSTILE, method: Any = "independent", **more: Any) -> SyntheticModel:
    asked: dict[str, Any] = {"domain": DOMAIN, "epsilon": 1, "delta": 1e-6, "progress": False}
    return dp.synthesize(table, method, **(asked | more))


RULED = {"colour": Category(["red", "green"]), "sold": Category([True, False]), "constant": Category(["one"])}


@pytest.mark.parametrize(
    ("columns", "rules", "message"),
    [
        (RULED, [{"colour": "red"}, {"colour": "green", "sold": True}, {"sold": False}], "no row is possible"),
        (RULED, [{"constant": "one", "colour": "red"}, {"colour": "green"}], "no row is possible"),
        (
            {name: Numeric(0, 1, bins=300) for name in "abc"} | {"found": Category.unlisted()},
            [{"a": (0, "0.5"), "b": (0, "0.5"), "c": 0}],
            "27,090,000 cells",
        ),
    ],
)
@pytest.mark.parametrize("method", ["auto", "independent", "merf"])
def test_rules_that_no_model_can_keep_are_refused_unpaid(columns: Any, rules: Any, message: str, method: str) -> None:
    purse = Purse()
    table = {name: Guarded([None] * 4, purse) for name in columns}
    with pytest.raises(dp.InvalidParameter, match=message):
        fit(table, method, domain=Domain(columns, impossible=rules), session=purse)
    assert not purse.charges


def test_a_method_that_draws_impossible_rows_only_still_gives_possible_ones() -> None:
    domain = Domain(RULED, impossible=[{"colour": "red"}, {"sold": True, "constant": "one"}])
    drawn = fit({"colour": ["red"] * 9, "sold": [True] * 9, "constant": ["one"] * 9}, OnlyRed(), domain=domain).sample(
        60
    )
    assert set(drawn["colour"]) == {"green"}
    assert set(drawn["sold"].tolist()) == {False}


@dataclass(frozen=True)
class OnlyRed:
    """A method whose model draws the same impossible row over and over."""

    name: str = "independent"

    def plan(self, terms: Terms[Domain]) -> OnlyRedPlan:
        return OnlyRedPlan(terms)


class OnlyRedPlan(ColumnsPlan):
    def fit(self, rows: TableRows, *, progress: bool) -> Any:
        return OnlyRedModel(self.terms.domain, [np.array([9])])


class OnlyRedModel(ColumnsModel):
    def sample(self, rows: int) -> Any:
        return Coder(self.domain).decode(np.zeros((rows, 3), dtype=np.int32))


@pytest.mark.parametrize("method", ["independent", "mst", "aim"])
def test_no_undeclared_value_gets_out(method: str, tmp_path: Path) -> None:
    model = fit(method=method)
    file = tmp_path / "model.safetensors"
    model.save(file)
    table = model.sample(500)
    frame = table.to_pandas()
    assert set(frame["sex"].dropna()) <= {"f", "m"}
    assert set(frame["kind"]) <= {1, 2, 3}
    assert frame["age"].dropna().between(0, 99).all()
    assert frame["weight"].between(0.5, 200.5).all()
    written = [file.read_bytes().decode("latin-1"), table.to_csv() or "", str(model), repr(model), str(table)]
    assert [text for text in written if CANARY in text or "777777" in text] == []


@settings(max_examples=10, deadline=None)
@given(declared=st.lists(columns(), min_size=1, max_size=3), data=st.data())
def test_no_undeclared_value_gets_out_for_all_domains(declared: list[Category | Numeric], data: Any) -> None:
    domain = Domain({f"c{place}": column for place, column in enumerate(declared)})
    rows = data.draw(st.integers(1, 6))
    table = {name: data.draw(st.lists(hostile, min_size=rows, max_size=rows)) for name in domain.names}
    drawn = fit(table, "independent", domain=domain).sample(30)
    for name, column in domain.columns.items():
        assert all(belongs(column, value) for value in drawn._columns[name].objects())


def test_nothing_is_read_before_it_is_paid_for() -> None:
    purse = Purse()
    table = {name: Guarded(values, purse) for name, values in HOSTILE.items()}
    planned = dp.synth.plan(table, Columns(), domain=DOMAIN, epsilon=1, delta=1e-6, session=purse)
    assert purse.charges == []
    assert len(planned.fit().sample(5)) == 5
    assert purse.charges == [(planned.event, Relation.ADD_REMOVE, "synthetic data: independent", "row")]
    empty = Purse(is_empty=True)
    with pytest.raises(dp.BudgetExceeded):
        fit({name: Guarded(values, empty) for name, values in HOSTILE.items()}, session=empty)


def test_every_failure_after_the_charge_has_the_same_words() -> None:
    class Failing(ColumnsPlan):
        def fit(self, rows: TableRows, *, progress: bool) -> ColumnsModel:
            raise KeyError(CANARY)

    class Broken(Columns):
        def plan(self, terms: Terms[Domain]) -> ColumnsPlan:
            return Failing(terms)

    purse = Purse()
    with pytest.raises(dp.AnswerFailed) as caught:
        fit(method=Broken(), session=purse)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(purse.charges) == 1


def test_a_plan_that_costs_more_than_was_asked_for_is_refused() -> None:
    class Dear(ColumnsPlan):
        @property
        def event(self) -> Any:
            return PureDP(self.terms.epsilon * 2)

    class Wrong(Columns):
        def plan(self, terms: Terms[Domain]) -> ColumnsPlan:
            return Dear(terms)

    purse = Purse()
    with pytest.raises(dp.Refused, match="more than the 1 that was asked for"):
        fit(method=Wrong(), session=purse)
    assert purse.charges == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 0.1, "public_rows": 100}, "delta"),
        ({"relation": "add remove"}, "relation"),
        ({"domain": None}, "domain"),
        ({"domain": {"age": 3}}, "age"),
        ({"domain": {"name": Category(["x"])}}, "name"),
        ({"label": "nobody"}, "nobody"),
        ({"method": "gan"}, "gan"),
        ({"unit": "person"}, "rows_per_unit"),
        ({"unit": "person", "rows_per_unit": 2}, "person"),
        ({"unit": "age", "rows_per_unit": 2}, "age"),
        ({"rows_per_unit": 2}, "rows_per_unit"),
        ({"unit": "person", "rows_per_unit": 0}, "rows_per_unit"),
        ({"relation": Relation.REPLACE_ONE, "public_rows": 3}, "public_rows"),
        ({"table": [1, 2]}, "list"),
        ({"table": "nowhere.csv"}, "nowhere"),
    ],
)
def test_nonsense_is_refused_before_anything_is_charged(wrong: dict[str, Any], words: str) -> None:
    purse = Purse()
    table, method = wrong.pop("table", HOSTILE), wrong.pop("method", Columns())
    with pytest.raises(dp.InvalidParameter, match=words) as caught:
        fit(table, method, session=purse, **wrong)
    assert purse.charges == []
    assert CANARY not in str(caught.value)


def test_a_unit_is_charged_for_itself_and_brings_few_rows() -> None:
    class Seen(Columns):
        def plan(self, terms: Terms[Domain]) -> ColumnsPlan:
            terms_seen.append(terms)
            return Counting(terms)

    class Counting(ColumnsPlan):
        def fit(self, rows: TableRows, *, progress: bool) -> ColumnsModel:
            rows_seen.append(len(rows.codes()))
            return super().fit(rows, progress=progress)

    terms_seen: list[Any] = []
    rows_seen: list[int] = []
    purse = Purse()
    table = HOSTILE | {"person": [1] * 10 + [2] * 10 + [None] * 10}
    model = fit(table, Seen(), unit="person", rows_per_unit=3, session=purse)
    assert rows_seen == [6]
    assert terms_seen[0].rows_per_unit == 3
    assert purse.charges[0][3] == "person"
    assert "all rows that share one person" in str(model.promise)


def test_the_number_of_rows_is_public_under_replace_one_only() -> None:
    class Seen(Columns):
        def plan(self, terms: Terms[Domain]) -> ColumnsPlan:
            seen.append(terms.public_rows)
            return ColumnsPlan(terms)

    seen: list[int | None] = []
    fit(method=Seen())
    fit(method=Seen(), relation=Relation.REPLACE_ONE)
    fit(method=Seen(), public_rows=50)
    assert seen == [None, 30, 50]
    # A unit in the place of another may have more rows or fewer, so that their number is private.
    fit(
        HOSTILE | {"who": [*range(10)] * 3},
        Seen(),
        relation=Relation.REPLACE_ONE,
        unit="who",
        rows_per_unit=3,
    )
    assert seen[3:] == [None]


def test_a_table_of_a_session_is_fitted_and_charged_to_its_ledger(tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": np.repeat(range(40), 2), "sex": ["f", CANARY] * 40, "age": range(80), "note": CANARY})
    with dp.Session(
        {"visits": frame},
        unit=dp.Unit("who"),
        budget=dp.Budget(epsilon=2, delta=1e-6),
        columns={"sex": dp.categories(["f", "m"]), "age": dp.between(0, 99)},
        ledger=tmp_path / "a.ledger",
        dataset="visits",
        principal="me",
    ) as session:
        with pytest.raises(dp.Refused, match="who"):
            dp.synthesize("visits", Columns(), epsilon=1, delta=1e-7, session=session)
        assert len(session.history()) == 1
        model = dp.synthesize(
            "visits", "mst", epsilon=1, delta=1e-7, unit="who", rows_per_unit=2, session=session, progress=False
        )
        assert [entry.kind for entry in session.history()] == ["open", "charge", "reading", "read"]
    assert model.domain.names == ("sex", "age")
    assert set(model.sample(50)["sex"]) <= {"f", "m", None}


def test_what_is_charged_instead_of_an_event_has_its_epsilon_and_its_delta() -> None:
    """A payer that holds no Gaussian event is charged for what it means at its delta."""

    class Plain(Purse):
        def affords(self, event: Event) -> bool:
            return isinstance(event, ApproxDP)

    promise = Promise.of(
        GDP("0.1"),
        method="aim",
        relation=Relation.ADD_REMOVE,
        delta=Fraction("1e-6"),
        unit="row",
        rows_per_unit=1,
    )
    purse = Plain()
    paid(purse, promise, lambda: None, of_session=False)
    ((charged, _, _, _),) = purse.charges
    assert charged == ApproxDP(Fraction(promise.epsilon), promise.delta)
    assert epsilon(charged, promise.delta) >= epsilon(promise.event, promise.delta)


def test_a_single_fit_may_take_a_whole_budget(tmp_path: Path) -> None:
    with dp.Session(
        {"t": pd.DataFrame({"sex": ["f"] * 9})},
        unit="row",
        budget=dp.Budget(epsilon=1, delta=1e-6, approximate=1),
        columns={"sex": dp.categories(["f", "m"])},
        ledger="memory",
        dataset="t",
        principal="me",
    ) as session:
        dp.synthesize("t", "mst", epsilon=1, delta=1e-6, session=session, progress=False)
        with pytest.raises(dp.BudgetExceeded):
            dp.synthesize("t", "mst", epsilon=1, delta=1e-6, session=session, progress=False)


def test_impossible_rows_are_never_drawn() -> None:
    columns = {"age": Numeric(0, 99, whole=True, bins=10), "sex": Category(["f", "m"]), "kind": Category([1, 2])}
    domain = Domain(columns, impossible=[{"age": (0, 15), "sex": "m"}, {"kind": 2, "sex": "f"}])
    table = {"age": [3, 40] * 50, "sex": ["m", "f"] * 50, "kind": [2, 2] * 50}
    for method in (Columns(), "mst", "aim"):
        drawn = fit(table, method, domain=domain).sample(400)
        assert not are_impossible(domain, drawn._columns).any()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    fit(method="mst").save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_model_comes_back_as_it_was(saved: Path) -> None:
    model = dp.synth.load(saved)
    assert isinstance(model, SyntheticModel)
    assert model.domain == DOMAIN
    assert model.promise.method == "mst"
    assert model.promise.epsilon <= 1
    assert len(model.sample(7)) == 7
    assert saved.stat().st_mode & 0o777 == 0o600


def forged(file: Path, change: Any) -> None:
    with safe_open(str(file), framework="np") as opened:
        head = json.loads((opened.metadata() or {})["discreet"])
        arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    change(head, arrays)
    save_file(arrays, str(file), {"discreet": json.dumps(head)})


@pytest.mark.parametrize(
    "change",
    [
        lambda head, arrays: head.pop("promise"),
        lambda head, arrays: head.update(version=99),
        lambda head, arrays: head["promise"].update(epsilon=0.01),
        lambda head, arrays: head["promise"].update(event='{"Nothing": 1}'),
        lambda head, arrays: head["promise"].update(method="pickle"),
        lambda head, arrays: head["promise"].update(rows_per_unit=-1),
        lambda head, arrays: head["domain"]["columns"].pop(),
        lambda head, arrays: head["domain"]["columns"][1].update(values=["f", "m", "x"]),
        lambda head, arrays: head["domain"]["columns"][0].update(low="nan"),
        lambda head, arrays: head["domain"].update(impossible=[{"columns": [0, 9], "cells": [[0], [0]]}]),
        lambda head, arrays: head.update(model={}),
        lambda head, arrays: arrays.clear(),
        lambda head, arrays: arrays.update({name: array * np.nan for name, array in arrays.items()}),
        lambda head, arrays: arrays.update({name: array[:1] for name, array in arrays.items()}),
    ],
)
def test_a_file_that_was_changed_is_refused(change: Any, saved: Path) -> None:
    forged(saved, change)
    with pytest.raises(dp.Refused, match="no model"):
        dp.synth.load(saved)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    for name, content in {
        "a.safetensors": b"",
        "b.safetensors": b"\x80\x04K\x01.",
        "c.safetensors": b"{}" * 99,
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dp.Refused):
            dp.synth.load(tmp_path / name)
    with pytest.raises(dp.InvalidParameter):
        dp.synth.load(tmp_path / "nothing.safetensors")
    with pytest.raises(dp.InvalidParameter, match="safetensors"):
        fit().save(tmp_path / "model.pkl")


def test_a_synthetic_table_is_the_same_in_every_form(tmp_path: Path) -> None:
    table = fit().sample(40)
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv")
    arrow, frame = table.to_arrow(), table.to_pandas()
    assert parquet.read_table(tmp_path / "t.parquet").equals(arrow)
    assert arrow.column("age").to_pylist() == [None if pd.isna(x) else int(x) for x in frame["age"]]
    assert table.to_polars().rows() == list(
        zip(*(arrow.column(name).to_pylist() for name in table.columns), strict=True)
    )
    assert pd.read_csv(tmp_path / "t.csv").shape == (40, 4)
    assert list(table) == list(DOMAIN.names)
    with pytest.raises(dp.InvalidParameter, match="nobody"):
        table["nobody"]


def test_tables_and_domains_are_tables_in_a_notebook_and_no_value_is_code() -> None:
    domain = Domain({"<b>": Category(["<script>"]), "n": Numeric(0, 4, whole=True, bins=4)})
    shown = fit({"<b>": ["<script>"] * 40, "n": [1, 2] * 20}, "independent", domain=domain).sample(40)._repr_html_()
    assert shown.count("<tr>") == 11
    assert shown.count('<td style="text-align:left">&lt;script&gt;</td><td style="text-align:right">') == 10
    assert shown.endswith("<small>40 synthetic rows</small>")
    declared = domain._repr_html_()
    assert '<td style="text-align:left">&lt;b&gt;</td><td style="text-align:right">1</td>' in declared
    assert "Category(" in declared
    assert not any(tag in shown + declared for tag in ("<b>", "<script>"))


def test_a_promise_says_whom_it_protects_and_is_rounded_up() -> None:
    said = {"method": "aim", "delta": Fraction(1, 10**6), "rows_per_unit": 1}
    row = Promise.of(ApproxDP("0.12345", "1e-6"), relation=Relation.ADD_REMOVE, unit="row", **said)
    assert "leaving out or adding one row" in str(row)
    assert "ε = 0.1235" in str(row)
    changed = Promise.of(PureDP(1), relation=Relation.REPLACE_ONE, unit="row", **said)
    assert "changing the content of one row" in str(changed)
    assert Promise.restored(row.document()) == row


def test_auto_looks_at_public_facts_alone() -> None:
    def terms(domain: Any, epsilon: int = 1, public_rows: int | None = None) -> Terms[Any]:
        return Terms(
            domain=domain,
            epsilon=Fraction(epsilon),
            delta=Fraction(1, 10**6),
            relation=Relation.ADD_REMOVE,
            public_rows=public_rows,
        )

    def wide(columns: int) -> Terms[Any]:
        return terms(Domain({f"c{place}": Category([1, 2]) for place in range(columns)}))

    assert [choose_for_table(wide(columns)) for columns in (3, 30, 200)] == [AIM(), AIM(ways=2), MST()]
    assert choose_for_table(terms(Domain({"a": Category(range(2000)), "b": Category(range(2000))}))) == MST()
    pictures = Images(14, 14, classes=range(10))
    asked = [terms(pictures, 10, 1000), terms(pictures, 10), terms(pictures, 1, 1000)]
    assert [choose_for_images(one).name for one in asked] == ["diffusion", "merf", "merf"]


def test_a_missing_library_is_named_before_anything_is_paid(monkeypatch):
    from discreet.errors import MissingLibrary
    from discreet.learn import extras

    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(MissingLibrary, match=r"needs torch.*discreet\[synth\]") as missing:
        dp.synth.merf.MerfImages().plan(None)
    assert isinstance(missing.value, ModuleNotFoundError)


def test_a_payer_that_is_not_told_whom_it_protects_pays_for_nothing() -> None:
    """A charge for a person would be booked as one for a row."""

    class Blind:
        charges = 0

        def charge(self, event: Event, *, relation: Relation, purpose: str) -> None:
            self.charges += 1

    def promise(unit: str) -> Promise:
        return Promise.of(
            GDP("0.1"), method="aim", relation=Relation.ADD_REMOVE, delta=Fraction("1e-6"), unit=unit, rows_per_unit=1
        )

    payer: Any = Blind()
    for unit in ("person", "row"):
        with pytest.raises(TypeError, match="unit"):
            paid(payer, promise(unit), lambda: pytest.fail("read without a charge"), of_session=False)
    assert payer.charges == 0
