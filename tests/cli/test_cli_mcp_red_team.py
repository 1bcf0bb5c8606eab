"""A red team against `discreet mcp`: the ledger shows no overspending, and the transcript no value of one person."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path

import anyio
import pytest
from agent_talk import CANARY, NUMBER
from mcp import Client
from red_team import (
    CAPS,
    CORPUS,
    Played,
    differences,
    leaks,
    overspent,
    play,
    prepare_red_team,
    processes,
    spent,
    unexpected,
)

from discreet.cli.agent_server import AgentTools, granted, server_of
from discreet.cli.policies import open_session
from discreet.ledger.budget import Quota

RACES = "race"  # who is first is nobody's to say: their transcripts are not compared
CALM = [attack for attack in CORPUS if attack["kind"] != RACES]


def here(folder: Path):
    """The same server in this process, over the same client of the SDK."""

    @asynccontextmanager
    async def opened(agent: str, number: int):
        epsilon, delta = CAPS[agent]
        with open_session(folder / "policy.toml", principal=f"agent:{agent}") as session:
            tools = granted(session, epsilon=str(epsilon), delta=None if delta is None else str(delta), by="ana")
            async with Client(server_of(tools)) as client:
                yield client

    return opened


def played(folder: Path, corpus, *, canary: bool = True, opener=here) -> Played:
    folder.mkdir(exist_ok=True)
    prepare_red_team(folder, canary=canary)
    return anyio.run(play, corpus, opener(folder), folder)


def test_the_corpus_has_every_kind_of_attack():
    kinds = Counter(attack["kind"] for attack in CORPUS)
    assert len(CORPUS) == len({attack["id"] for attack in CORPUS}) >= 180
    assert set(kinds) == {
        "injected", "loop", "price", "units", "principal", "replay", "unicode", "policy", "exact", "tool", "race",
        "drain",
    }  # fmt: skip
    assert not leaks(json.dumps(CORPUS, ensure_ascii=False))  # The red team does not know what it looks for.


@pytest.mark.long
def test_attacks_spend_what_they_may_and_hear_what_is_released(tmp_path):
    """A part of the corpus, in this process: every fourth attack and all that drain the cap."""
    corpus = [one for place, one in enumerate(CALM) if place % 4 == 0 or one["kind"] == "drain"]
    heard = played(tmp_path / "people", corpus)
    assert unexpected(corpus, heard) == []
    assert overspent(tmp_path / "people") == []
    assert leaks(heard.transcript) == []


@pytest.mark.slow
def test_the_whole_corpus_over_the_real_server(tmp_path, capsys):
    """Every attack over `discreet mcp` and the official client, with and without the one person."""
    folder, neighbour = tmp_path / "with", tmp_path / "without"
    heard = played(folder, CORPUS, opener=processes)
    assert unexpected(CORPUS, heard) == []
    assert overspent(folder) == []
    assert leaks(heard.transcript) == []
    assert len(heard.wire) > 100_000  # Every byte that the processes wrote was looked at.
    other = played(neighbour, CALM, canary=False, opener=processes)
    assert overspent(neighbour) == []
    # Races change what is left of the cap, and so what is told while it is drained.
    compared = [name for name in other.heard if not name.startswith("drain")]
    told = [name for name in differences(heard, other) if name in compared]
    assert told == []
    with capsys.disabled():
        sums = ", ".join(f"{name} {float(spent(folder, name))} of {float(most)}" for name, (most, _) in CAPS.items())
        print(
            f"\nred team: {len(CORPUS)} attacks, {heard.calls} calls, {len(heard.wire):,} bytes: overspent 0 "
            f"(ε: {sums}), canaries heard 0, attacks that a neighbour changes {len(told)} of {len(compared)}"
        )


@pytest.mark.long
def test_nothing_but_answers_tells_whether_one_person_is_there(tmp_path):
    corpus = [one for place, one in enumerate(CALM) if place % 6 == 1]
    one, other = (played(tmp_path / name, corpus, canary=name == "with") for name in ("with", "without"))
    assert differences(one, other) == []
    assert one.calls == other.calls > 30


# --- the checker finds what it looks for ---


class TestMistakes:
    @pytest.mark.parametrize(
        "form", [CANARY, CANARY.upper(), CANARY.encode().hex(), str(NUMBER), "735,190,284", f"{NUMBER:x}"]
    )
    def test_a_canary_in_a_transcript(self, form):
        heard = Played(heard={"x": [{"message": f"no such row: {form}"}]})
        assert leaks(heard.transcript)

    def test_a_ledger_above_the_cap(self, tmp_path, monkeypatch):
        """A cap that the ledger forgets: the loop goes on, and the sum shows it."""
        monkeypatch.setattr(Quota, "covers", lambda quota, **_: not quota.is_grant)
        corpus = [attack for attack in CORPUS if attack["id"] == "loop-5"]
        played(tmp_path / "people", corpus)
        assert overspent(tmp_path / "people") == ["agent:assistant spent ε = 3/5, δ = 0 of 1/2, None"]

    def test_an_attack_that_is_charged_otherwise(self, tmp_path):
        corpus = [next(attack for attack in CORPUS if attack["id"] == "loop-1") | {"spends": "0"}]
        heard = played(tmp_path / "people", corpus)
        assert unexpected(corpus, heard) == [f"loop-1: charged {Fraction(1, 100)}, not 0"]

    def test_an_answer_that_counts_rows_without_noise(self, tmp_path, monkeypatch):
        """A careless tool, which tells how many rows the file has: a neighbour is told apart."""
        import pyarrow.parquet as pq

        plain = AgentTools.budget

        def careless(tools: AgentTools):
            return plain(tools) | {"file": pq.read_metadata(folder[0] / "people.parquet").num_rows}

        folder = [tmp_path]
        monkeypatch.setattr(AgentTools, "budget", careless)
        corpus, heard = [attack for attack in CORPUS if attack["id"] == "loop-4"], []
        for name in ("with", "without"):
            folder[0] = tmp_path / name
            heard.append(played(tmp_path / name, corpus, canary=name == "with"))
        assert differences(*heard) == ["loop-4"]
