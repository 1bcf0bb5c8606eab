"""What goes wrong with a table in PostgreSQL: typed errors of constant texts, one charge, and no value or password."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from postgres_cluster import Cluster, own_cluster
from postgres_tables import load
from system_parts import needs_postgres

import discreet as dp
from discreet.lab.attacks.lab_tables import laboratory
from discreet.query.engine import Deadline, RowEngine
from discreet.query.sources.postgres import PostgresSnapshot, PostgresSource, connected, postgres, quoted
from discreet.query.sources.postgres_roles import look_at_doors, prepared
from discreet.query.workers.stream_feed import StreamFeed

pytestmark = needs_postgres
CANARY = "Canary-7Q"
PASSWORD = "S3cret-never-told"
ROWS = pa.table({"who": [1, 2, 3, 4] * 25, "age": [30, 40, 50, 60] * 25, "name": [CANARY] * 100})


@pytest.fixture
def dsn(postgres_cluster: Cluster) -> Iterator[str]:
    with postgres_cluster.database() as made:
        yield made


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def opened(source: Any, **more: Any) -> dp.Session:
    return dp.Session(
        {"t": source},
        unit=dp.Unit("who", 1, 10),
        budget=dp.Budget(epsilon=100),
        columns={"age": dp.between(0, 120, whole=True)},
        ledger="memory",
        dataset="d",
        principal="me",
        **more,
    )


def whole_text(error: BaseException) -> str:
    """Return everything that an error and what it came from say."""
    texts: list[str] = []
    found: BaseException | None = error
    while found is not None:
        texts.append(f"{type(found).__name__} {found} {found.args!r}")
        found = found.__cause__ or found.__context__
    return "\n".join(texts)


def fails(session: dp.Session, sql: str = "SELECT SUM(age) AS s FROM t") -> str:
    """Ask and fail: the constant error, charged once."""
    with pytest.raises(dp.AnswerFailed) as error:
        session.sql(sql, epsilon=1).release()
    assert session.spent.epsilon == 1
    assert CANARY not in whole_text(error.value)
    return whole_text(error.value)


# --- addresses and names ---


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://nobody:{PASSWORD}@127.0.0.1:1/clinic",
        f"postgresql://nobody:{PASSWORD}@no.such.host.invalid/clinic",
        f"postgresql://nobody:{PASSWORD}@127.0.0.1:1/clinic?options={PASSWORD}",
    ],
)
def test_a_server_out_of_reach_is_a_constant_refusal(address: str) -> None:
    source = postgres(address, "public.visits")
    assert PASSWORD not in repr(source)
    with pytest.raises(dp.Refused, match="PostgreSQL server cannot be reached") as error:
        opened(source)
    assert PASSWORD not in whole_text(error.value)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "mysql://h/d",
            f"host=h password={PASSWORD}",
            7,
            "postgresql://h/d#x",
            "\0",
            f"postgresql://[{PASSWORD}/x",
        ),
        # A password that is not escaped: a part of it stands where a host or a database would.
        *(f"postgresql://ana:{PASSWORD}{mark}x@db.example/clinic" for mark in "/?"),
        *(f"postgresql://ana:12{mark}{PASSWORD}@db.example/clinic" for mark in "/?"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(address: Any) -> None:
    with pytest.raises(dp.InvalidParameter, match="begins with postgresql://") as error:
        postgres(address, "t")
    assert PASSWORD not in whole_text(error.value)


HOSTILE = [
    *(f"{left}{middle}{right}" for left in ("", "a", "public.", '"') for right in ("", '"', ";--")
      for middle in ("'", '"', "; DROP TABLE t", "--", "/*", "*/", "\\", "\0", "\n", "$$", "' OR 1=1", "%s", "{table}",
                     ")", "(", "\u202e", "😀", ".", "..", " ", "\t", "`", "select", "::int", "E'\\047'")),
]  # fmt: skip


def test_hostile_names_are_names_or_refused(dsn: str) -> None:
    run(dsn, "CREATE TABLE t (who bigint)")
    assert len(HOSTILE) >= 300
    found = set()
    for name in HOSTILE:
        try:
            postgres(dsn, name).describe()
        except (dp.InvalidParameter, dp.Refused) as error:
            found.add(str(error).splitlines()[0])
    assert len(found) <= 3  # no name, no such table, none that this user may see
    run(dsn, "SELECT who FROM t")  # It is still there.


@pytest.mark.parametrize(
    "name", ['a"b', "a'b", "; DROP TABLE t --", "a b", "SELECT", "日本", "x" * 60, "%", "{0}", "\\"]
)
def test_any_name_of_a_column_and_a_table_can_be_read(dsn: str, name: str) -> None:
    load(dsn, ROWS.rename_columns(["who", name, "other"]), name=quoted(name))
    source = PostgresSource("public", name, False, "here", dsn)
    with source.snapshot([source], Deadline.after(20)) as snapshot:
        from discreet.query.sources.protocol import ColumnCompares, NotNull, ScanRequest

        request = ScanRequest(("who", name), (NotNull(name), ColumnCompares(name, ">", 40)))
        assert snapshot.stream(source, request).read_all().num_rows == 50


# --- grants, views, types ---


def test_missing_grants_are_a_constant_refusal(dsn: str, postgres_cluster: Cluster) -> None:
    load(dsn, ROWS, name="t")
    role = f"reader_{os.getpid()}_{time.monotonic_ns()}"
    run(dsn, f"CREATE ROLE {role} LOGIN")
    as_reader = dsn.replace("postgres@", f"{role}@")
    with pytest.raises(dp.Refused, match="may read no column"):
        opened(postgres(as_reader, "t"))
    run(dsn, f"GRANT SELECT (who, age) ON t TO {role}")
    with opened(postgres(as_reader, "t")) as session:
        assert "name" not in str(session.describe())
        assert abs(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=50).release().single().value - 40) < 8
        run(dsn, f"REVOKE ALL ON t FROM {role}")
        with pytest.raises(dp.Refused):  # before a charge
            session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
        assert session.spent.epsilon == 50
    run(dsn, f"REVOKE ALL (who, age) ON t FROM {role}", f"DROP ROLE {role}")


def test_views_and_row_security_are_refused_unless_somebody_vouches(dsn: str) -> None:
    load(dsn, ROWS, name="t")
    run(dsn, "CREATE VIEW v AS SELECT who, age FROM t", "CREATE MATERIALIZED VIEW m AS SELECT who, age FROM t")
    for name in ("v", "m"):
        with pytest.raises(dp.InvalidParameter, match="may mix the rows"):
            opened(postgres(dsn, name))
        with opened(postgres(dsn, name, view=True)) as session:
            assert abs(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=50).release().single().value - 40) < 8
    run(dsn, "ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    with pytest.raises(dp.InvalidParameter, match="row security"):
        opened(postgres(dsn, "t"))


def test_types_outside_of_the_list_are_not_offered(dsn: str) -> None:
    listed = 'json, jsonb, integer[], bytea, interval, time, money, xml, point, int4range, inet, tsvector, oid, "char"'
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(listed.split(", ")))
    run(dsn, f"CREATE TABLE t (who bigint, {columns})", "CREATE DOMAIN d AS json", "ALTER TABLE t ADD x d")
    assert list(postgres(dsn, "t").describe()) == ["who"]
    with pytest.raises(dp.InvalidParameter, match="age"):  # declared, and not there
        opened(postgres(dsn, "t"))


def test_a_database_in_another_encoding_is_refused(postgres_cluster: Cluster) -> None:
    postgres_cluster.execute(
        "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    try:
        there = postgres_cluster.dsn("bytes")
        run(there, "CREATE TABLE t (who bigint)")
        with pytest.raises(dp.InvalidParameter, match="UTF8"):
            postgres(there, "t").describe()
    finally:
        postgres_cluster.execute("DROP DATABASE bytes WITH (FORCE)")


# --- changes between price and answer ---


def test_a_schema_that_changed_is_refused_before_the_charge(dsn: str) -> None:
    with opened(load(dsn, ROWS, name="t")) as session:
        plan = session.sql("SELECT SUM(age) AS s FROM t", epsilon=1)
        run(dsn, "ALTER TABLE t ALTER age TYPE text")
        with pytest.raises(dp.Refused, match="columns of table 't' changed"):
            plan.release()
        assert session.spent.epsilon == 0


def test_a_schema_that_changes_after_the_charge_is_the_constant_failure(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(load(dsn, ROWS, name="t")) as session:
        snapshot = PostgresSource.snapshot

        def late(self: PostgresSource, tables: Any, deadline: Deadline) -> Any:
            run(dsn, "ALTER TABLE t ALTER age TYPE text")
            return snapshot(self, tables, deadline)

        monkeypatch.setattr(PostgresSource, "snapshot", late)
        fails(session)


def test_a_question_sees_one_state_however_often_it_looks(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown keys are found in one pass and counted in the next: rows that come meanwhile are in neither."""
    with opened(load(dsn, ROWS, name="t")) as session:
        stream = PostgresSnapshot.stream

        def meanwhile(self: PostgresSnapshot, source: Any, request: Any) -> Any:
            run(dsn, "INSERT INTO t SELECT who, 7, 'new' FROM t")
            return stream(self, source, request)

        monkeypatch.setattr(PostgresSnapshot, "stream", meanwhile)
        asked = session.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT name) AS d FROM t", epsilon=50)
        tallied = session._desk.engine.run_all(asked._asked.stages, deadline=Deadline.after(60))
    assert {int(one.tally.rows.sum()) for one in tallied} == {40}  # four units, ten rows each, whichever they are
    apart = [int(kept.distinct.sum()) for one in tallied for kept in one.tally.measures if kept.distinct is not None]
    assert apart == [1]  # and the name of all of them is the old one


# --- failures of rows, of the server and of time ---


def test_a_view_that_raises_for_one_row_is_the_constant_failure(dsn: str, postgres_cluster: Cluster) -> None:
    load(dsn, ROWS, name="base")
    run(dsn, "CREATE VIEW t AS SELECT who, (CASE WHEN who > 3 THEN name ELSE '1' END)::bigint AS age FROM base")
    with opened(postgres(dsn, "t", view=True)) as session:
        one = fails(session)
    run(dsn, "DROP VIEW t", "CREATE VIEW t AS SELECT who, age / (age - age) AS age FROM base")
    with opened(postgres(dsn, "t", view=True)) as session:
        other = fails(session)
    assert one == other


@pytest.mark.long
def test_nothing_of_a_row_is_in_the_log_of_a_prepared_server() -> None:
    """The server is one of its own: others write rows of theirs into the log of the shared one."""
    with own_cluster() as cluster:
        dsn, role = cluster.dsn(), "quiet"
        load(dsn, ROWS, name="base")
        run(dsn, "CREATE VIEW t AS SELECT who, (name || 'x')::bigint AS age FROM base")
        with opened(postgres(dsn, "t", view=True)) as session:
            fails(session)
        assert CANARY in cluster.log  # whoever is not prepared writes it
        run(dsn, *prepared([postgres(dsn, "t")], role))
        reader = postgres(cluster.dsn(user=role), "t", view=True)
        assert [door.name for door in look_at_doors(reader) if not door.closed] == []
        before = len(cluster.log)
        with opened(reader) as session:
            fails(session)
        assert CANARY not in cluster.log[before:]


def test_the_doors_that_are_open_are_told(dsn: str) -> None:
    load(dsn, ROWS, name="t")
    opened_doors = {door.name for door in look_at_doors(postgres(dsn, "t")) if not door.closed}
    assert opened_doors == {"powers", "server log", "statistics", "writing"}


def slow(dsn: str) -> PostgresSource:
    load(dsn, ROWS, name="base")
    run(dsn, "CREATE VIEW t AS SELECT who, age + (pg_sleep(1) IS NULL)::int AS age FROM base")
    return postgres(dsn, "t", view=True)


def running(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'discreet' AND state = 'active'"
        row = connection.execute(asked.encode()).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.long
def test_the_deadline_reaches_the_server(dsn: str) -> None:
    with opened(slow(dsn), resources=dp.query.Resources(seconds=2)) as session:
        began = time.monotonic()
        fails(session)
        assert time.monotonic() - began < 15
        time.sleep(1.5)
        assert running(dsn) == 0  # Nothing goes on there.


@pytest.mark.long
def test_a_backend_that_ends_is_the_constant_failure(dsn: str) -> None:
    def end() -> None:
        time.sleep(2)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                b"WHERE application_name = 'discreet' AND datname = current_database()"
            )

    with opened(slow(dsn)) as session:
        ender = threading.Thread(target=end)
        ender.start()
        fails(session)
        ender.join()
        run(dsn, "CREATE OR REPLACE VIEW t AS SELECT who, age FROM base")
        assert abs(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=50).release().single().value - 40) < 8


def test_a_stream_that_ends_early_is_no_answer(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of Arrow may end anywhere and look whole; the worker knows how many rows there are."""
    with opened(load(dsn, ROWS, name="t")) as session:
        write = StreamFeed._write

        def cut(self: StreamFeed, name: str) -> None:
            requests, self._requests = self._requests, {}
            try:
                write(self, name)
            except KeyError:  # before anything is written; the pipe is closed, and the failure forgotten
                self._requests = requests

        monkeypatch.setattr(StreamFeed, "_write", cut)
        fails(session)


def test_a_missing_driver_names_the_extra(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.query.sources import protocol

    monkeypatch.setattr(protocol, "find_spec", lambda name: None)
    with pytest.raises(dp.MissingLibrary, match=r"discreet\[postgres\]"):
        postgres(dsn, "t").describe()


def test_a_transaction_sees_one_state_writes_nothing_and_means_what_the_catalogue_means(dsn: str) -> None:
    names = ("transaction_isolation", "transaction_read_only", "search_path", "TimeZone", "standard_conforming_strings")
    asked = ", ".join(f"pg_catalog.current_setting('{name}')" for name in names)
    with connected(dsn, Deadline.after(20)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {asked}")
        assert cursor.fetchall() == [("repeatable read", "on", '""', "UTC", "on")]


def test_a_public_table_that_raises_is_refused_without_its_values(dsn: str) -> None:
    load(dsn, ROWS, name="base")
    run(dsn, "CREATE VIEW cities AS SELECT who, name::bigint AS code FROM base")
    with pytest.raises(dp.InvalidParameter, match="public table 'cities' cannot be read") as error:
        dp.Session(
            {"t": load(dsn, ROWS, name="t"), "cities": dp.public(postgres(dsn, "cities", view=True))},
            unit=dp.Unit("who"),
            budget=dp.Budget(epsilon=1),
            ledger="memory",
            dataset="d",
            principal="me",
        )
    assert CANARY not in whole_text(error.value)


def test_the_attack_lab_opens_no_table_elsewhere(dsn: str) -> None:
    with pytest.raises(dp.Refused, match="another machine"), laboratory({"t": load(dsn, ROWS, name="t")}):
        pass


def test_rows_of_a_session_are_handed_over_from_the_server(dsn: str) -> None:
    with opened(load(dsn, ROWS, name="t")) as session:
        engine = session._desk.engine
        assert isinstance(engine, RowEngine)
        found = engine.rows("t", ["age", "who"], [], deadline=Deadline.after(60))
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(
        zip(*ROWS.select(["age", "who"]).to_pydict().values(), strict=True)
    )
