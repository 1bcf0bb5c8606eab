"""Where a token goes, and what a server that lies can do: be refused in clear words."""

from __future__ import annotations

import datetime
import gzip
import ipaddress
import json
import socket
import time

import pytest
from client_world import Liar, Listening, TcpServer, http
from server_world import COUNT, prepare

import discreet as dp
from discreet import client, http_client
from discreet.client import ServerUnavailable, WrongAnswer, connect
from discreet.http_client import server_address

TOKEN = "dsc_secret-secret-secret"
ME = {"name": "ana", "role": "analyst", "scopes": [], "datasets": ["one"]}
FACTS = {
    "name": "one", "protects": "each row", "relation": "add-remove", "budget": "ε = 20", "version": None,
    "answer_after": 1.0, "tables": [],
}  # fmt: skip
PRICE = {
    "cost": "ε = 1", "affordable": True, "more_like_this": 3, "facts": {"price": "ε = 1"}, "errors": {}, "notes": [],
    "answer_after": 1.0,
}  # fmt: skip
JOB = {"id": "0" * 32, "dataset": "one", "who": "ana", "sql": "x", "cost": "ε = 1", "state": "done", "problem": None}
PROBLEM = {"status": 422, "code": "refused", "detail": "no"}


class TestAddresses:
    @pytest.mark.parametrize(
        "url",
        [
            "http://discreet.example",
            "http://192.0.2.1:8000",
            "http://[2001:db8::1]",
            "http://127.0.0.1.discreet.example",
            "http://localhost.discreet.example",
            "http://127.1",
            "http://2130706433",
            "http://0.0.0.0:8000",
        ],
    )
    def test_nothing_goes_to_another_machine_in_the_clear(self, url):
        with pytest.raises(dp.Refused, match="TLS"):
            connect(url, token=TOKEN)

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "127.0.0.1:8000",
            "ftp://127.0.0.1",
            "file:///etc/passwd",
            "http://",
            "http://127.0.0.1@discreet.example",
            "http://discreet.example@127.0.0.1",
            "http://127.0.0.1:8000/path",
            "http://127.0.0.1:8000?token=x",
            "http://127.0.0.1:8000#x",
            "http://127.0.0.1\\@discreet.example",
            "http://127.0.0.1 .discreet.example",
            "http://[::1",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:x",
            "http://[fe80::1%25eth0]",
            "http://ⓛocalhost",
            "https://a_b",
        ],
    )
    def test_what_is_no_address_is_refused(self, url):
        with pytest.raises((dp.InvalidParameter, dp.Refused)) as refused:
            connect(url, token=TOKEN)
        assert TOKEN not in str(refused.value)

    def test_addresses_are_made_anew_from_what_was_read(self):
        assert server_address("HTTPS://Discreet.Example:8443/") == "https://discreet.example:8443"
        assert server_address("http://[0:0:0:0:0:0:0:1]:8000") == "http://[0:0:0:0:0:0:0:1]:8000"
        assert server_address("http://LOCALHOST") == "http://localhost"

    @pytest.mark.parametrize("token", ["", "short", "dsc_a b c d e f", "dsc_abc\r\nx: y", "dsc_äöüäöü", 7])
    def test_what_is_no_token_is_not_sent_and_not_repeated(self, token, monkeypatch):
        monkeypatch.delenv("DISCREET_TOKEN", raising=False)
        with Liar(http("{}")) as liar:
            with pytest.raises((dp.InvalidParameter, dp.NotAuthorised)) as refused:
                connect(f"http://127.0.0.1:{liar.port}", token=token)
            assert liar.heard == b""
        assert not token or str(token) not in str(refused.value)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
def test_a_token_follows_no_redirect(status):
    with Liar(http(json.dumps(ME))) as other:
        where = f"location: http://127.0.0.1:{other.port}/v1/me\r\n"
        with Liar(http("", status=status, more=where)) as liar, pytest.raises(WrongAnswer):
            connect(f"http://127.0.0.1:{liar.port}", token=TOKEN)
        assert other.heard == b""


def test_neither_a_proxy_nor_a_file_of_passwords_of_the_environment_is_used(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login eve password stolen\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with Liar(http(json.dumps(ME))) as proxy, Liar(http(json.dumps(ME))) as liar:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert connect(f"http://127.0.0.1:{liar.port}", token=TOKEN).name == "ana"
        assert proxy.heard == b""
        assert f"authorization: Bearer {TOKEN}".casefold() in liar.heard.decode().casefold()


def routed(**answers):
    """Answer each address with its own lie; what is not named is true."""
    usual = {"me": ME, "datasets/one": FACTS, "estimate": PRICE, "releases": JOB, "releases/" + "0" * 32: JOB}

    def answer(said: bytes) -> bytes:
        path = said.split(b" ")[1].split(b"?")[0].decode().removeprefix("/v1/")
        last = path.removeprefix("datasets/one/")
        found = answers.get(last.replace("/", "_").replace(".", "_"), usual.get(last, {}))
        return found if isinstance(found, bytes) else http(json.dumps(found))

    return answer


def everything(port):
    """Use all verbs of the client."""
    with connect(f"http://127.0.0.1:{port}", token=TOKEN, patience=0.05, timeout=3) as server:
        data = server.dataset("one")
        repr(data), data.tables
        plan = data.sql("x", epsilon=1)
        repr(plan), plan.explain()
        plan.release(timeout=3)
        data.left, data.spent, data.budget, data.history(), list(data.releases())
        repr(server.datasets)


DEEP = b"[" * 100_000
LIES = (
    {"me": http("")}, {"me": http("<html>")}, {"me": http(b"\xff\xfe")}, {"me": http("[]")}, {"me": http("null")},
    {"me": http('{"name": 7}')}, {"me": http(DEEP)}, {"me": http('{"name":"a","role":NaN}')},
    {"me": ME | {"name": ["x"]}}, {"me": ME | {"scopes": "all"}}, {"me": http('{"name":' + "9" * 9999 + "}")},
    {"datasets_one": FACTS | {"tables": {}}}, {"datasets_one": FACTS | {"answer_after": "soon"}},
    {"datasets_one": FACTS | {"tables": [{"name": "t"}]}}, {"datasets_one": FACTS | {"name": None}},
    {"estimate": PRICE | {"facts": [1]}}, {"estimate": PRICE | {"cost": 0.1}}, {"estimate": PRICE | {"notes": "x"}},
    {"estimate": PRICE | {"more_like_this": "many"}}, {"estimate": PRICE | {"affordable": "yes"}},
    {"releases": JOB | {"id": 7}}, {"releases": JOB | {"problem": "none"}}, {"releases": JOB | {"state": None}},
    {"releases": JOB | {"id": ""}}, {"releases": JOB | {"id": "../../v1/me"}},
    {"answer": http("{}")},
    *({"releases_" + "0" * 32 + "_answer_release": lie} for lie in (
        {}, [], 7, {"format": 1}, {"format": 99}, {"format": 1, "columns": 7}, {"format": 1, "columns": [{}]},
        {"format": 1, "columns": [], "rows": -1, "notes": 3}, http(DEEP), http('{"format": 1, "rows": 1e999}'),
        {"format": 1, "columns": [], "rows": 0, "notes": [], "event": {"kind": "x"}, "relation": "r", "cost": "c",
         "confidence": "1/0", "is_tidy": False},
        {"format": 1, "columns": [], "rows": 0, "notes": [], "event": None, "relation": "add-remove", "cost": "c",
         "confidence": "1" * 5000, "is_tidy": False},
    )),
)  # fmt: skip


@pytest.mark.parametrize("lie", LIES, ids=range(len(LIES)))
def test_a_lie_is_refused_in_clear_words(lie):
    with Liar(routed(**lie)) as liar, pytest.raises(dp.DiscreetError) as refused:
        everything(liar.port)
    assert isinstance(refused.value, (WrongAnswer, dp.InvalidParameter))
    assert len(str(refused.value)) < 300
    assert TOKEN not in f"{refused.value!r}"


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "a/b", "..", ".bashrc", "", "a\x00b", "x" * 200, "con\u202e"]
)
def test_files_go_nowhere_but_into_the_folder(tmp_path, name):
    done = JOB | {"kind": "profile", "work": {"told": {}, "files": [name]}}
    with Liar(routed(profile_estimate=PRICE, profile_releases=done)) as liar:
        made = connect(f"http://127.0.0.1:{liar.port}", token=TOKEN).dataset("one").profile(epsilon=1).release()
        with pytest.raises((WrongAnswer, dp.InvalidParameter)):
            made.save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", ["\x1b[2J", "a", "ABCD EFGH", "http://evil.example/ABCD", "X" * 30])
def test_a_code_is_shown_only_if_a_person_can_type_it(code, monkeypatch):
    monkeypatch.delenv("DISCREET_TOKEN", raising=False)
    begun = {"device_code": "x", "user_code": code, "expires_in": 600, "interval": 1, "verification_uri": "http://e.x"}
    shown = []
    with Liar(routed(device=begun)) as liar, pytest.raises(WrongAnswer):
        connect(f"http://127.0.0.1:{liar.port}", show_code=shown.append)
    assert shown == []


MONEY = {
    "sentence": "x", "charges": 1, "spent_share": 0.1, "left_share": 0.9,
    "exact": {
        "budget": {"epsilon": "1"},
        "spent": {"epsilon": "1/10", "delta": "0", "rho": None, "renyi": [], "last": None},
        "left": {"epsilon": "9/10", "delta": None, "rho": None, "more": 9, "limit": "", "delta_share": None},
    },
}  # fmt: skip


@pytest.mark.parametrize("wrong", ["1/0", "x", "1e9999999", "9" * 4000, "-", "0x1"])
def test_sums_that_are_none_are_refused(wrong):
    for part, field in (("spent", "epsilon"), ("spent", "delta"), ("left", "epsilon"), ("budget", "epsilon")):
        told = json.loads(json.dumps(MONEY))
        told["exact"][part][field] = wrong
        with Liar(routed(budget=told)) as liar:
            data = connect(f"http://127.0.0.1:{liar.port}", token=TOKEN).dataset("one")
            with pytest.raises(WrongAnswer):
                _ = data.left, data.spent


class TestSizes:
    def test_an_answer_without_end_is_cut_off(self, monkeypatch):
        monkeypatch.setattr(http_client, "_MOST_BYTES", 1 << 20)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n"
        with Liar(head, forever=b" " * 65536) as liar, pytest.raises(WrongAnswer, match="larger"):
            connect(f"http://127.0.0.1:{liar.port}", token=TOKEN)

    def test_what_is_packed_is_not_unpacked(self):
        bomb = http(gzip.compress(b" " * (1 << 20)), more="content-encoding: gzip\r\n")
        with Liar(bomb) as liar, pytest.raises(WrongAnswer, match="packed"):
            connect(f"http://127.0.0.1:{liar.port}", token=TOKEN)

    @pytest.mark.long
    def test_a_drip_ends_in_time(self):
        """Each byte is in time, and all of them together are not."""

        class Drip(TcpServer):
            def serve(self, found: socket.socket) -> None:
                found.recv(65536)
                found.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                while True:
                    found.sendall(b" ")
                    time.sleep(0.1)

        begun = time.monotonic()
        with Drip() as drip, pytest.raises(ServerUnavailable):
            connect(f"http://127.0.0.1:{drip.port}", token=TOKEN, timeout=1, patience=0.01)
        assert time.monotonic() - begun < 30

    def test_heads_without_end_and_other_protocols_are_no_answers(self):
        for head in (b"x: " + b"y" * (1 << 20), b"SSH-2.0-OpenSSH\r\n", b"\0" * 1000, b""):
            with Liar(head) as liar, pytest.raises(ServerUnavailable):
                connect(f"http://127.0.0.1:{liar.port}", token=TOKEN, patience=0.01)

    def test_pages_without_end_come_to_one(self, monkeypatch):
        """The same page again and again: it is noticed."""
        monkeypatch.setattr(client, "_PAGE", 1)
        entry = {"number": 5, "when": "x", "who": "x", "price": None, "purpose": "x"}
        page = {"entries": [entry]}
        with Liar(routed(history=page, releases={"releases": [JOB]})) as liar:
            data = connect(f"http://127.0.0.1:{liar.port}", token=TOKEN).dataset("one")
            assert len(data.history()) == 2
            assert len(list(data.releases())) == 1


def test_texts_of_a_server_steer_no_screen():
    steering = "\x1b[2J\x1b]0;x\x07\u202e"
    problem = PROBLEM | {"detail": steering, "reason": steering, "way_out": steering, "excerpt": steering, "line": 1}
    lie = http(json.dumps(problem | {"caret": 10**9, "column": 1}), status="422 No")
    with Liar(routed(estimate=lie)) as liar:
        data = connect(f"http://127.0.0.1:{liar.port}", token=TOKEN).dataset("one")
        with pytest.raises(dp.Refused) as refused:
            data.sql("x", epsilon=1)
    assert not set(steering) & set("\x1b\x07\u202e") & set(str(refused.value))
    assert len(str(refused.value)) < 5000
    facts = FACTS | {"protects": steering, "name": "one"}
    price = PRICE | {"cost": steering, "facts": {steering: steering}, "notes": [steering]}
    with Liar(routed(me=ME | {"name": steering}, datasets_one=facts, estimate=price, budget=MONEY)) as liar:
        server = connect(f"http://127.0.0.1:{liar.port}", token=TOKEN)
        data = server.dataset("one")
        plan = data.sql("x", epsilon=1)
        shown = f"{server!r}{data!r}{plan!r}{plan.explain()}{plan.cost}{data.describe()}{data._repr_html_()}"
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("401 No", "not-signed-in", dp.NotAuthorised),
        ("403 No", "new-code", dp.NotAuthorised),
        ("404 No", "not-found", dp.InvalidParameter),
        ("409 No", "new-code", dp.Refused),
        ("413 No", "too-large", dp.InvalidParameter),
        ("422 No", "new-code", dp.InvalidParameter),
        ("429 No", "too-many", ServerUnavailable),
        ("500 No", "internal", ServerUnavailable),
        ("503 No", "unavailable", dp.LedgerUnavailable),
        ("500 No", "answer-failed", dp.AnswerFailed),
    ],
)
def test_every_problem_is_an_exception_of_the_library(status, code, kind):
    lie = http(json.dumps({"status": 1, "code": code, "detail": "so it is"}), status=status)
    with Liar(lie) as liar, pytest.raises(kind):
        connect(f"http://127.0.0.1:{liar.port}", token=TOKEN, patience=0.01)


@pytest.mark.parametrize("status", ["502 Bad", "503 Busy", "504 Late", "429 Many"])
def test_a_proxy_that_finds_no_server_is_told_so(status):
    with Liar(http("<html>", status=status)) as liar, pytest.raises(ServerUnavailable, match=status[:3]):
        connect(f"http://127.0.0.1:{liar.port}", token=TOKEN, patience=0.01)


# --- TLS ---


def certificate(folder):
    """A certificate for 127.0.0.1 that nobody signed but itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    built = built.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    built = built.add_extension(names, critical=False)
    signed = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(
        key, hashes.SHA256()
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return files


@pytest.mark.long
def test_certificates_are_checked_before_a_token_is_sent(tmp_path):
    prepare(tmp_path)
    files = certificate(tmp_path)
    with Listening(tmp_path, tls=files) as served:
        token, address = served.world.tokens["analyst"], f"https://127.0.0.1:{served.port}"
        with pytest.raises(dp.NotAuthorised, match="certificate"):
            connect(address, token=token)
        data = connect(address, token=token, certificates=files[0]).dataset("one")
        assert data.sql(COUNT["sql"], epsilon="0.1").release(timeout=100).cost == "ε = 0.1"
        other = address.replace("127.0.0.1", "localhost")  # A name that is not in it.
        with pytest.raises(dp.NotAuthorised, match="certificate"):
            connect(other, token=token, certificates=files[0])
    with pytest.raises(dp.InvalidParameter, match="PEM"):
        connect(address, token=token, certificates=tmp_path / "visits.csv")
