"""What was ever stored is read, and written again to the letter: vectors from before names in the code changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import torch
from format_worlds import (
    ASKED,
    FORMATS,
    PEOPLE,
    Mixed,
    events,
    ledger_entries,
    methods,
    report_keys,
    schema_names,
    session,
    training_plans,
    training_run,
)
from safetensors import safe_open

from discreet import errors, privacy, synth
from discreet.adaptive import TruncatedHistogram
from discreet.cli.exits import KINDS, Code, kind_of
from discreet.errors import InvalidParameter
from discreet.learn import sklearn
from discreet.learn.sklearn.base import PrivateEstimator
from discreet.learn.torch import load_weights
from discreet.learn.training import TrainingPlan, training_plan
from discreet.learn.training.stream_plan import StreamPlan
from discreet.ledger import Ledger, look
from discreet.privacy import events as events_module
from discreet.query import ReleaseTable
from discreet.query.ast import Query
from discreet.query.plan import fingerprint
from discreet.query.plan.draft import Noising
from discreet.release import verify_bundle
from discreet.stored_names import stored_definitions, stored_names

torch.set_num_threads(1)
SCHEMAS = Path(__file__).parents[1] / "docs" / "schema"


def vector(name):
    return json.loads((FORMATS / name).read_text(encoding="utf-8"))


def copied(name, to):
    """Copy a vector to where it may be written, as private as ledgers must be."""
    shutil.copytree(FORMATS / name, to)
    for path in [to, *to.rglob("*")]:
        os.chmod(path, 0o700 if path.is_dir() else 0o600)
    return to


def check_fingerprints(asked):
    listed = vector("plans.json")
    assert len(listed) > 60
    plans = {name: asked["uid"].sql(sql, epsilon=1) for name, sql in ASKED.items()}
    for one in listed:
        if "together" in one:
            found = asked["uid"].batch(plans, idempotency_key=one["together"], purpose="a release")
        else:
            found = asked[one["unit"]].sql(one["sql"], **one["offer"])
        assert found.fingerprint == one["fingerprint"], one


class TestPlans:
    """A fingerprint finds the answer that was paid for."""

    def test_every_plan_has_the_fingerprint_that_it_had(self):
        with session() as by_unit, session(unit="row") as by_row:
            check_fingerprints({"uid": by_unit, "row": by_row})

    def test_paid_answers_are_found_again_and_nothing_is_charged(self, tmp_path):
        home = copied("ledger", tmp_path / "ledger")
        before, told = len(look(home / "formats.ledger").entries()), vector("ledger/answers.json")
        with session(home / "formats.ledger") as asked:
            for sql, answer in told["alone"].items():
                assert asked.sql(sql, epsilon=1).release().to_json() == answer
            plans = {name: asked.sql(sql, epsilon="0.5") for name, sql in ASKED.items()}
            joint = asked.batch(plans, idempotency_key="joint", purpose="a release").release()
            assert {name: table.to_json() for name, table in joint.tables.items()} == told["joint"]
        assert len(look(home / "formats.ledger").entries()) == before

    def test_stored_answers_are_written_again_alike(self):
        told = vector("ledger/answers.json")
        for text in [*told["alone"].values(), *told["joint"].values()]:
            assert ReleaseTable.from_json(text).to_json() == text


class TestEvents:
    """What was spent, by name and version."""

    def test_every_event_is_written_as_it_was(self):
        assert [event.to_json() for event in events()] == vector("events.json")

    def test_every_event_is_read_as_it_was(self):
        assert [privacy.from_json(text) for text in vector("events.json")] == events()

    def test_a_ledger_writes_the_entries_that_it_wrote(self):
        assert ledger_entries() == vector("ledger_entries.json")

    def test_a_ledger_and_all_its_events_are_verified(self):
        entries = look(FORMATS / "ledger" / "formats.ledger").entries()
        charges = [entry for entry in entries if entry.kind == "charge"]
        assert len(charges) >= 7
        assert all(json.loads(charge.event.to_json()) == charge.content["event"] for charge in charges)


class TestReleases:
    """A signed bundle, and the ledger that paid for it."""

    def test_a_bundle_is_what_the_ledger_and_the_signature_say(self):
        home = FORMATS / "bundle"
        found = verify_bundle(home / "bundle", ledger=home / "hospital.ledger", key=home / "signing.key.pub")
        *checks, texts = found.checks
        assert len(checks) >= 6
        assert all(check.ok and not check.skipped for check in checks), str(found)
        # Its texts follow from the plan too, but are worded better by now: that is told, and is no fault.
        assert (found.outcome, texts.status) == ("matches the ledger", "not checked")
        assert "has format 2, whose texts" in texts.skipped


class TestModels:
    """Models of synthetic data."""

    @pytest.mark.parametrize("name", methods())
    def test_a_model_is_read_and_written_again_alike(self, name, tmp_path):
        path = FORMATS / "models" / f"{name}.safetensors"
        model = synth.load(path)
        model.sample(5)
        model.save(tmp_path / path.name)
        assert content(tmp_path / path.name) == content(path)


_EPSILON = re.compile(r'(?<="epsilon": )\d+\.\d+')


def rounded(head):
    """A head whose ε has 8 digits: what comes after them follows the version of NumPy and SciPy."""
    return {name: _EPSILON.sub(lambda found: f"{float(found[0]):.8g}", text) for name, text in head.items()}


def content(path):
    """Head and arrays of a safetensors file, in whatever order."""
    with safe_open(str(path), framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        return rounded(file.metadata()), {
            name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()
        }


class TestTraining:
    """Plans, weights and checkpoints of training."""

    def test_plans_are_written_and_read_as_they_were(self):
        stored = vector("training_plans.json")
        assert [plan.to_json() for plan in training_plans()] == stored
        kinds = [StreamPlan if "stream" in json.loads(text) else TrainingPlan for text in stored]
        assert [kind.from_json(text) for kind, text in zip(kinds, stored, strict=True)] == training_plans()

    def test_weights_come_with_the_promise_that_was_made(self, tmp_path):
        path = FORMATS / "run" / "weights.safetensors"
        model = Mixed()
        promise = load_weights(model, path)
        assert TrainingPlan.from_json(promise.plan).steps == 10
        head, arrays = content(path)
        assert arrays.keys() == model.state_dict().keys()
        with training_run(Mixed()) as private:
            private.export(tmp_path / "again.safetensors")
        again, _ = content(tmp_path / "again.safetensors")
        assert again == head

    def test_an_interrupted_run_goes_on_where_it_was(self, tmp_path):
        home = copied("run", tmp_path / "run")
        with Ledger.open(home / "people.ledger", PEOPLE) as ledger:
            with training_run(Mixed(), session=ledger, checkpoint=home / "run", checkpoint_every=2) as private:
                assert (private.spent.steps, private.steps_taken) == (4, 4)
                private.fit(progress=False)
                assert private.spent.event == private.plan.event
            assert sum(entry.kind == "charge" for entry in ledger.history()) == 1


class TestSchemas:
    """Names in the schemas that are published."""

    def test_titles_and_definitions_have_the_names_that_they_had(self):
        kept = vector("schema_names.json")  # Commands may be added; docs/schema/cli has what they answer.
        assert {name: names for name, names in schema_names().items() if name in kept} == kept

    def test_reports_have_the_keys_that_they_had(self):
        assert report_keys() == vector("report_keys.json")

    def test_a_definition_without_a_published_name_is_refused(self):
        schema = {"title": "Old", "$defs": {"New": {"title": "New"}}, "items": {"$ref": "#/$defs/New"}}
        with pytest.raises(TypeError, match="New"):
            stored_definitions(schema, {})
        renamed = stored_definitions(schema, {type("New", (), {}): "Known"})
        assert renamed == {"title": "Old", "$defs": {"Known": {"title": "Known"}}, "items": {"$ref": "#/$defs/Known"}}


class TestWords:
    """Words that scripts and ledgers keep."""

    def test_errors_have_the_kinds_that_they_had(self):
        own = {name: kind_of(getattr(errors, name).__new__(getattr(errors, name))) for name in errors.__all__}
        assert own == vector("error_kinds.json")["own"]
        others = {
            "usage": FileNotFoundError(),
            "refused": OSError(),
            "bug": ValueError(),
            "interrupted": KeyboardInterrupt(),
        }
        assert {word: kind_of(error) for word, error in others.items()} == {word: word for word in others}
        assert {str(int(code)): code.word for code in Code} == vector("error_kinds.json")["codes"]

    def test_fits_are_called_in_ledgers_what_they_were_called(self):
        known = {getattr(sklearn, name) for name in sklearn.__all__}
        found = {vars(kind)["_stored_as"]: kind for kind in known if issubclass(kind, PrivateEstimator)}
        assert set(vector("fits.json")) <= set(found)  # Estimators may be added; each says its own name.
        for name, kind in found.items():
            assert kind.__new__(kind)._purpose() == f"fit of {name}"
            mine = type("Mine", (kind,), {})
            assert mine.__new__(mine)._purpose() == "fit of Mine"


@contextmanager
def renamed(kinds):
    """Let classes be called otherwise for a while."""
    names = {kind: kind.__name__ for kind in kinds}
    try:
        for kind in names:
            kind.__name__ = "Renamed"
        yield
    finally:
        for kind, name in names.items():
            kind.__name__ = name


class TestTables:
    """Tables of stored names say all of a class, and nothing twice."""

    def test_a_field_that_is_not_listed_or_listed_twice_is_refused(self):
        for line in ("Pair: left", "Pair: left left right", "Pair: left right more", "Pair: left right=left"):
            with pytest.raises(TypeError):
                stored_names({Pair: line})
        with pytest.raises(TypeError, match="tag"):
            stored_names({Pair: "Pair: left right", Other: "Pair: ONE"})
        with pytest.raises(TypeError):
            stored_names({Other: "Other: ONE TWO"})

    def test_what_was_renamed_is_stored_as_before(self):
        name = stored_names({Pair: "Couple: first=left second=right?"})[Pair]
        assert (name.tag, dict(name.values(Pair(1, 2)))) == ("Couple", {"first": 1, "second": 2})
        assert dict(name.values(Pair(1, None))) == {"first": 1}
        assert name.arguments({"first": 1, "second": 2}) == {"left": 1, "right": 2}
        assert name.arguments({"first": 1}) is None
        assert stored_names({Other: "Other: UN=ONE"})[Other].member(Other.ONE) == "UN"

    def test_every_class_of_a_question_has_a_stored_name(self):
        """Whatever a question or its noise may hold by its types is in the table of fingerprints."""
        left, seen = [Query, Noising], set()
        while left:
            kind = left.pop()
            left += [part for part in get_args(kind) if part not in seen]
            if isinstance(kind, type) and not get_args(kind):
                seen.add(kind)
                hints = get_type_hints(kind, localns={"TruncatedHistogram": TruncatedHistogram})
                left += [part for part in hints.values() if is_dataclass(kind) and part not in seen]
        ours = {kind for kind in seen if is_dataclass(kind) or issubclass(kind, Enum)}
        assert len(ours) > 35
        assert ours <= fingerprint._NAMES.keys() | fingerprint._of_selection().keys()

    def test_nothing_that_is_stored_follows_a_class_that_is_renamed(self):
        kinds = [*fingerprint._NAMES, *fingerprint._of_selection(), *events_module._NAMES, *training_plan._RULES]
        kinds += [TrainingPlan, StreamPlan, *KINDS, *(getattr(sklearn, name) for name in sklearn.__all__)]
        with session() as by_unit, session(unit="row") as by_row, renamed(kinds):
            TestEvents().test_every_event_is_written_as_it_was()
            TestTraining().test_plans_are_written_and_read_as_they_were()
            TestWords().test_errors_have_the_kinds_that_they_had()
            TestWords().test_fits_are_called_in_ledgers_what_they_were_called()
            check_fingerprints({"uid": by_unit, "row": by_row})

    def test_every_event_has_a_stored_name(self):
        # A dataclass with slots is made twice, and the first one lingers: what counts is what its module has.
        made = {(kind.__module__, kind.__name__) for kind in privacy.Event.__subclasses__()}
        ours = {getattr(sys.modules[module], name) for module, name in made if module.startswith("discreet.")}
        assert ours == set(events_module._NAMES)

        class Odd(privacy.Event):
            """Nobody wrote down how it is stored."""

        with pytest.raises(InvalidParameter, match="Odd is no event"):
            Odd().to_json()

    def test_a_plan_refuses_what_has_no_stored_name(self):
        for odd in (Pair(1, 2), Other.ONE, object()):
            with pytest.raises(InvalidParameter, match="a plan cannot hold"):
                fingerprint.canonical(odd)


@dataclass(frozen=True)
class Pair:
    """Two values."""

    left: Any
    right: Any


class Other(Enum):
    """One member."""

    ONE = 1
