"""What was ever stored is read, and written again to the letter: vectors from before names in the code changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from format_worlds import (
    ASKED,
    FORMATS,
    PEOPLE,
    Mixed,
    events,
    methods,
    schema_names,
    session,
    training_plans,
    training_run,
)
from safetensors import safe_open

from discreet import privacy, synth
from discreet.learn.torch import load_weights
from discreet.learn.training import StreamPlan, TrainingPlan
from discreet.ledger import Ledger, look
from discreet.query import ReleaseTable
from discreet.release import verify_bundle

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


class TestPlans:
    """A fingerprint finds the answer that was paid for."""

    def test_every_plan_has_the_fingerprint_that_it_had(self):
        with session() as by_unit, session(unit="row") as by_row:
            asked = {"uid": by_unit, "row": by_row}
            listed = [one for one in vector("plans.json") if "sql" in one]
            assert len(listed) >= 60
            for one in listed:
                plan = asked[one["unit"]].sql(one["sql"], **one["offer"])
                assert plan.fingerprint == one["fingerprint"], one["sql"]
            plans = {name: by_unit.sql(sql, epsilon=1) for name, sql in ASKED.items()}
            for one in vector("plans.json"):
                if "together" in one:
                    joint = by_unit.together(plans, key=one["together"], purpose="a release")
                    assert joint.fingerprint == one["fingerprint"]

    def test_paid_answers_are_found_again_and_nothing_is_charged(self, tmp_path):
        home = copied("ledger", tmp_path / "ledger")
        before, told = len(look(home / "formats.ledger").entries()), vector("ledger/answers.json")
        with session(home / "formats.ledger") as asked:
            for sql, answer in told["alone"].items():
                assert asked.sql(sql, epsilon=1).release().to_json() == answer
            plans = {name: asked.sql(sql, epsilon="0.5") for name, sql in ASKED.items()}
            joint = asked.together(plans, key="joint", purpose="a release").release()
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
        # Its texts follow from the plan too, but may be worded better by now.
        checks = [check for check in found.checks if not check.what.startswith("everything else")]
        assert len(checks) >= 6
        assert all(check.ok and not check.skipped for check in checks), str(found)


class TestModels:
    """Models of synthetic data."""

    @pytest.mark.parametrize("name", methods())
    def test_a_model_is_read_and_written_again_alike(self, name, tmp_path):
        path = FORMATS / "models" / f"{name}.safetensors"
        model = synth.load(path)
        model.sample(5)
        model.save(tmp_path / path.name)
        assert content(tmp_path / path.name) == content(path)


def content(path):
    """Head and arrays of a safetensors file, in whatever order."""
    with safe_open(str(path), framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        return file.metadata(), {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


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
        assert schema_names() == vector("schema_names.json")
