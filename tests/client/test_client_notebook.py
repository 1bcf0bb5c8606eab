"""`%discreet connect`: cells of a notebook ask a server, see the price first, and pay only what they agreed to."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell
from server_world import COUNT, GROUPED
from traitlets.config import Config

import discreet as dp
from discreet.client import RemoteDataset
from discreet.query import ReleaseTable
from discreet.query.plan.explain import Explanation

pytestmark = pytest.mark.long


@pytest.fixture
def shell(served, tmp_path, monkeypatch):
    """A shell of IPython that is connected to the server."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("DISCREET_TOKEN", served.world.tokens["analyst"])
    monkeypatch.delenv("DISCREET_POLICY", raising=False)
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    made.run_line_magic("load_ext", "discreet")
    told = made.run_line_magic("discreet", f"connect {served.address} --into data")
    assert "clinic" in told
    yield made
    made.magics_manager.magics["cell"]["discreet"].opened.close()
    InteractiveShell.clear_instance()


def cell(shell, line, query=GROUPED["sql"]):
    done = shell.run_cell(f"%%discreet {line}\n{query}", store_history=True)
    return done.error_in_exec if done.error_in_exec is not None else done.result


def test_a_cell_asks_the_server_and_shows_its_price_for_free(shell, served):
    before = served.charges
    shown = cell(shell, "--epsilon 0.1")
    assert isinstance(shown, Explanation)
    assert dict(shown.facts)["price"] == "ε = 0.1"
    assert "DUMMY" in cell(shell, "--epsilon 0.1 --dummy").notes[0]
    assert "clinic" in shell.run_line_magic("discreet", "")
    assert served.charges == before


@pytest.mark.parametrize("agreed", ["", "--max-epsilon 0.05", "--max-epsilon 0", "--max-epsilon NaN"])
def test_nothing_is_released_without_agreement(shell, served, agreed):
    before = served.charges
    assert isinstance(cell(shell, f"--epsilon 0.1 --release {agreed}"), (dp.InvalidParameter, dp.Refused))
    assert isinstance(cell(shell, f"--error 20 --release {agreed}"), (dp.InvalidParameter, dp.Refused))
    assert served.charges == before


def test_an_agreed_release_is_kept_and_paid_once_under_its_key(shell, served):
    before = served.charges
    line = "--epsilon 0.1 --release --max-epsilon 0.1 --idempotency-key clinics --into answer"
    shown = cell(shell, line)
    assert isinstance(shown, ReleaseTable)
    assert shell.user_ns["answer"] is shown
    assert cell(shell, line).to_json() == shown.to_json()
    wanted = cell(shell, "--error 200 --release --max-epsilon 1", COUNT["sql"])
    assert isinstance(wanted, ReleaseTable)
    assert served.charges == before + 2


def test_a_data_set_in_a_variable_is_asked_by_its_name(shell):
    assert isinstance(shell.user_ns["data"], RemoteDataset)
    assert isinstance(cell(shell, "--session data --epsilon 0.1"), Explanation)
    assert isinstance(cell(shell, "--dataset one --epsilon 0.1"), Explanation)


@pytest.mark.parametrize(
    "line",
    ["--dataset two --epsilon 0.1", "--kept-share 0.02 --epsilon 0.1", "--session shell --epsilon 1", "--epsilon x"],
)
def test_what_cannot_be_asked_is_refused(shell, line):
    assert isinstance(cell(shell, line), dp.InvalidParameter)


def test_a_token_is_never_typed_into_a_cell(shell, served):
    token = served.world.tokens["owner"]
    for line in (f"connect {served.address} --token {token}", f"connect {served.address} {token}"):
        done = shell.run_cell(f"%discreet {line}")
        assert isinstance(done.error_in_exec, dp.InvalidParameter)
        assert token not in str(done.error_in_exec)
    refused = shell.run_cell("%discreet connect http://discreet.example").error_in_exec
    assert isinstance(refused, dp.Refused)
