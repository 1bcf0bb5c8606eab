"""A look at exact results: only where it was declared, only for who holds the data, logged first, kept nowhere."""

from __future__ import annotations

import csv
import io
from importlib.resources import files

import pytest
from server_world import COUNT, GROUPED, form_token, prepare, running

from discreet.errors import Refused
from discreet.privacy import NotPrivate
from discreet.server.accounts import AccountRole
from discreet.server.pages.exact_pages import NOT_COVERED

ROWS = list(csv.DictReader(io.StringIO((files("discreet") / "data" / "visits.csv").read_text())))


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("looks")
    prepare(folder)
    with running(folder, exact_looks=True) as world:
        yield world


def asked(world, question=GROUPED, role="owner"):
    return world.client(role).post("/v1/datasets/one/releases", json=question).json()["id"]


def look(client, number, name="one"):
    token = form_token(client.get("/account"))
    return client.post(f"/releases/{number}/exact", data={"form_token": token, "dataset": name})


def looks(world):
    return [dict(row) for row in world.server.state.rows("SELECT * FROM decisions WHERE what = 'exact look'")]


class TestLook:
    def test_it_shows_exact_numbers_once_it_is_logged_and_charges_nothing(self, looked):
        number, client = asked(looked), looked.browser("custodian")
        charges, before = looked.server.shelf["one"].session.spent.charges, len(looks(looked))
        page = look(client, number)
        assert page.status_code == 200
        for clinic in {row["clinic"] for row in ROWS}:
            exact = sum(row["clinic"] == clinic for row in ROWS)
            assert f'<td>{clinic}</td><td class="number">{exact}</td>' in page.text
        assert NOT_COVERED in page.text
        assert "NOT PRIVATE" in page.text
        assert page.headers["cache-control"] == "no-store"
        assert looked.server.shelf["one"].session.spent.charges == charges
        (entry,) = looks(looked)[before:]
        assert (entry["who"], entry["dataset"], entry["outcome"], entry["about"]) == (
            "custodian",
            "one",
            "shown",
            number,
        )

    def test_sums_and_averages_are_exact_too(self, looked):
        sql = "SELECT SUM(age) AS total, AVG(age) AS mean FROM visits"
        page = look(looked.browser("owner"), asked(looked, COUNT | {"sql": sql, "epsilon": "1"}))
        total = sum(int(row["age"]) for row in ROWS)
        assert f'<td class="number">{total:,}</td>' in page.text

    def test_nothing_of_it_is_stored(self, looked):
        """The state has the released answer of the job and no exact one, before and after a look."""
        number = asked(looked)
        before = dict(looked.server.state.row("SELECT * FROM jobs WHERE id = ?", number))
        look(looked.browser("custodian"), number)
        assert dict(looked.server.state.row("SELECT * FROM jobs WHERE id = ?", number)) == before

    @pytest.mark.parametrize("name", ["", "two", "One", "one "])
    def test_the_name_is_written_by_hand(self, looked, name):
        number, before = asked(looked), len(looks(looked))
        page = look(looked.browser("custodian"), number, name)
        if name.strip() == "one":
            assert page.status_code == 200
            return
        assert page.status_code == 422
        assert 'class="plain exact"' not in page.text
        assert len(looks(looked)) == before

    def test_what_cannot_be_logged_is_not_shown(self, looked, monkeypatch):
        number, client = asked(looked), looked.browser("custodian")
        token = form_token(client.get("/account"))

        def failing(*said, **more):
            raise RuntimeError

        monkeypatch.setattr(type(looked.server.state), "decide", failing)
        page = client.post(f"/releases/{number}/exact", data={"form_token": token, "dataset": "one"})
        assert page.status_code == 500
        assert 'class="plain exact"' not in page.text


class TestWho:
    @pytest.mark.parametrize("role", [role.value for role in AccountRole])
    def test_only_who_holds_the_data(self, looked, role):
        number, client = asked(looked), looked.browser(role)
        expected = 303 if role == "agent" else 200 if role in ("owner", "custodian") else 403
        assert client.get(f"/releases/{number}/exact").status_code == expected
        if role != "agent":
            assert look(client, number).status_code == expected

    def test_no_token_can_look(self, looked):
        number = asked(looked)
        client = looked.client("owner")
        assert client.get(f"/releases/{number}/exact").headers["location"] == "/login"
        assert client.post(f"/releases/{number}/exact", data={"dataset": "one"}).headers["location"] == "/login"

    def test_a_form_of_another_page_does_not(self, looked):
        number, client = asked(looked), looked.browser("custodian")
        assert client.post(f"/releases/{number}/exact", data={"dataset": "one"}).status_code == 403

    def test_another_data_set_is_not_there(self, looked):
        number = looked.client("owner").post("/v1/datasets/two/releases", json=COUNT).json()["id"]
        assert looked.browser("custodian").get(f"/releases/{number}/exact").status_code == 404

    def test_it_is_not_there_unless_it_was_declared(self, world):
        number = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()["id"]
        client = world.browser("owner")
        assert client.get(f"/releases/{number}/exact").status_code == 404
        assert look(client, number).status_code == 404
        assert "exact result" not in client.get(f"/releases/{number}").text


class TestDoor:
    def test_what_comes_out_is_marked(self, looked):
        session = looked.server.shelf["one"].session
        found = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").exact_look()
        assert isinstance(found, NotPrivate)
        assert found.value.columns[0][0].value == len(ROWS)

    def test_choices_have_no_exact_form(self, looked):
        session = looked.server.shelf["one"].session
        with pytest.raises(Refused):
            session.sql("SELECT MEDIAN(age) AS m FROM visits", epsilon="0.5").exact_look()
