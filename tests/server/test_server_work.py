"""Plans, profiles, synthetic rows and models as jobs: one door, one charge before the first row, files in time."""

from __future__ import annotations

import io
import json
import re
import zipfile
from decimal import Decimal
from threading import Event

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from server_world import CLINICS, POLICY, prepare, running
from test_server_jobs import SlowClock, eventually

from discreet.errors import AnswerFailed, InvalidParameter
from discreet.ledger import Budget
from discreet.query import Session, Unit, read_policy
from discreet.query.session.row_streams import StoredRows
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.release.plan_reader import read_plan_text
from discreet.release.profiling.profile_plan import plan_profile
from discreet.schema.columns import between, categories
from discreet.server.datasets import open_shelf
from discreet.server.work import fit_child, fits, model_jobs, plan_jobs
from discreet.server.work import kinds as work_kinds
from discreet.server.work.fits import fit_elsewhere
from discreet.server.work.profile_jobs import _profiled

HEAD = 'name = "visits"\ntitle = "Visits by clinic"\n'
PUBLISH = """
[release]
epsilon = 0.5
split = "even"

[[publish]]
name = "by_clinic"
title = "Visits by clinic"
sql = "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic"
"""
PROFILE = {"epsilon": "0.5", "delta": "1e-6"}
SYNTH = {"epsilon": "0.5", "delta": "1e-6", "method": "independent", "rows": 50}
TRAIN = {"model": "logistic", "target": "clinic", "features": ["age"], "epsilon": "0.5", "delta": "1e-6"}
KINDS = {"profile": PROFILE, "synthetic": SYNTH, "training": TRAIN}


def with_delta(text):
    return text.replace("[tables.visits]", "", 1).replace(
        "epsilon = 20", "epsilon = 20\ndelta = 1e-4\n\n[tables.visits]"
    )


def plan_text(name="one"):
    return HEAD + with_delta(POLICY.format(name=name, clinics=CLINICS, epsilon="20")) + PUBLISH


def prepared(folder):
    """Three data sets whose budgets have a delta, and a plan of the first."""
    prepare(folder)
    for name in ("one", "two", "three"):
        file = folder / f"{name}.toml"
        file.write_text(with_delta(file.read_text()))
    (folder / "plan").mkdir()
    (folder / "plan" / "plan.toml").write_text(plan_text())
    return folder / "plan" / "plan.toml"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    plan = prepared(folder)
    with running(folder, plans=(plan,)) as found:
        yield found


def post(client, path, body, dataset="one"):
    return client.post(f"/v1/datasets/{dataset}/{path}", json=body)


FITS = {
    "line": {"model": "linear", "target": "paid", "features": ["age", "count"]},
    "choice": {"model": "logistic", "target": "clinic", "features": ["age", "count", "paid"]},
    "truth": {"model": "logistic", "target": "well", "features": ["age"]},
}
ODD = (
    {"age": 2**53 + 1},
    {"age": -(2**63)},
    {"count": 2**64 - 1},
    {"paid": Decimal("9" * 36)},
    {"age": None, "count": None, "paid": None, "clinic": None, "well": None, "id": None},
    {"clinic": "another"},
    {"clinic": "x" * 100_000},
    {"id": 2**62},
)


class TestRowsOfAnyKind:
    """Whether a fit fails is told, and no charge pays for that: so no value of one row may decide it."""

    @staticmethod
    def rows(*odd, size=60):
        usual = [
            {"id": n, "age": n % 50, "count": n % 9, "paid": Decimal(n), "clinic": "ab"[n % 2], "well": n % 3 == 0}
            for n in range(size)
        ]
        kinds = {"id": pa.int64(), "age": pa.int64(), "count": pa.uint64(), "paid": pa.decimal128(38, 2)}
        schema = pa.schema({**kinds, "clinic": pa.string(), "well": pa.bool_()})
        return pa.Table.from_pylist([*usual, *(usual[0] | one for one in odd)], schema)

    @staticmethod
    def session(rows, unit="row"):
        columns = {"age": between(0, 120, whole=True), "count": between(0, 9, whole=True), "paid": between(0.0, 99.0)}
        return Session(
            rows,
            unit=unit if unit == "row" else Unit(unit, rows_at_most=2),
            columns=columns | {"clinic": categories(["a", "b"])},
            budget=Budget(epsilon=20, delta=1e-4),
            ledger="memory",
            dataset="rows",
            principal="ana",
        )

    @staticmethod
    def read(session, asked):
        """What a fit is told, and the rows that it is handed."""
        said = model_jobs._training_said(session, asked | {"epsilon": "9", "delta": "1e-6", "table": "rows"})
        said |= {"event": model_jobs._price_of(said).to_json()}
        own = () if session.unit.is_row else (session.unit.account,)
        numbers = [*said["features"], *([said["target"]] if said["model"] == "linear" else [])]
        names = tuple(dict.fromkeys((*said["features"], said["target"], *own)))
        return said, StoredRows.of(session, "rows").read(names, numbers)

    @pytest.mark.parametrize("unit", ["row", "id"])
    def test_no_value_of_a_row_makes_a_fit_fail(self, unit):
        for rows in (self.rows(size=0), self.rows(size=1), *(self.rows(odd) for odd in ODD)):
            with self.session(rows, unit) as session:
                for asked in FITS.values():
                    said, found = self.read(session, asked)
                    _, (written,) = fit_child._KINDS["train"](said)(found)
                    assert json.loads(written)["rows"]

    def test_classes_are_found_however_a_source_writes_them(self, tmp_path):
        table = pa.Table.from_pylist([{"age": n, "well": n > 4, "kind": int(n > 4)} for n in range(10)])
        csv.write_csv(table, tmp_path / "rows.csv")
        columns = {"age": between(0, 9, whole=True), "kind": categories([0, 1])}
        said = {"unit": "row", "budget": Budget(epsilon=40, delta=1e-4), "ledger": "memory", "dataset": "rows"}
        texts = {"well": categories(["false", "true"])}
        for source, more in ((table, {}), (tmp_path / "rows.csv", texts)):
            with Session(source, columns=columns | more, principal="ana", **said) as session:
                for target in ("well", "kind"):
                    asked, rows = self.read(session, {"model": "logistic", "target": target, "features": ["age"]})
                    none, one = asked["classes"]
                    found = fit_child._labels(rows.column(target), asked["classes"])
                    pairs = zip(rows.column("age").to_pylist(), found, strict=True)
                    assert sorted(pairs) == [(n, one if n > 4 else none) for n in range(10)]


@pytest.mark.parametrize(
    ("column", "classes", "labels"),
    [
        (
            ["1", None, "2", "true", "1.0", "", "1e999", "nan", "x" * 10_000],
            [0, 1],
            [1] + [None] * 3 + [1] + [None] * 4,
        ),
        ([1, 0, None, 2], [0, 1], [1, 0, None, None]),
        ([1.0, 0.0, 0.5, float("nan"), float("inf"), None], [0, 1], [1, 0, None, None, None, None]),
        ([Decimal(1), Decimal("0.0"), Decimal("0.5")], [0, 1], [1, 0, None]),
        ([True, False, None], [False, True], [True, False, None]),
        (["true", "false", "1", None], [False, True], [True, False, None, None]),
        (["a", "A", "1", None], ["a", "1"], ["a", None, "1", None]),
    ],
)
def test_a_label_is_a_declared_class_or_none(column, classes, labels):
    assert fit_child._labels(pa.chunked_array([pa.array(column)]), classes).tolist() == labels


@pytest.mark.long
def test_on_a_declared_version_other_work_is_other_work(tmp_path):
    """What is stored is the answer of exactly what was asked: the same again costs nothing, anything else is read."""
    prepared(tmp_path)
    policy = tmp_path / "one.toml"
    policy.write_text(policy.read_text().replace('ledger = "one.ledger"', 'ledger = "one.ledger"\nversion = "1"'))
    with running(tmp_path) as world:
        client, charges = world.client("analyst"), lambda: world.server.shelf["one"].session.spent.charges
        told = [post(client, "synthetic/releases", SYNTH | {"rows": rows}).json()["work"] for rows in (50, 60, 50)]
        assert [one["told"]["rows"] for one in told] == [50, 60, 50]
        assert told[0] == told[2]
        assert charges() == 2
        for numbers in ([], ["wait_minutes"], []):
            done = post(client, "profile/releases", {"epsilon": "0.5", "numbers": numbers}).json()
            found = client.get(f"/v1/releases/{done['id']}/files/profile.json").json()["columns"]
            kinds = {one["name"]: one["kind"] for one in found}
            assert kinds["wait_minutes"] == ("real" if numbers else "text")
        assert charges() == 4


@pytest.mark.long
class TestKinds:
    def test_a_plan_is_priced_tried_released_and_verified(self, work):
        client = work.client("custodian")
        (plan,) = client.get("/v1/datasets/one/plans").json()["plans"]
        assert (plan["name"], plan["released"], plan["due"]) == ("visits", [], ["once"])
        price = post(client, "plans/estimate", {"plan": "visits"}).json()
        assert price["cost"] == "ε = 0.5"
        assert price["errors"]
        tried = post(client, "plans/dummy", {"plan": "visits"}).json()
        assert tried["made_up"]
        assert tried["told"]["bundle"].endswith("DUMMY")
        before = client.get("/v1/datasets/one/budget").json()["charges"]
        done = post(client, "plans/releases", {"plan": "visits"}).json()
        assert (done["kind"], done["state"], done["progress"]) == ("plan", "done", 1.0)
        files = f"/v1/releases/{done['id']}/files"
        with zipfile.ZipFile(io.BytesIO(client.get(f"{files}/bundle.zip").content)) as bundle:
            assert any(name.endswith("by_clinic.csv") for name in bundle.namelist())
        assert client.get(f"/v1/releases/{done['id']}/verify").json()["outcome"] == "verified"
        again = post(client, "plans/releases", {"toml": plan_text()}).json()
        assert again["state"] == "done"
        assert client.get("/v1/datasets/one/budget").json()["charges"] == before + 1
        other = post(work.client("owner"), "plans/releases", {"plan": "visits"}).json()
        assert other["code"] == "refused"  # It belongs to whoever released it.

    @pytest.mark.parametrize("path", KINDS)
    def test_other_kinds_are_priced_tried_and_released_by_one_charge(self, work, path):
        client, body = work.client("analyst"), KINDS[path]
        price = post(client, f"{path}/estimate", body).json()
        assert price["cost"].startswith("ε = 0.5")
        assert price["affordable"]
        tried = post(client, f"{path}/dummy", body).json()
        assert tried["made_up"], tried
        before = client.get("/v1/datasets/one/budget").json()["charges"]
        asked = body | {"idempotency_key": path}
        done = post(client, f"{path}/releases", asked).json()
        assert done["state"] == "done", done
        assert set(done["work"]["files"]) == set(tried["files"])
        assert post(client, f"{path}/releases", asked).json()["id"] == done["id"]
        assert post(client, f"{path}/releases", asked | {"epsilon": "0.6"}).json()["code"] == "key-used"
        assert client.get("/v1/datasets/one/budget").json()["charges"] == before + 1
        for name in done["work"]["files"]:
            assert client.get(f"/v1/releases/{done['id']}/files/{name}").status_code == 200
        if path == "synthetic":
            csv = client.get(f"/v1/releases/{done['id']}/files/synthetic.csv").text
            assert len(csv.splitlines()) == 51
            content = client.get(f"/v1/releases/{done['id']}/files/synthetic.parquet").content
            assert parquet.read_table(io.BytesIO(content)).num_rows == 50
        assert client.get(f"/v1/releases/{done['id']}/answer.csv").json()["code"] == "not-found"
        assert client.get(f"/v1/releases/{done['id']}/files/nothing.html").json()["code"] == "not-found"

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("training/estimate", TRAIN | {"features": ["satisfied"]}),
            ("training/estimate", TRAIN | {"features": ["age", "AGE"]}),
            ("training/estimate", TRAIN | {"target": "age"}),
            ("training/estimate", TRAIN | {"epsilon": "0"}),
            ("training/releases", TRAIN | {"epsilon": "1e-7"}),
            ("synthetic/estimate", SYNTH | {"rows_per_unit": 3}),
            ("synthetic/estimate", SYNTH | {"method": "merf"}),
            ("synthetic/estimate", {"epsilon": 1}),
            ("profile/estimate", PROFILE | {"numbers": ["nothing"]}),
            ("profile/releases", PROFILE | {"epsilon": "1000"}),
        ],
    )
    def test_what_cannot_be_done_is_refused_and_costs_nothing(self, work, path, body):
        client = work.client("analyst")
        before = client.get("/v1/datasets/one/budget").json()["charges"]
        assert post(client, path, body).json()["code"] in ("invalid", "refused")
        assert client.get("/v1/datasets/one/budget").json()["charges"] == before

    def test_pages_of_releases_run_nothing_and_reach_nothing(self, work):
        done = post(work.client("analyst"), "profile/releases", PROFILE | {"idempotency_key": "page"}).json()
        answer = work.client("analyst").get(f"/v1/releases/{done['id']}/files/profile.html")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox")
        assert "script" not in policy
        assert "default-src 'none'" in policy
        assert "<script" not in answer.text.casefold()
        assert answer.headers["x-content-type-options"] == "nosniff"

    def test_what_others_released_is_not_there(self, work):
        number = post(work.client("custodian"), "plans/releases", {"plan": "visits"}).json()["id"]
        for path in ("", "/verify", "/files/bundle.zip"):
            assert work.client("analyst").get(f"/v1/releases/{number}{path}").status_code == 404
            assert work.client("auditor").get(f"/v1/releases/{number}{path}").status_code == 200


@pytest.mark.long
def test_a_cap_holds_for_every_kind(work):
    for path, body in KINDS.items():
        client = work.client()
        client.headers["authorization"] = f"Bearer {work.token('agent', cap='0.4')}"
        assert post(client, f"{path}/releases", body).json()["code"] == "budget-exceeded", path
        assert client.get("/v1/datasets/one/history").json() == {"entries": []}


class TestPlansThatAreSent:
    """Sources, ledgers, folders and keys of a plan that somebody sends are never looked at."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('source = "visits.csv"', 'source = "/etc/passwd"'),
            ('source = "visits.csv"', 'source = "../../secret.parquet"'),
            ('ledger = "one.ledger"', 'ledger = "/tmp/other.ledger"'),
            ("[release]", '[output]\nfolder = "/tmp"\nkey = "/etc/ssl/private.key"\n\n[release]'),
            ('source = "visits.csv"', 'postgres = { table = "t", dsn_file = "/etc/shadow" }'),
        ],
    )
    def test_no_file_of_theirs_is_opened(self, work, monkeypatch, old, new):
        import builtins

        opened = []
        kept, text = builtins.open, plan_text().replace(old, new)
        assert text != plan_text()

        def watched(file, *more, **named):
            opened.append(str(file))
            return kept(file, *more, **named)

        monkeypatch.setattr(builtins, "open", watched)
        named = text.replace('name = "visits"', 'name = "sent"')
        found = post(work.client("custodian"), "plans/estimate", {"toml": named}).json()
        assert "ε" in found.get("cost", ""), found
        assert not [one for one in opened if re.search(r"passwd|secret|other\.ledger|private|shadow", one)]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('dataset = "one"', 'dataset = "two"'),
            ("epsilon = 20", "epsilon = 2000"),
            ("high = 120", "high = 12"),
            ("[tables.visits]", "[tables.others]"),
            ('column = "row"', 'column = "patient"'),
            ("[[publish]]", '[tables.more]\nsource = "x.csv"\n\n[[publish]]'),
        ],
    )
    def test_a_plan_that_declares_the_data_otherwise_is_refused(self, tmp_path, old, new):
        prepared(tmp_path)
        policy = read_policy(tmp_path / "one.toml")
        assert read_plan_text(plan_text(), policy).policy is policy
        text = plan_text().replace(old, new)
        assert text != plan_text()
        with pytest.raises(InvalidParameter, match=r"policy of the data set|\[tables"):
            read_plan_text(text, policy)

    def test_series_of_totals_so_far_are_refused(self, work):
        running_plan = (
            plan_text()
            + '\n[[running]]\nname = "so_far"\nsource = "visits"\nday = "age"\nfirst = "2025-01-01"\ndays = 9\n'
        )
        assert post(work.client("custodian"), "plans/estimate", {"toml": running_plan}).json()["code"] in (
            "refused",
            "invalid",
        )

    def test_only_who_holds_the_data_releases_plans(self, work):
        for role in ("analyst", "agent", "auditor", "reader"):
            assert post(work.client(role), "plans/releases", {"plan": "visits"}).status_code == 403


def everything(client, number):
    """All that can be asked about a job that runs, without how much of its time is gone."""
    paths = ["datasets/one", "log", f"releases/{number}?wait=0", f"releases/{number}/files/profile.html"]
    paths += [f"datasets/one/{name}" for name in ("budget", "history", "ledger", "releases", "plans")]
    return [re.sub(r'"progress":[0-9.e-]+', "", client.get(f"/v1/{path}").text) for path in paths]


def watched_job(folder, monkeypatch, path, body, rounds):
    """Let the rounds of a job end one after the other, and compare all that can be asked meanwhile."""
    plan = prepared(folder)
    turns, run_all, clock = [Event() for _ in range(rounds)], WorkerEngine.run_all, SlowClock()
    waiting, done = iter(turns), []

    def slow(self, *arguments, **named):
        assert next(waiting).wait(240)
        done.append(run_all(self, *arguments, **named))
        return done[-1]

    monkeypatch.setattr(WorkerEngine, "run_all", slow)
    with running(folder, names=("one",), until=clock, plans=(plan,)) as world:
        client = world.client("owner")
        number = client.post(f"/v1/datasets/one/{path}/releases?wait=0", json=body).json()["id"]
        _, known = clock.reached.get(timeout=240)
        eventually(lambda: client.get("/v1/datasets/one/budget").json()["charges"], 1)
        seen = [everything(client, number)]
        for turn in turns:
            turn.set()
            eventually(lambda: len(done), turns.index(turn) + 1)
            seen.append(everything(client, number))
        assert known.wait(240)
        seen.append(everything(client, number))
        clock.go.put(None)
        assert client.get(f"/v1/releases/{number}?wait=60").json()["state"] == "done"
        assert everything(client, number) != seen[0]
    return seen


@pytest.mark.long
class TestNothingTellsHowFarAJobIs:
    @pytest.mark.parametrize(("path", "body", "rounds"), [("profile", PROFILE, 2), ("plans", {"plan": "visits"}, 1)])
    def test_all_that_can_be_asked_stays_as_it_was(self, tmp_path, monkeypatch, path, body, rounds):
        """A profile asks in rounds: a charge of the second would tell when the first was read."""
        seen = watched_job(tmp_path, monkeypatch, path, body, rounds)
        assert all(one == seen[0] for one in seen)

    def test_a_charge_for_each_round_is_found(self, tmp_path, monkeypatch):
        def by_rounds(job, served, session):
            plan = plan_profile(session, idempotency_key=job.id, **job.details)
            return _profiled(plan).to_json()

        monkeypatch.setattr(work_kinds, "run_profile", by_rounds)
        seen = watched_job(tmp_path, monkeypatch, "profile", PROFILE, 2)
        assert seen[-1] != seen[0]

    def test_a_list_of_plans_by_answers_is_found(self, tmp_path, monkeypatch):
        def by_answers(plan, stands):
            return [one.label for one in stands.released], list(stands.due)

        monkeypatch.setattr(plan_jobs, "_due", by_answers)
        seen = watched_job(tmp_path, monkeypatch, "plans", {"plan": "visits"}, 1)
        assert seen[-1] != seen[0]


@pytest.mark.long
def test_a_fit_that_overruns_is_killed_charged_and_told_constantly(tmp_path, monkeypatch):
    prepared(tmp_path)
    started = []
    begin = fits._started

    def watched(*arguments):
        started.append(begin(*arguments))
        return started[-1]

    monkeypatch.setattr(fits, "_started", watched)
    monkeypatch.setattr(
        model_jobs, "fit_elsewhere", lambda *said, **named: fit_elsewhere(*said, **named | {"seconds": 0.01})
    )
    with running(tmp_path, names=("one",)) as world:
        client = world.client("analyst")
        told = post(client, "synthetic/releases", SYNTH).json()
        assert told["code"] == "answer-failed"
        assert client.get("/v1/datasets/one/budget").json()["charges"] == 1
        assert [process.returncode for process in started] == [-9]
        (job,) = client.get("/v1/datasets/one/releases").json()["releases"]
        assert (job["state"], job["work"]) == ("failed", None)


@pytest.mark.long
def test_a_job_that_was_paid_when_the_server_ended_is_paid_once(tmp_path):
    """The ledger has what came of it, under the key of the job."""
    prepared(tmp_path)
    with running(tmp_path, names=("one",)) as world:
        client = world.client("analyst")
        done = post(client, "profile/releases", PROFILE | {"idempotency_key": "k"}).json()
        page = client.get(f"/v1/releases/{done['id']}/files/profile.html").text
        with world.server.state.changing() as database:
            database.execute("UPDATE jobs SET state = 'running', answer = NULL WHERE id = ?", (done["id"],))
    with running(tmp_path, names=("one",)) as world:
        client = world.client("analyst")
        again = client.get(f"/v1/releases/{done['id']}?wait=60").json()
        assert again["state"] == "done"
        assert client.get(f"/v1/releases/{done['id']}/files/profile.html").text == page
        assert client.get("/v1/datasets/one/budget").json()["charges"] == 1


class TestFits:
    @pytest.mark.long
    def test_a_fit_spends_exactly_what_was_paid(self, work):
        """The process finds the price again by itself, and fits nothing for another one."""
        served = work.server.shelf["one"]
        rows = model_jobs.made_up_table(served, "visits")
        said = model_jobs._training_said(served.session, TRAIN) | {"do": "train"}
        right = model_jobs._price_of(said).to_json()
        other = model_jobs._price_of(said | {"epsilon": "3"}).to_json()
        _, (model,) = fit_elsewhere(said | {"event": right}, rows, seconds=120, memory=1 << 30)
        assert json.loads(model)["features"] == ["age"]
        with pytest.raises(AnswerFailed):
            fit_elsewhere(said | {"event": other}, rows, seconds=120, memory=1 << 30)

    @pytest.mark.long
    def test_whatever_goes_wrong_is_one_constant_error(self, work):
        rows = model_jobs.made_up_table(work.server.shelf["one"], "visits")
        with pytest.raises(AnswerFailed) as failed:
            fit_elsewhere({"do": "nothing"}, rows, seconds=60, memory=1 << 30)
        assert str(failed.value) == str(AnswerFailed())


class TestTimes:
    def test_each_kind_has_its_own_time(self, tmp_path):
        prepared(tmp_path)
        policy = read_policy(tmp_path / "one.toml")
        shelf = open_shelf([policy], {"one": 5.0, "one:plan": 20.0})
        try:
            served = shelf["one"]
            assert [served.seconds_of(kind) for kind in ("question", "plan", "profile", "synth")] == [5, 20, 60, 300]
            assert served.public_facts()["answer_times"]["plan"] == 20
            for kind, seconds in (("question", 4.0), ("plan", 16.0)):
                assert served.asked_by("ana", kind=kind)._desk.seconds == seconds
        finally:
            shelf.close()

    @pytest.mark.parametrize("said", [{"one:nothing": 5.0}, {"two:plan": 5.0}, {"one:plan": 0.1}])
    def test_a_time_of_nothing_is_refused(self, tmp_path, said):
        prepared(tmp_path)
        with pytest.raises(InvalidParameter):
            open_shelf([read_policy(tmp_path / "one.toml")], {"one": 5.0} | said)
