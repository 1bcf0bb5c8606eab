"""The API answers what a session would: facts, prices, made-up answers, releases, budget and history."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from jsonschema import Draft202012Validator
from server_world import COUNT, GROUPED, SAVE, prepare, running

from discreet.server.app import openapi
from discreet.server.endpoints import ENDPOINTS

OTHER_KINDS = ("/plans/", "/profile/", "/synthetic/", "/training/", "/files/", "/verify")


def validate(document, model):
    schema = {"$ref": f"#/components/schemas/{model.__name__}", "components": openapi(ENDPOINTS)["components"]}
    Draft202012Validator(schema).validate(document)


@pytest.mark.long
def test_the_whole_way_of_a_question(world):
    client = world.client("analyst")
    assert client.get("/v1/datasets").json() == {"datasets": ["one"]}
    facts = client.get("/v1/datasets/one").json()
    assert [column["name"] for column in facts["tables"][0]["columns"]][:2] != []
    price = client.post("/v1/datasets/one/estimate", json=GROUPED).json()
    assert (price["cost"], price["affordable"]) == ("ε = 0.1", True)
    assert "±" in price["errors"]["n"]
    before = client.get("/v1/datasets/one/budget").json()["charges"]
    dummy = client.post("/v1/datasets/one/dummy", json=GROUPED).json()
    assert "DUMMY" in dummy["notes"][0]
    assert client.get("/v1/datasets/one/budget").json()["charges"] == before
    released = client.post("/v1/datasets/one/releases", json=GROUPED).json()
    assert released["state"] == "done"
    assert released["answer"]["rows"] == 5
    assert client.get("/v1/datasets/one/budget").json()["charges"] == before + 1
    entry = client.get("/v1/datasets/one/history").json()["entries"][0]
    assert (entry["who"], entry["purpose"]) == ("analyst", GROUPED["sql"])
    assert client.get(f"/v1/releases/{released['id']}").json() == released


@pytest.mark.long
def test_answers_are_what_the_document_says(world):
    client = world.client("owner")
    number = client.post("/v1/datasets/one/releases", json=GROUPED).json()["id"]
    token = client.post("/v1/tokens", json={"scopes": ["read"], "days": 0.01}).json()["secret"].split("_")[1]
    said = {
        "/v1/people": {"name": "pat", "role": "reader", "datasets": ["one"]},
        "/v1/people/{name}": {"grant": ["two"]},
        "/v1/tokens": {"scopes": ["read"], "days": 0.01},
        "/v1/device": {},
    }
    for endpoint in ENDPOINTS:
        if endpoint.operation in ("approval", "approve", "withdraw") or endpoint.path == "/v1/device/token":
            continue  # What waits for somebody is in test_server_approvals.py.
        if any(part in endpoint.path for part in OTHER_KINDS):
            continue  # Jobs of other kinds are in test_server_work.py.
        question = client.post("/v1/datasets/one/questions", json=SAVE).json()["id"]
        named = token if "/tokens/" in endpoint.path else number
        path = endpoint.path.format(dataset="one", id=named, format="json", name="analyst", question=question)
        usual = SAVE if endpoint.operation == "save" else GROUPED
        body = None if endpoint.body is None else said.get(endpoint.path, usual)
        answer = client.request(endpoint.method, path, json=body)
        assert answer.status_code == 200, (endpoint.path, answer.text)
        if endpoint.answer is not None:
            validate(answer.json(), endpoint.answer)


@pytest.mark.long
def test_one_answer_in_four_formats(world):
    client = world.client("analyst")
    number = client.post("/v1/datasets/one/releases", json=GROUPED).json()["id"]
    path = f"/v1/releases/{number}/answer"
    values = client.get(f"{path}.json").json()["columns"][1]["values"]
    arrow = pa.ipc.open_stream(client.get(f"{path}.arrow").content).read_all()
    assert arrow.equals(parquet.read_table(io.BytesIO(client.get(f"{path}.parquet").content)))
    assert arrow["n"].to_pylist() == values
    assert [int(line.split(",")[1]) for line in client.get(f"{path}.csv").text.splitlines()[1:]] == values
    assert client.get(f"{path}.xlsx").json()["code"] == "not-found"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"sql": "SELECT age FROM visits", "epsilon": 1}, "refused"),
        ({"sql": "SELECT COUNT(*) AS n FROM nowhere", "epsilon": 1}, "refused"),
        ({"sql": COUNT["sql"]}, "invalid"),
        ({"sql": COUNT["sql"], "epsilon": 1, "rho": 1}, "invalid"),
        ({"sql": COUNT["sql"], "epsilon": -1}, "invalid"),
        ({"sql": COUNT["sql"], "epsilon": "1e999999999"}, "invalid"),
        ({"sql": COUNT["sql"], "epsilon": "nan"}, "invalid"),
        ({"sql": COUNT["sql"], "epsilon": 1, "more": 1}, "invalid"),
        ({"sql": "x" * 20_001, "epsilon": 1}, "invalid"),
        ({"sql": COUNT["sql"], "epsilon": "0.000001"}, "refused"),
        ({"sql": COUNT["sql"], "epsilon": 21}, "budget-exceeded"),
        ([], "invalid"),
    ],
)
def test_what_is_refused_has_one_shape_and_costs_nothing(world, asked, code):
    client = world.client("analyst")
    before = client.get("/v1/datasets/one/budget").json()
    answer = client.post("/v1/datasets/one/releases", json=asked)
    assert answer.json()["code"] == code
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code == answer.json()["status"]
    fields = {"type", "title", "status", "code", "detail", "line", "column", "excerpt", "caret", "reason", "way_out"}
    assert set(answer.json()) == fields
    assert client.get("/v1/datasets/one/budget").json() == before


def test_a_refused_question_has_its_place(world):
    asked = {"sql": "SELECT COUNT(*) AS n\nFROM visits WHERE random() > 1", "epsilon": 1}
    told = world.client("analyst").post("/v1/datasets/one/estimate", json=asked).json()
    assert told["line"] == 2
    assert told["excerpt"]


@pytest.mark.long
def test_one_key_is_charged_once_however_often_and_over_restarts(tmp_path):
    """C23. The answer is the same to the last byte, also where the state of the server is lost."""
    prepare(tmp_path)
    asked, seen = COUNT | {"idempotency_key": "mine"}, set()
    for often in (100, 100, 1):
        if often == 1:  # The ledger alone knows.
            for file in tmp_path.glob("server.db*"):
                file.unlink()
        with running(tmp_path, names=("one",)) as world:
            client = world.client("analyst")
            for _ in range(often):
                answer = client.post("/v1/datasets/one/releases", json=asked).json()
                seen.add(json.dumps(answer["answer"], sort_keys=True))
            assert client.get("/v1/datasets/one/budget").json()["charges"] == 1
            other = client.post("/v1/datasets/one/releases", json=asked | {"epsilon": "0.2"})
            assert other.json()["code"] == "key-used"
    assert len(seen) == 1


@pytest.mark.long
def test_a_key_of_another_account_is_another_key(world):
    asked = COUNT | {"idempotency_key": "shared"}
    first, second = (
        world.client(who).post("/v1/datasets/one/releases", json=asked).json() for who in ("analyst", "owner")
    )
    assert first["id"] != second["id"]
    assert world.client("analyst").get("/v1/datasets/one/history").json()["entries"][0]["who"] == "analyst"


@pytest.mark.long
def test_a_job_that_was_queued_when_the_server_ended_is_answered_by_the_next(tmp_path):
    prepare(tmp_path)
    with running(tmp_path, names=("one",), until=lambda moment, known: known.wait(240)) as world:
        world.server.jobs._stopping = True  # Nobody takes it.
        number = world.client("analyst").post("/v1/datasets/one/releases?wait=0", json=COUNT).json()["id"]
    with running(tmp_path, names=("one",)) as world:
        answer = world.client("analyst").get(f"/v1/releases/{number}?wait=60").json()
        assert answer["state"] == "done"
        assert world.client("analyst").get("/v1/datasets/one/budget").json()["charges"] == 1


def test_the_document_names_every_endpoint_and_no_budget_can_be_reset(world):
    document = world.client().get("/v1/openapi.json").json()
    served = {
        (route.path, method.lower())
        for route in world.app._app.routes
        for method in route.methods - {"HEAD"}
        if route.path.startswith(("/v1", "/metrics")) and route.path != "/v1/openapi.json"
    }
    assert {(path, method) for path, found in document["paths"].items() for method in found} == served
    changing = {endpoint.operation for endpoint in ENDPOINTS if endpoint.method != "GET"}
    others = {"plan estimate", "plan release", "approve", "withdraw", "save", "people", "tokens", "device"}
    assert changing == {"estimate", "dummy", "release"} | others
