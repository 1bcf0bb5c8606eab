"""`discreet mcp`: what an agent is told, and a red team that tries to spend more, or to hear more, than was granted."""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent_talk import CANARY, CAP, NUMBER, Talk, prepare_people, spent_by
from injected_texts import INJECTED
from markdown_it import MarkdownIt
from mcp import Client, StdioServerParameters, stdio_client

import discreet as dp
from discreet.cli.agent_server import NOTICE, TOOLS, AgentTools, granted, server_of, untrusted
from discreet.cli.policies import open_session
from discreet.ledger import Ledger
from discreet.ledger.budget import Quota

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_KEY = "SELECT said, COUNT(*) AS n FROM people GROUP BY said"


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return prepare_people(tmp_path)


@pytest.fixture
def tools(people: Path):
    """The tools in this process, within a cap of ε = 0.5."""
    with open_session(people / "policy.toml", principal="agent:assistant") as session:
        yield granted(session, epsilon="0.5", delta=None, by="ana")


def told(tools: AgentTools, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed."""
    good, answer = tools.call(name, arguments)
    assert good, answer
    return answer


def error(tools: AgentTools, name: str, **arguments: Any) -> str:
    """Call a tool that must fail, and return the kind of its error."""
    good, answer = tools.call(name, arguments)
    assert not good, answer
    assert set(answer) == {"notice", "error", "message"}
    return str(answer["error"])


# --- what it does ---


@pytest.mark.long
def test_the_official_client_lists_prices_tries_and_releases(people):
    said = ["-m", "discreet", "mcp", "--policy", "policy.toml", "--cap-epsilon", "0.5"]

    async def talk() -> None:
        started = StdioServerParameters(command=sys.executable, args=said, cwd=str(people))
        async with Client(stdio_client(started)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            priced = await client.call_tool("explain", {"sql": COUNT, "epsilon": 0.1})
            assert priced.structured_content["facts"]["price"] == "ε = 0.1"
            made_up = await client.call_tool("dummy", {"sql": COUNT, "epsilon": 0.1})
            assert made_up.structured_content["made_up"] is True
            asked = {"sql": COUNT, "epsilon": 0.2, "idempotency_key": "first"}
            first, again = [await client.call_tool("release", asked) for _ in range(2)]
            assert first.structured_content == again.structured_content
            ((cell,),) = first.structured_content["rows"]
            assert abs(cell["value"] - 300 * len(INJECTED)) < 1000  # Twenty times its ± and more.
            left = (await client.call_tool("budget", {})).structured_content
            assert any("ε = 0.3 of 0.5" in quota["left"] for quota in left["quotas"])

    anyio.run(talk)
    assert spent_by(people) == (1, Fraction(1, 5))


def test_looking_is_free_and_lists_declared_facts_only(tools, people):
    listed = told(tools, "list_data")
    names = [column["name"]["untrusted_text"] for column in listed["tables"][0]["columns"]]
    assert names == ["said", "age", "name"]
    for name in ("explain", "dummy"):
        told(tools, name, sql=COUNT, epsilon="0.1")
    assert spent_by(people) == (0, 0)


def test_a_release_needs_a_key_and_the_same_key_is_charged_once(tools, people):
    assert error(tools, "release", sql=COUNT, epsilon=0.1) == "InvalidParameter"
    first = told(tools, "release", sql=COUNT, epsilon=0.1, idempotency_key="a")
    assert told(tools, "release", sql=COUNT, epsilon=0.1, idempotency_key="a") == first
    assert error(tools, "release", sql=COUNT, epsilon=0.2, idempotency_key="a") == "Refused"
    assert spent_by(people) == (1, Fraction(1, 10))


def test_the_key_of_an_agent_is_nobody_elses(tools, people):
    with open_session(people / "policy.toml", principal="ana") as session:
        session.sql(COUNT, epsilon=0.1, idempotency_key="a").release()
    told(tools, "release", sql=COUNT, epsilon=0.1, idempotency_key="a")
    assert spent_by(people) == spent_by(people, "ana") == (1, Fraction(1, 10))


def test_a_cap_that_was_taken_back_ends_releases_and_does_not_come_back(tools, people):
    told(tools, "release", sql=COUNT, epsilon=0.1, idempotency_key="a")
    tools.session.ledger.end_grant("agent:assistant", reason="enough", principal="ana")
    for key in ("a", "b"):
        assert error(tools, "release", sql=COUNT, epsilon=0.1, idempotency_key=key) == "Refused"
    for cap in ("0.5", "0.6"):
        with pytest.raises(dp.Refused, match="taken back"):
            granted(tools.session, epsilon=cap, delta=None, by="ana")
    assert spent_by(people, None) == (1, Fraction(1, 10))


def test_a_cap_that_is_taken_back_between_the_look_and_the_charge_is_not_overspent(tools, people, monkeypatch):
    claim = Ledger.claim

    def late(ledger: Ledger, *arguments: Any, **named: Any) -> Any:
        ledger.end_grant("agent:assistant", reason="enough", principal="ana")
        return claim(ledger, *arguments, **named)

    monkeypatch.setattr(Ledger, "claim", late)
    assert error(tools, "release", sql=COUNT, epsilon=2.9, idempotency_key="x") == "Refused"
    assert spent_by(people, None) == (0, 0)


def test_no_session_of_an_agent_releases_without_a_cap(tools, people):
    """In Python, too, and as somebody else in a session of a person: the ledger refuses it."""
    with open_session(people / "policy.toml", principal="ana") as session:
        other = session.for_principal("agent:nobody")
        assert not other.affords(dp.privacy.PureDP("0.1"))
        with pytest.raises(dp.Refused, match="no cap in force"):
            other.sql(COUNT, epsilon=0.1).release()
        assert session.for_principal("agent:assistant").sql(COUNT, epsilon=0.1).release().cost == "ε = 0.1"
    assert spent_by(people, None) == (1, Fraction(1, 10))


def test_people_who_declared_quotas_are_not_refused_after_a_grant(tools, people):
    """The policy declares one quota, and the ledger now has two."""
    with open_session(people / "policy.toml", principal="ana") as session:
        assert [quota.is_grant for quota in session.ledger.quotas] == [False, True]


def test_a_person_is_no_agent(people):
    with open_session(people / "policy.toml", principal="ana") as session, pytest.raises(dp.InvalidParameter):
        granted(session, epsilon="0.5", delta=None, by="ana")


# --- red team: texts in the data ---


LINKS = (
    "javascript:alert(1)", "JavaScript: alert(1)", "java\tscript:alert(1)", "vbscript:x", "data:text/html,x",
    "mailto:eve@example.test", "eve@example.test", "a.b+c@mail.example.test", "xmpp:eve@example.test", "tel:+123",
    "//example.test/x", "_www.example.test_", "*http://example.test*", "WWW.example.test", "ftp://example.test",
    "smb:\\\\example.test\\x", "vscode://x", "ms-word:ofe|u|x", "<eve@example.test>", "![x][y]\n\n[y]: //example.test",
)  # fmt: skip


def found_by_readers(text: str) -> list[str]:
    """What others make of a text: the parser of CommonMark and that of HTML, and the autolinks of GitHub's Markdown."""
    inline = [part for token in MarkdownIt("commonmark").parse(text) for part in (token, *(token.children or ()))]
    markup = {"link_open", "image", "html_inline", "html_block", "code_inline"}
    tags: list[str] = []
    page = HTMLParser(convert_charrefs=False)
    for name in ("starttag", "startendtag", "endtag", "comment", "decl", "pi", "entityref", "charref"):
        setattr(page, f"handle_{name}", lambda *said: tags.append(str(said)))
    page.feed(text)
    page.close()
    # github.github.com/gfm#autolinks-extension- and the addresses that browsers run, whatever stands before them.
    linked = r"(?i)www\.|https?://|ftp://|mailto:|xmpp:|javascript:|vbscript:|data:\S|tel:|^//|[\w.+-]+@[\w-]+\.\w"
    steering = [one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    return [token.type for token in inline if token.type in markup] + tags + re.findall(linked, text) + steering


@pytest.mark.parametrize("text", [*INJECTED, *LINKS], ids=range(len(INJECTED) + len(LINKS)))
def test_an_injected_text_is_marked_bounded_and_nothing_but_text(text):
    marked = untrusted(text)
    assert found_by_readers(marked["untrusted_text"]) == []
    assert len(marked["untrusted_text"]) <= 200 * len("\\u{10ffff}")
    assert marked.get("cut", False) == (len(text) > 200)


def test_the_readers_of_these_tests_find_markup_and_links_where_there_are_some():
    for text in ("<b>", "&lt;", "[x](y)", "![x](y)", "`x`", "<!-- x", "a\x1bb", "a\u202eb", *LINKS[:10]):
        if "\t" not in text and ": " not in text:
            assert found_by_readers(text), text


def test_names_times_and_sentences_stay_readable():
    for text in (
        "clinic_name",
        "12:30",
        "2026-01-31 12:30:00",
        "why: it is so",
        "a/b",
        "COUNT(*) # 1 | 2 ~ 3",
        "a @ b",
    ):
        assert untrusted(text) == {"untrusted_text": text}


def test_texts_that_differ_are_told_apart():
    """What is escaped can be read back: a backslash in a text is escaped itself."""
    short = [text for text in (*INJECTED, *LINKS) if len(text) <= 200]
    assert len({untrusted(text)["untrusted_text"] for text in [*short, "<", r"\u{3c}"]}) == len(short) + 2


def unmarked(part: Any) -> str:
    """All texts of an answer that are not marked as somebody else's."""
    if isinstance(part, dict):
        return " ".join(unmarked(value) for name, value in part.items() if name != "untrusted_text")
    return " ".join(map(unmarked, part)) if isinstance(part, list) else str(part)


@pytest.mark.long
def test_injected_group_keys_stay_in_their_field_and_the_one_person_stays_hidden(people):
    talk = Talk(people, delta="1e-6")
    about = talk.start()
    listed = talk.request("tools/list", {})
    answer = talk.call("release", sql=BY_KEY, epsilon=0.4, delta=1e-7, idempotency_key="keys")
    assert talk.end() == 0
    assert not answer["failed"], answer
    keys = [row[0] for row in answer["rows"]]
    assert len(keys) == len(INJECTED) == 40
    assert {key["untrusted_text"] for key in keys} == {untrusted(text)["untrusted_text"] for text in INJECTED}
    rest = unmarked(answer)
    assert not any(word in rest for word in ("gnore previous", "script", "SYSTEM", "onerror", "custodian"))
    for constant in (about, listed):  # What a model takes for instructions is the same whatever the data are.
        assert not any(json.dumps(text)[1:-1] in json.dumps(constant) for text in INJECTED)
    assert answer["notice"] == NOTICE
    assert CANARY not in talk.transcript
    assert str(NUMBER) not in talk.transcript


def test_instructions_and_tools_do_not_depend_on_the_policy(tools, people):
    """Another data set, table, column, budget, agent and cap: the data that are listed differ, and nothing else."""
    (people / "other.toml").write_text(
        'dataset = "villages"\nledger = "other.ledger"\n[unit]\ncolumn = "row"\n[budget]\nepsilon = 9\n'
        '[tables.houses]\nsource = "people.parquet"\n'
        "[tables.houses.columns]\nage = { low = 1, high = 7, whole = true }\n",
        encoding="utf-8",
    )

    async def about(served: AgentTools) -> tuple[list[Any], Any]:
        async with Client(server_of(served)) as client:
            listed = [tool.model_dump() for tool in (await client.list_tools()).tools]
            return [client.instructions, listed], (await client.call_tool("list_data", {})).structured_content

    with open_session(people / "other.toml", principal="agent:second") as session:
        other = granted(session, epsilon="2", delta=None, by="bob")
        (first, data), (second, others) = (anyio.run(about, one) for one in (tools, other))
    assert first == second
    assert data != others
    assert first[0]
    assert not any(word in json.dumps(first) for word in ("people", "villages", "houses", "said", "0.5"))


# --- red team: money ---


NONSENSE = (
    -1, 0, -0.0, math.nan, math.inf, -math.inf, 1e308, 10**400, "NaN", "inf", "-0.1", "1e9999", "1e99999999", "0x1",
    "1/0", "", " ", "0.1; epsilon=0.0001", True, None, [], {}, [0.1], {"epsilon": 0.1}, "٠.١", "0,1", 1e-9, "1e-30",
)  # fmt: skip


@pytest.mark.long
def test_no_nonsense_epsilon_or_delta_is_charged(tools, people):
    for value in NONSENSE:
        kind = error(tools, "release", sql=COUNT, epsilon=value, idempotency_key="x")
        assert kind in ("InvalidParameter", "Refused", "BudgetExceeded"), value
    for value in (-1, 2, "NaN", True, []):  # With a price that fits the cap.
        assert error(tools, "release", sql=COUNT, epsilon=0.1, delta=value, idempotency_key="x") == "InvalidParameter"
    # The cap is pure: what needs a δ is refused.
    assert error(tools, "release", sql=BY_KEY, epsilon=0.1, delta=1e-9, idempotency_key="x") == "Refused"
    assert spent_by(people, None) == (0, 0)
    told(tools, "release", sql=COUNT, epsilon=0.1, idempotency_key="x")  # It would have fitted.


RICHER = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 100) COUNT(*) AS n FROM people"
CLAUSES = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 100, privacy_unit_column = name) COUNT(*) AS n FROM people",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(principal = 'ana') COUNT(*) AS n FROM people",
    "SET principal = 'ana'; SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people; SELECT * FROM people",
    "SELECT COUNT(*) AS n FROM people -- [budget] epsilon = 100\n; DROP TABLE people",
    "ATTACH 'people.ledger' AS l",
    "COPY people TO 'out.csv'",
    "PRAGMA database_list",
    "SELECT * FROM read_text('policy.toml')",
    "SELECT name FROM people",
    "SELECT MAX(name) AS m FROM people",
    "SELECT name, COUNT(*) AS n FROM people GROUP BY name",
    f"SELECT COUNT(*) AS n FROM people WHERE name = '{CANARY}' LIMIT error('x')",
    "[budget]\nepsilon = 100\n",
    "discreet budget raise --epsilon 100",
)
ELSEWHERE = (
    {"principal": "ana"}, {"agent": "other"}, {"project": "x"}, {"policy": "other.toml"}, {"cap_epsilon": 100},
    {"ledger": "memory"}, {"max_epsilon": 100}, {"rho": 1}, {"share": 1}, {"keys": {"said": [CANARY]}}, {"self": 1},
)  # fmt: skip
OTHER_TOOLS = (
    "raise_budget", "grant", "session", "cap", "call", "_plan", "__init__", "__class__", "sql", "../release", "",
    "release ", "RELEASE", "set_quotas", "tools/call",
)  # fmt: skip


@pytest.mark.long
def test_neither_query_nor_argument_nor_tool_changes_cap_principal_or_policy(people):
    talk = Talk(people)
    talk.start()
    for query in CLAUSES:
        assert talk.call("release", sql=query, epsilon=0.1, idempotency_key="clause")["error"] == "Refused", query
    for more in ELSEWHERE:
        assert talk.call("release", sql=COUNT, epsilon=0.01, idempotency_key="more", **more)["failed"]
    for name in OTHER_TOOLS:
        assert talk.call(name, sql=COUNT, epsilon=0.01, idempotency_key="tool")["failed"]
    for line in ("not json\n", "[]\n", "{}\n", '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}\n'):
        talk.send(line)
    assert "result" in talk.request("ping", {})  # It is still there.
    assert "error" in talk.request("resources/read", {"uri": "file:///etc/hostname"})
    assert spent_by(people, None) == (0, 0)
    richer = talk.call("release", sql=RICHER, epsilon=0.1, idempotency_key="clause")  # A clause only tightens.
    assert richer["cost"] == "ε = 0.1", richer
    assert talk.end() == 0
    assert spent_by(people, None) == (1, Fraction(1, 10))
    assert CANARY not in talk.transcript.replace(f"name = '{CANARY}'", "")  # It said so itself.
    assert str(NUMBER) not in talk.transcript


@pytest.mark.slow
def test_a_thousand_calls_spend_the_cap_and_no_more(tools, people):
    """Loops under one key are charged once; under a thousand keys as often as the cap holds."""
    for number in range(1000):
        tools.call("release", {"sql": COUNT, "epsilon": 0.04, "idempotency_key": "loop"})
        good, _ = tools.call("release", {"sql": COUNT, "epsilon": 0.02, "idempotency_key": f"loop {number}"})
        assert good == (number < 23)
    assert spent_by(people) == (24, CAP)
    tools.session.ledger.verify()


@pytest.mark.long
def test_many_small_releases_stop_at_the_cap(tools, people):
    """Twenty at 0.02, fifty at 0.002; then nothing fits, not even the least price."""
    for number in range(25):
        tools.call("release", {"sql": COUNT, "epsilon": "0.02", "idempotency_key": f"small {number}"})
    assert spent_by(people) == (25, CAP)
    for price in ("0.02", "0.001", "1e-5"):
        assert error(tools, "release", sql=COUNT, epsilon=price, idempotency_key=f"last {price}") == "BudgetExceeded"
    assert spent_by(people) == (25, CAP)


def test_a_ledger_that_forgets_the_cap_would_be_found(tools, people, monkeypatch):
    """The wrong neighbour of the tests around it: here the loop goes on, and the sum shows it."""
    monkeypatch.setattr(Quota, "covers", lambda quota, **_: not quota.is_grant)
    for number in range(4):
        tools.call("release", {"sql": COUNT, "epsilon": 0.2, "idempotency_key": f"mutant {number}"})
    assert spent_by(people)[1] > CAP


def test_a_cap_that_nobody_granted_is_none(tools, people):
    ungranted = AgentTools(tools.session, Quota(dp.Budget(epsilon=3), principal="agent:assistant"))
    assert error(ungranted, "release", sql=COUNT, epsilon=0.1, idempotency_key="x") == "Refused"
    assert spent_by(people) == (0, 0)


@pytest.mark.slow
def test_parallel_processes_and_restarts_share_one_cap(people):
    """Four start at once, before anything is granted; one of them is killed in between and started again."""

    def run(number: int) -> tuple[int, str]:
        talk = Talk(people)
        talk.start()
        won = 0
        for attempt in range(6):
            if (number, attempt) == (0, 3):
                talk.process.kill()
                talk.end()
                talk = Talk(people)
                talk.start()
            asked = {"sql": COUNT, "epsilon": 0.05, "idempotency_key": f"{number} {attempt}"}
            won += not talk.call("release", **asked)["failed"]
        talk.end()
        return won, talk.transcript

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(run, range(4)))
    assert sum(won for won, _ in ended) == 10
    assert spent_by(people) == (10, CAP)
    assert not any(CANARY in text or str(NUMBER) in text for _, text in ended)


def test_another_cap_for_the_same_name_is_refused_and_another_name_is_on_record(tools, people):
    told(tools, "release", sql=COUNT, epsilon=0.5, idempotency_key="all")
    for cap in ("0.6", "4", "0.4"):
        with pytest.raises(dp.Refused, match="granted once under a name"):
            granted(tools.session, epsilon=cap, delta=None, by="ana")
    for cap in ("-1", "0", "NaN", "inf", "1e99999"):
        with pytest.raises(dp.InvalidParameter):
            granted(tools.session, epsilon=cap, delta=None, by="ana")
    again = granted(tools.session, epsilon="0.50", delta=None, by="bob")  # The same cap goes on where it was.
    assert error(again, "release", sql=COUNT, epsilon=0.1, idempotency_key="more") == "BudgetExceeded"
    with open_session(people / "policy.toml", principal="agent:second") as session:
        other = granted(session, epsilon="0.25", delta=None, by="ana")
        assert error(other, "release", sql=COUNT, epsilon=0.3, idempotency_key="x") == "BudgetExceeded"
        told(other, "release", sql=COUNT, epsilon=0.25, idempotency_key="x")
        grants = [entry.content["principal"] for entry in session.history() if entry.kind == "quotas"]
    assert grants == ["ana", "ana"]  # the person who granted it
    assert (spent_by(people), spent_by(people, "agent:second")) == ((1, CAP), (1, Fraction(1, 4)))


@pytest.mark.slow
def test_a_restart_with_another_cap_ends_before_it_serves(people):
    first = Talk(people)
    first.start()
    assert first.end() == 0
    again = Talk(people, cap="0.6")
    assert again.end() == 3
    assert "granted once under a name" in again.transcript


# --- red team: errors ---


def test_an_unexpected_error_is_one_constant_text(tools, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"row 7: {CANARY}")

    monkeypatch.setattr(dp.Session, "sql", broken)
    good, answer = tools.call("release", {"sql": COUNT, "epsilon": 0.1, "idempotency_key": "x"})
    assert not good
    assert answer == {"notice": NOTICE, "error": "bug", "message": "an internal error; what is charged stays charged"}


def test_a_failed_read_is_the_constant_error_and_is_not_repeated(people):
    """The pages of the file are damaged, and its footer is not: it opens, is charged, and cannot be read."""
    file = people / "people.parquet"
    whole = file.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    file.write_bytes(b"PAR1" + (CANARY.encode() * len(whole))[: len(whole) - footer - 4] + whole[-footer:])
    asked = {"sql": "SELECT SUM(age) AS s FROM people", "epsilon": 0.1, "idempotency_key": "x"}
    with open_session(people / "policy.toml", principal="agent:assistant") as session:
        tools = granted(session, epsilon="0.5", delta=None, by="ana")
        answers = [tools.call("release", asked) for _ in range(3)]
    assert [(good, answer["error"]) for good, answer in answers] == [(False, "AnswerFailed")] * 3
    assert {answer["message"] for _, answer in answers} == {str(dp.AnswerFailed())}
    assert CANARY not in str(answers)
    assert spent_by(people, None) == (1, Fraction(1, 10))
