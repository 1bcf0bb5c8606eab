"""Names, addresses and files aimed at canaries: nothing else is read, nothing is fetched, nothing is run (C35, C36)."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import pytest
from hostile_places import SECRET, Canaries, files
from server_world import COUNT, form_token, prepare, running

from discreet.server.endpoints import ENDPOINTS
from discreet.server.pages.site import page_routes

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="who opens a file is asked of inotify"),
]
PACKAGE = Path(__file__).parents[2] / "src" / "discreet"
MULTIPART = "multipart/form-data; boundary=x"
SIZES = pytest.mark.parametrize(
    "step", [pytest.param(23), pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"]
)


@pytest.fixture
def canaries(tmp_path):
    found = Canaries(tmp_path)
    yield found
    found.close()


def is_text(annotation):
    return annotation is str or any(map(is_text, get_args(annotation)))


def bodies(model, place):
    """Requests with this text in every field that takes one, one after the other."""
    texts = [name for name, field in model.model_fields.items() if is_text(field.annotation)]
    least = {name: "x" for name in texts if model.model_fields[name].is_required()}
    usual = least | (COUNT if "sql" in model.model_fields else {})
    yield usual | dict.fromkeys(least, place)
    for name in texts:
        yield usual | {name: place}


def aimed(endpoint, place, number):
    """Every request at an endpoint with this text somewhere: in the path, the query, the body or a header."""
    right = {"dataset": "one", "id": number, "format": "csv", "question": number}
    held = [name for name in right if "{" + name + "}" in endpoint.path]
    others = {part: "x" for part in parts(endpoint.path) if part not in right}
    for name in held or [None]:
        filled = {**others, **right} | ({} if name is None else {name: quote(place, safe="%/.;:")})
        path = endpoint.path.format(**filled)
        said = {"json": {}} if endpoint.body is None else {"json": next(bodies(endpoint.body, "x"))}
        yield path, said if endpoint.method == "POST" else {}
    path = endpoint.path.format(**others, **right)
    for name in endpoint.query:
        yield path, {"params": {name: place}}
    for body in () if endpoint.body is None else bodies(endpoint.body, place):
        yield path, {"json": body}


def parts(path):
    return [part.partition("}")[0] for part in path.split("{")[1:]]


def hits(canaries, answers):
    """Everything that a request reached and should not have."""
    found = [text[:80] for text in answers if SECRET in text or "root:x:0" in text]
    return found + ["opened"] * canaries.opened + canaries.connected + ["ran"] * canaries.ran


@SIZES
def test_no_name_or_address_reaches_anything_else(world, canaries, step):
    """C35: every text at every place of every endpoint."""
    number = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()["id"]
    assert len(canaries.places) >= 80
    client, answers, failed = world.client("owner"), [], []
    for place in canaries.places[::step]:
        for endpoint in ENDPOINTS:
            for path, said in aimed(endpoint, place, number):
                answer = client.request(endpoint.method, path, **said)
                answers.append(answer.text)
                if answer.status_code >= 500:
                    failed.append((endpoint.method, path, said, answer.text))
                assert "x-injected" not in answer.headers
    assert failed == []
    assert hits(canaries, answers) == []


@SIZES
def test_no_page_reads_or_fetches_for_a_visitor(world, canaries, step):
    client, answers = world.browser("owner"), []
    token = form_token(client.get("/account"))
    for place in canaries.places[::step]:
        for route in page_routes(world.server):
            if route.path == "/logout":
                continue
            path = route.path.format(**{part: quote(place, safe="%/.;:") for part in parts(route.path)})
            said = dict.fromkeys(("dataset", "sql", "source", "name", "address", "next", "back", "file", "path"), place)
            answers.append(client.get(path, params=said).text)
            if "POST" in route.methods and route.path not in ("/login", "/account"):
                answer = client.post(path, data={**said, "form_token": token, "action": "price"})
                answers.append(answer.text)
                assert "127.0.0.1" not in answer.headers.get("location", "")
            assert not answers[-1].startswith("Traceback")
    assert hits(canaries, answers) == []
    assert client.get("/account").status_code == 200


@SIZES
def test_no_policy_that_is_saved_names_what_is_not_in_the_folder(tmp_path, step):
    """C35 on the page of data: as the source, a public table, a database, the ledger and its anchor, and in a draft."""
    folder, outside = tmp_path / "data", tmp_path / "outside"
    for one in (folder, outside):
        one.mkdir()
    prepare(folder)
    canaries = Canaries(outside)
    (folder / "link.csv").symlink_to(canaries.path)
    kept = (folder / "one.toml").read_text()
    source, answers = 'source = "visits.csv"', []
    ways = [(source, "source = {}"), ('ledger = "one.ledger"', "ledger = {}"), (source, source + "\npublic = {}")]
    ways += [
        ('ledger = "one.ledger"', 'ledger = "one.ledger"\nanchor = {}'),
        (source, 'postgres = {{ table = "t", dsn = {} }}'),
    ]
    with running(folder, names=("one",), data_folder=folder) as world:
        client = world.browser("custodian")
        token = form_token(client.get("/account"))
        for place in [*canaries.places[::step], "link.csv"]:
            for old, new in ways:
                text = kept.replace(old, new.format(json.dumps(place)))
                for action, base in (("check", ""), ("save", hashlib.sha256(kept.encode()).hexdigest())):
                    said = {"form_token": token, "text": text, "action": action, "base": base}
                    answer = client.post("/data/one", data=said)
                    answers.append(answer.text)
                    assert answer.status_code in (422, 409), (new, place, answer.status_code)
            said = {"form_token": token, "table": place, "dataset": "new", "unit": "row", "epsilon": "1"}
            answers.append(client.post("/data", data=said).text)
    assert (folder / "one.toml").read_text() == kept
    assert hits(canaries, answers) == []
    canaries.close()


def test_static_files_and_headers_lead_nowhere(world, canaries):
    client, answers = world.client("owner"), []
    for place in canaries.places:
        answers.append(client.get("/static/" + quote(place, safe="%/.;:")).text)
        plain = place.encode().replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")
        for name in (b"referer", b"x-forwarded-host", b"x-forwarded-for", b"forwarded", b"x-original-url", b"accept"):
            answers.append(client.get("/v1/me", headers={name: plain}).text)
    assert hits(canaries, answers) == []


@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream", "application/zip", MULTIPART])
def test_files_that_run_grow_or_lead_elsewhere_are_refused(world, canaries, kind):
    """C36: whatever they call themselves, at every endpoint that reads a body."""
    client = world.client("owner")
    for name, content in files(canaries.path).items():
        framed = b'--x\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n' + content + b"\r\n--x--"
        for endpoint in ENDPOINTS:
            if endpoint.body is None:
                continue
            path = endpoint.path.format(**dict.fromkeys(parts(endpoint.path), "one"))
            body = framed if kind.startswith("multipart") else content
            answer = client.request(endpoint.method, path, content=body, headers={"content-type": kind})
            assert 400 <= answer.status_code < 500, (name, endpoint.path, answer.text)
    assert hits(canaries, []) == []


def test_a_server_that_reads_what_is_named_is_found(world, canaries, monkeypatch):
    """The mistake: a data set is looked up as a file, and an address is fetched."""
    import socket

    def careless(shelf, name):
        if name.startswith("http"):
            socket.create_connection(("127.0.0.1", canaries.port)).close()
        return Path(name).read_text()

    monkeypatch.setattr(type(world.server.shelf), "__getitem__", careless)
    client = world.browser("owner")
    for place in (str(canaries.path), f"http://127.0.0.1:{canaries.port}/x.csv"):
        client.get("/budget", params={"dataset": place})
    found = hits(canaries, [])
    assert "opened" in found
    assert len(canaries.connected) == 1


# --- C36: no code that turns bytes into code ---

UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "joblib", "jsonpickle"}
CALLS = {"eval", "exec", "compile", "__import__"}


def unsafe(source: str) -> list[str]:
    """What a module imports or calls that makes code of data."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.partition(".")[0] in UNSAFE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            shell = any(word.arg == "shell" for word in node.keywords)
            found += [name] * (name in CALLS) + ["shell"] * shell
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            found += ["torch.load"] * (called == "load" and ast.unparse(node.func).startswith("torch"))
    return found


@pytest.mark.parametrize("folder", ["server", "client", "query/workers"])
def test_nothing_makes_code_of_data(folder):
    there = PACKAGE / folder
    sources = sorted(there.rglob("*.py")) if there.exists() else list(PACKAGE.glob(f"{folder}*.py"))
    assert {file.name: found for file in sources if (found := unsafe(file.read_text()))} == {}


@pytest.mark.parametrize(
    "mistake",
    ["import pickle", "from yaml import load", "eval(x)", "exec(x)", "subprocess.run(x, shell=True)", "torch.load(x)"],
)
def test_code_that_does_is_found(mistake):
    assert unsafe(mistake)
