"""The page of data: policies are drafted, compared and saved in one folder, and no budget begins anew."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from server_world import COUNT, POLICY, form_token, prepare, running
from system_parts import needs_postgres

from discreet.query import read_policy
from discreet.server.accounts import AccountRole
from discreet.server.policy_editing import PolicyFolder, check_change, difference

TEXT = POLICY.format(name="one", clinics='["Harbour", "Hillside", "Market", "Old Mill", "Station"]', epsilon="20")


@pytest.fixture
def place(tmp_path):
    """A server on data set one, whose policy is in its folder, beside a table that nobody protects yet."""
    prepare(tmp_path)
    for name in ("two", "three"):
        (tmp_path / f"{name}.toml").unlink()
    shutil.copy(tmp_path / "visits.csv", tmp_path / "fresh.csv")
    with running(tmp_path, names=("one",), data_folder=tmp_path) as world:
        yield tmp_path, world


def send(client, address, **said):
    return client.post(address, data={"form_token": form_token(client.get("/account")), **said})


def field(page, name):
    return page.text.split(f'name="{name}" value="')[1].split('"')[0]


def change(client, name, text, action="save", base=None):
    shown = send(client, f"/data/{name}", text=text, action="check")
    if action == "check" or shown.status_code != 200:
        return shown
    return send(client, f"/data/{name}", text=text, action="save", base=base or field(shown, "base"))


class TestChanging:
    def test_a_change_is_shown_saved_and_served_without_another_start(self, place):
        folder, world = place
        client = world.browser("custodian")
        changed = TEXT.replace("high = 120", "high = 110")
        shown = change(client, "one", changed, "check")
        assert '<span class="added">+age = { low = 0, high = 110, whole = true }</span>' in shown.text
        assert (folder / "one.toml").read_text() == TEXT
        before = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()
        assert change(client, "one", changed).status_code == 303
        assert (folder / "one.toml").read_text() == changed
        facts = world.client("owner").get("/v1/datasets/one").json()
        assert {one["name"]: one["high"] for one in facts["tables"][0]["columns"]}["age"] == 110
        after = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()
        assert (before["state"], after["state"]) == ("done", "done")
        assert world.server.shelf["one"].session.spent.charges == 2  # The ledger is the same.
        (row,) = world.server.state.rows("SELECT * FROM decisions WHERE what = 'policy save'")
        assert (row["who"], row["dataset"]) == ("custodian", "one")
        assert [file.name for file in folder.iterdir() if file.name.endswith(".new")] == []

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("epsilon = 20", "epsilon = 21"),
            ("epsilon = 20", "epsilon = 19"),
            ("epsilon = 20", "epsilon = 20\ndelta = 1e-6"),
            ("epsilon = 20", "rho = 1"),
            ('ledger = "one.ledger"', 'ledger = "new.ledger"'),
            ('ledger = "one.ledger"', 'ledger = "postgresql://localhost/x"'),
            ('ledger = "one.ledger"', 'ledger = "one.ledger"\nanchor = "elsewhere"'),
            ('column = "row"', 'column = "age"'),
            ('column = "row"', 'column = "row"\nmax_groups = 3'),
            ('dataset = "one"', 'dataset = "other"'),
            ('source = "visits.csv"', 'source = "visits.csv"\npublic = true'),
            ('source = "visits.csv"', 'source = "../visits.csv"'),
            ('source = "visits.csv"', 'source = "/etc/passwd"'),
            ('source = "visits.csv"', 'source = "link.csv"'),
            ('source = "visits.csv"', 'source = "sub/../visits.csv"'),
            ('source = "visits.csv"', 'source = "server.db"'),
            ('source = "visits.csv"', 'postgres = { table = "people", dsn_env = "PATH" }'),
            ("[tables.visits]", "[resources]\nmemory_mb = 90000\n[tables.visits]"),
            ("[tables.visits]", '[[quotas]]\nprincipal = "ana"\nepsilon = 1\n[tables.visits]'),
        ],
    )
    def test_nothing_that_a_budget_stands_on_is_changed(self, place, old, new):
        folder, world = place
        (folder / "link.csv").symlink_to(folder / "visits.csv")
        text = TEXT.replace(old, new)
        assert text != TEXT
        answer = change(world.browser("owner"), "one", text)
        assert answer.status_code == 422, answer.text[-2000:]
        forced = send(world.browser("owner"), "/data/one", text=text, action="save", base="x")
        assert forced.status_code == 422
        assert (folder / "one.toml").read_text() == TEXT
        assert world.server.shelf["one"].policy.ledger == folder / "one.ledger"

    def test_these_checks_can_fail(self, place, monkeypatch):
        """The planted mistake: without the comparison with what is served a budget is raised by saving a policy."""
        from discreet.server import policy_editing

        monkeypatch.setattr(policy_editing, "_check_kept", lambda new, served: None)
        folder, world = place
        new = PolicyFolder(folder).read(TEXT.replace("epsilon = 20", "epsilon = 21"))
        check_change(PolicyFolder(folder), new, world.server.shelf["one"].policy, [])

    @pytest.mark.parametrize(
        "let_go",
        [
            lambda text: text.replace('"visits.csv"', '"fresh.csv"'),
            lambda text: text.replace("tables.visits", "tables.kept").replace('"visits.csv"', '"fresh.csv"'),
            lambda text: text.replace("tables.visits", "tables.open").replace(
                '"visits.csv"', '"visits.csv"\npublic = true'
            ),
        ],
    )
    def test_rows_that_are_protected_are_not_let_go(self, place, let_go):
        """Else their file could be declared as another data set, with a budget that nobody has spent of."""
        folder, world = place
        client = world.browser("custodian")
        assert change(client, "one", let_go(TEXT)).status_code == 422
        again = TEXT.replace('"one"', '"again"').replace("one.ledger", "again.ledger")
        assert change(client, "again", again).status_code == 422
        assert not (folder / "again.ledger").exists()
        assert change(client, "one", TEXT.replace("tables.visits", "tables.renamed")).status_code == 303

    def test_what_another_server_saved_is_not_let_go_either(self, place):
        """This one serves the policy as it was: a table that was added since is protected, too."""
        folder, world = place
        added = TEXT + TEXT[TEXT.index("[tables.visits]") :].replace("tables.visits", "tables.more").replace(
            "visits.csv", "fresh.csv"
        )
        (folder / "one.toml").write_text(added)
        client = world.browser("custodian")
        assert change(client, "one", TEXT).status_code == 422
        assert change(client, "one", added.replace("high = 120", "high = 110")).status_code == 303

    def test_two_servers_do_not_declare_one_file_at_the_same_time(self, place):
        folder, world = place
        text = TEXT.replace('"one"', '"a"').replace("one.ledger", "a.ledger").replace("visits.csv", "fresh.csv")
        with ThreadPoolExecutor(1) as other, PolicyFolder(folder).alone():
            waits = other.submit(lambda: change(world.browser("owner"), "a", text))
            with pytest.raises(TimeoutError):
                waits.result(timeout=1.0)
            theirs = text.replace('"a"', '"b"').replace("a.ledger", "b.ledger")
            (folder / "b.toml").write_text(theirs)
        assert waits.result(timeout=60).status_code == 422
        assert not (folder / "a.ledger").exists()

    def test_without_that_check_a_budget_begins_anew(self, place, monkeypatch):
        """The planted mistake."""
        from discreet.server import policy_editing

        monkeypatch.setattr(policy_editing, "_check_rows_stay", lambda new, served: None)
        _, world = place
        client = world.browser("custodian")
        assert change(client, "one", TEXT.replace('"visits.csv"', '"fresh.csv"')).status_code == 303
        again = TEXT.replace('"one"', '"again"').replace("one.ledger", "again.ledger")
        assert change(client, "again", again).status_code == 303

    def test_what_is_wrong_is_said_by_its_line(self, place):
        _, world = place
        page = change(world.browser("owner"), "one", TEXT.replace("low = 0", "lowest = 0"))
        assert "line 14" in page.text
        assert "Did you mean low?" in page.text

    def test_what_somebody_else_saved_meanwhile_is_not_overwritten(self, place):
        folder, world = place
        client = world.browser("owner")
        shown = change(client, "one", TEXT.replace("120", "110"), "check")
        (folder / "one.toml").write_text(TEXT.replace("120", "115"))
        said = {"text": TEXT.replace("120", "110"), "action": "save", "base": field(shown, "base")}
        assert send(client, "/data/one", **said).status_code == 409
        assert (folder / "one.toml").read_text() == TEXT.replace("120", "115")


class TestAdding:
    def test_a_table_is_drafted_saved_served_and_granted(self, place):
        folder, world = place
        client = world.browser("custodian")
        said = {"table": "fresh.csv", "dataset": "fresh", "unit": "patient", "epsilon": "2"}
        page = send(client, "/data", **said)
        assert page.status_code == 200, page.text
        assert "NOT PRIVATE" in page.text
        text = page.text.split('class="policy"')[1].split(">", 1)[1].split("</textarea>")[0].lstrip("\n")
        text = text.replace("&#34;", '"').replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")
        assert "[release]" not in text
        assert "#   tables.fresh.columns.age" in text
        assert not (folder / "fresh.toml").exists()  # A draft is nowhere until it is saved.
        answer = change(client, "fresh", text)
        assert answer.status_code == 303, answer.text
        assert read_policy(folder / "fresh.toml").budget.epsilon == 2
        asked = world.client("custodian").post(
            "/v1/datasets/fresh/releases", json=COUNT | {"sql": "SELECT COUNT(*) AS n FROM fresh"}
        )
        assert asked.json()["state"] == "done"
        assert world.client("analyst").get("/v1/datasets/fresh").status_code == 404
        log = [row["what"] for row in world.server.state.rows("SELECT what FROM decisions WHERE who = 'custodian'")]
        assert {"policy draft", "policy save", "user grant"} <= set(log)

    def test_rows_that_a_data_set_protects_get_no_second_budget(self, place):
        """Neither by their own name nor by another name of the same file."""
        folder, world = place
        os.link(folder / "visits.csv", folder / "same.csv")
        for source in ("visits.csv", "same.csv"):
            for more in ("", "public = true\n"):
                text = TEXT.replace('"one"', '"again"').replace("one.ledger", "again.ledger")
                text = text.replace('source = "visits.csv"\n', f'source = "{source}"\n{more}')
                answer = change(world.browser("owner"), "again", text)
                assert answer.status_code == 422, answer.text
                assert "one budget" in answer.text or "public" in answer.text
        assert not (folder / "again.toml").exists()
        assert not (folder / "again.ledger").exists()

    def test_a_new_data_set_gets_a_new_ledger(self, place):
        folder, world = place
        text = TEXT.replace('"one"', '"fresh"').replace("visits.csv", "fresh.csv")
        assert change(world.browser("owner"), "fresh", text).status_code == 422  # It says one.ledger.
        (folder / "fresh.ledger").write_bytes(b"")
        text = text.replace("one.ledger", "fresh.ledger")
        assert change(world.browser("owner"), "fresh", text).status_code == 422

    def test_what_cannot_be_opened_is_not_saved(self, place):
        folder, world = place
        text = TEXT.replace('"one"', '"fresh"').replace("one.ledger", "fresh.ledger").replace("visits.csv", "fresh.csv")
        wrong = text.replace("age =", "nothing_there =")
        assert change(world.browser("owner"), "fresh", wrong).status_code == 422
        assert not (folder / "fresh.toml").exists()
        assert change(world.browser("owner"), "fresh", text).status_code == 303

    @pytest.mark.parametrize(
        "said",
        [
            {"table": "../visits.csv"},
            {"table": "/etc/passwd"},
            {"table": "server.db"},
            {"table": "link.csv"},
            {"table": "fake.parquet"},
            {"table": "fresh.csv\0"},
            {"dataset": "../x"},
            {"dataset": "one"},
            {"dataset": ""},
            {"dataset": "a/b"},
            {"epsilon": ""},
            {"epsilon": "much"},
            {"unit": "nobody"},
        ],
    )
    def test_drafts_of_what_is_not_in_the_folder_are_refused(self, place, said):
        folder, world = place
        (folder / "link.csv").symlink_to("/etc/passwd")
        (folder / "fake.parquet").write_bytes(b"\x80\x04not parquet")
        answer = send(
            world.browser("owner"),
            "/data",
            **{"table": "fresh.csv", "dataset": "fresh", "unit": "row", "epsilon": "1"} | said,
        )
        assert answer.status_code == 422
        assert "root:" not in answer.text


@needs_postgres
def test_a_table_in_a_database_is_declared_at_an_address_that_was_named(tmp_path, postgres_database, monkeypatch):
    import psycopg

    with psycopg.connect(postgres_database, autocommit=True) as database:
        database.execute("CREATE TABLE stays AS SELECT n AS age, 'Harbour' AS clinic FROM generate_series(1, 90) AS n")
        database.execute("CREATE VIEW shown AS SELECT * FROM stays")
    monkeypatch.setenv("STAYS_DSN", postgres_database)
    monkeypatch.setenv("OTHER_DSN", postgres_database)
    prepare(tmp_path)
    text = POLICY.format(name="stays", clinics='["Harbour"]', epsilon="20").replace("visits", "stays")
    text = text.replace('satisfied = { kind = "text" }\n', "")

    def said(place, name="stays"):
        named = text.replace('source = "stays.csv"', f"postgres = {{ {place} }}")
        return named.replace('dataset = "stays"', f'dataset = "{name}"').replace("stays.ledger", f"{name}.ledger")

    refused = ('table = "stays", dsn_env = "OTHER_DSN"', 'table = "shown", dsn_env = "STAYS_DSN", view = true')
    refused += ('table = "stays", dsn_file = "stays.dsn"', 'table = "shown", dsn_env = "STAYS_DSN"')
    with running(tmp_path, names=("one",), data_folder=tmp_path, data_connections=("STAYS_DSN",)) as world:
        client = world.browser("owner")
        for place in refused:
            assert change(client, "stays", said(place)).status_code == 422, place
        assert not (tmp_path / "stays.toml").exists()
        answer = change(client, "stays", said('table = "stays", dsn_env = "STAYS_DSN"'))
        assert answer.status_code == 303, answer.text
        asked = COUNT | {"sql": "SELECT COUNT(*) AS n FROM stays"}
        assert world.client("owner").post("/v1/datasets/stays/releases", json=asked).json()["state"] == "done"
        for same in ("public.stays", "stays"):
            again = change(client, "again", said(f'table = "{same}", dsn_env = "STAYS_DSN"', "again"))
            assert again.status_code == 422
            assert "one budget" in again.text


class TestWho:
    @pytest.mark.parametrize("role", [role.value for role in AccountRole])
    def test_only_who_holds_the_data(self, place, role):
        folder, world = place
        client = world.browser(role)
        expected = 303 if role == "agent" else 200 if role in ("owner", "custodian") else 403
        assert client.get("/data").status_code == expected
        assert client.get("/data/one").status_code == expected
        if role not in ("agent", "owner", "custodian"):
            assert send(client, "/data/one", text=TEXT, action="save").status_code == 403
            assert send(client, "/data", table="fresh.csv").status_code == 403
        assert (folder / "one.toml").read_text() == TEXT

    def test_a_custodian_of_another_data_set_neither_sees_nor_saves(self, place):
        _, world = place
        world.server.accounts.add("far", AccountRole.CUSTODIAN, ["two"], by="test")
        client = world.browser("far")
        assert client.get("/data/one").status_code == 404
        assert send(client, "/data/one", text=TEXT, action="save").status_code == 404
        assert "one" not in client.get("/data").text.split("<main")[1].split("Add a data set")[0]

    def test_a_custodian_of_another_data_set_looks_at_none_of_its_rows(self, place):
        """A draft is an exact look: a file that a data set protects has none, by whatever name of it."""
        folder, world = place
        os.link(folder / "visits.csv", folder / "same.csv")
        world.server.accounts.add("near", AccountRole.CUSTODIAN, ["two"], by="test")
        for table in ("visits.csv", "same.csv"):
            said = {"table": table, "dataset": "mine", "unit": "patient", "epsilon": "1"}
            answer = send(world.browser("near"), "/data", **said)
            assert answer.status_code == 422
            assert "Harbour" not in answer.text
            assert "data set one" not in answer.text
        assert "policy draft" not in {row["what"] for row in world.server.state.rows("SELECT what FROM decisions")}

    @pytest.mark.parametrize("kept", ["releases", "grants"])
    def test_a_name_that_others_used_is_nobodys_to_take(self, place, kept):
        """Whoever adds a data set is granted its name, and with it all that was ever asked under it."""
        folder, world = place
        world.server.accounts.add("next", AccountRole.CUSTODIAN, ["two"], by="test")
        job = world.client("owner").post("/v1/datasets/one/releases", json=COUNT).json()
        if kept == "grants":
            world.server.accounts.grant("analyst", ["retired"], by="test")
        else:
            with world.server.state.changing() as change_of_state:
                change_of_state.execute("UPDATE jobs SET dataset = 'retired'")
        client = world.browser("next")
        text = TEXT.replace('"one"', '"retired"').replace("one.ledger", "retired.ledger")
        text = text.replace("visits.csv", "fresh.csv")
        assert change(client, "retired", text).status_code == 422
        said = {"table": "fresh.csv", "dataset": "retired", "unit": "row", "epsilon": "1"}
        assert send(client, "/data", **said).status_code == 422
        assert client.get(f"/releases/{job['id']}").status_code == 404
        assert not (folder / "retired.ledger").exists()
        assert change(world.browser("owner"), "retired", text).status_code == 303

    def test_no_token_and_no_other_page_changes_anything(self, place):
        _, world = place
        assert world.client("owner").post("/data/one", data={"text": TEXT}).headers["location"] == "/login"
        assert world.browser("owner").post("/data/one", data={"text": TEXT, "action": "save"}).status_code == 403

    def test_without_a_folder_nothing_can_be_added_or_changed(self, world):
        client = world.browser("owner")
        assert "--data-folder" in client.get("/data").text
        assert "not in the folder" in client.get("/data/one").text
        assert send(client, "/data", table="visits.csv", dataset="x", epsilon="1").status_code == 404
        assert send(client, "/data/one", text=TEXT, action="save").status_code in (404, 422)


def test_a_difference_is_that_of_lines():
    assert difference("a\nb\n", "a\nc\n").splitlines()[-3:] == [" a", "-b", "+c"]


def test_a_folder_that_is_a_file_is_none(tmp_path):
    from discreet.errors import InvalidParameter

    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(InvalidParameter):
            PolicyFolder(Path(wrong))
