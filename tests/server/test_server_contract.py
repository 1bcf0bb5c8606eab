"""The OpenAPI document is the truth: whatever is sent, as anybody, gets an answer that the document describes."""

from __future__ import annotations

import re
from copy import deepcopy

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup
from searching import searched
from server_world import COUNT, GROUPED, HOST

from discreet.server import app as server_app
from discreet.server.accounts import AccountRole
from discreet.server.app import openapi
from discreet.server.datasets import DatasetShelf
from discreet.server.endpoints import ENDPOINTS

load_all_checks()
NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "allow_header_conformance",
)
ROLES = [None, *(role.value for role in AccountRole)]
QUESTIONS = [COUNT["sql"], GROUPED["sql"], "SELECT AVG(age) AS a FROM visits WHERE age > 30", "SELECT age FROM visits"]
QUICK = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]


def checks():
    return [CHECKS.get_one(name) for name in NAMES]


@st.composite
def sent(draw, operations, number):
    """A request at some endpoint, right or wrong by the document; often about what is there, and a real question."""
    operation = draw(st.sampled_from(operations))
    there = {"dataset": "one", "id": number}
    held = {one: said for one, said in there.items() if "{" + one + "}" in operation.path}
    mode = draw(st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
    about = {"path_parameters": held} if held and draw(st.booleans()) else {}
    case = draw(operation.as_strategy(generation_mode=mode, **about))
    if mode is GenerationMode.POSITIVE and isinstance(case.body, dict) and "sql" in case.body and draw(st.booleans()):
        case.body = COUNT | {"sql": draw(st.sampled_from(QUESTIONS))}
    return case, draw(st.sampled_from(ROLES))


def search(world, document, examples):
    """Send requests, and compare every answer with the document."""
    number = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()["id"]
    # Whose token is sent is decided below: without this, schemathesis would leave it out, too, or send another.
    said = {key: value for key, value in document.items() if key != "security"}
    config = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}})
    schema = schemathesis.openapi.from_dict(said, config=config)
    schema.app = world.app
    operations = [found.ok() for found in schema.get_all_operations()]
    checks = [CHECKS.get_one(name) for name in NAMES]
    settled = settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=QUICK, phases=[Phase.generate]
    )

    @seed(searched(19))
    @settled
    @given(sent(operations, number))
    def tried(found):
        case, role = found
        headers = {} if role is None else {"authorization": f"Bearer {world.tokens[role]}"}
        case.call_and_validate(base_url=HOST, headers=headers, checks=checks)

    tried()


@pytest.mark.parametrize(
    "examples",
    [pytest.param(60, marks=pytest.mark.long), pytest.param(3_000, marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_every_answer_is_one_that_the_document_describes(world, examples):
    search(world, openapi(ENDPOINTS), examples)


class TestMistakes:
    """Each of these is found by the search above."""

    def test_a_status_that_is_not_in_the_document(self, world):
        document = deepcopy(openapi(ENDPOINTS))
        for found in document["paths"].values():
            for operation in found.values():
                del operation["responses"]["401"]
        with pytest.raises(FailureGroup, match="Undocumented status code"):
            search(world, document, 60)

    def test_a_field_that_is_not_in_the_document(self, world):
        document = deepcopy(openapi(ENDPOINTS))
        document["components"]["schemas"]["ProblemModel"]["properties"]["status"] = {"type": "string"}
        with pytest.raises(FailureGroup, match="violates schema"):
            search(world, document, 60)

    def test_a_content_type_that_is_not_in_the_document(self, world, monkeypatch):
        monkeypatch.setattr(server_app, "MEDIA_TYPE", "application/json")
        with pytest.raises(FailureGroup, match="Undocumented Content-Type"):
            search(world, openapi(ENDPOINTS), 60)

    def test_a_failure_that_nobody_foresaw(self, world, monkeypatch):
        def failing(*_):
            raise RuntimeError

        monkeypatch.setattr(DatasetShelf, "__iter__", failing)
        document = deepcopy(openapi(ENDPOINTS))
        document["paths"] = {path: document["paths"][path] for path in ("/v1/me", "/v1/datasets")}  # These iterate.
        with pytest.raises(FailureGroup, match="Server error"):
            search(world, document, 60)


def test_the_document_is_exact(world):
    """Path parameters, ranges of numbers, formats, statuses, and that every operation needs a token."""
    document = openapi(ENDPOINTS)
    assert document["security"] == [{"token": []}]
    for path, found in document["paths"].items():
        for operation in found.values():
            named = {one["name"]: one for one in operation.get("parameters", ())}
            assert {name for name, one in named.items() if one["in"] == "path"} == set(re.findall(r"\{(\w+)\}", path))
            assert "default" not in operation["responses"]
            assert {"200", "401", "403", "429", "500"} <= set(operation["responses"])
    listed = document["paths"]["/v1/datasets/{dataset}/history"]["get"]["parameters"]
    assert {one["name"]: one["schema"]["type"] for one in listed[1:]} == {"before": "integer", "limit": "integer"}
    answer = document["paths"]["/v1/releases/{id}/answer.{format}"]["get"]["parameters"]
    assert answer[1]["schema"]["enum"] == ["csv", "json", "parquet", "arrow", "release"]
    named = [operation["operationId"] for found in document["paths"].values() for operation in found.values()]
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    "said", ["nan", "inf", "1_0", " 1", "1 ", "٣", "0x1", "1.5", "", "-1", "0", "1e400", "201", "9" * 40, "+1"]
)
def test_numbers_of_the_query_are_plain_and_within_their_range(world, said):
    answer = world.client("owner").get("/v1/log", params={"limit": said})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_an_address_says_which_methods_it_takes(world):
    answer = world.client("owner").delete("/v1/me")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
    assert "GET" in answer.headers["allow"]
