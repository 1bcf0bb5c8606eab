"""A ledger in PostgreSQL: its tables, and the record within one transaction.

What a transaction writes is kept here until it ends and goes to the server in one statement, which also moves the
head from where it was: two who write at once cannot both succeed, whatever became of their locks. A request that is
refused takes back what it had written here, and the others go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

from discreet.errors import LedgerDamaged
from discreet.ledger.accounts import LIFETIME
from discreet.ledger.anchor import Anchor
from discreet.ledger.budget import digest
from discreet.ledger.charge_record import Head, ReadClaim, question_of
from discreet.ledger.requests import AnswerRequest, ChargeRequest, ClaimRequest
from discreet.ledger.store import claim_of

if TYPE_CHECKING:
    import psycopg

__all__ = ["FORMAT", "STUCK", "Missing", "PostgresRows", "clear", "named", "plain", "tables"]

FORMAT = 2
_KEPT, _STEP = 500_000, 20_000  # outcomes are kept for so many entries, and forgotten so many at a time

# Whoever has the gate, an exclusive lock, decides. Those who wait share it: they pass as soon as a decision is
# committed, all at once, and look. The turn says who of those that find nothing goes to the gate next.
# Keys, names and scopes can be longer than an index takes, so each is found by its hash. Waiting requests need not
# survive a crash of the server: whoever waits asks again. What was decided does, until nobody can ask for it.
_TABLES = """
CREATE SCHEMA IF NOT EXISTS {s};
CREATE TABLE {s}.ledger (only_one boolean PRIMARY KEY CHECK (only_one), format integer NOT NULL, idx bigint NOT NULL,
    hash text NOT NULL, time bigint NOT NULL);
CREATE TABLE {s}.entries (idx bigint PRIMARY KEY, hash text NOT NULL, time bigint NOT NULL, body text NOT NULL);
CREATE TABLE {s}.answers (charge bigint PRIMARY KEY, body text NOT NULL);
CREATE TABLE {s}.accounts (id text COLLATE "C" PRIMARY KEY, dataset text NOT NULL, declared text NOT NULL);
CREATE TABLE {s}.sums (id text COLLATE "C" PRIMARY KEY, dataset text NOT NULL, scope text NOT NULL,
    body text NOT NULL);
CREATE TABLE {s}.charges (idx bigint PRIMARY KEY, dataset text NOT NULL, key text, question text,
    key_id text COLLATE "C", question_id text COLLATE "C");
CREATE UNIQUE INDEX charges_by_key ON {s}.charges (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX charges_by_question ON {s}.charges (question_id, idx) WHERE question_id IS NOT NULL;
CREATE TABLE {s}.claims (charge bigint PRIMARY KEY, idx bigint NOT NULL, dataset text NOT NULL,
    dataset_id text COLLATE "C" NOT NULL, principal text NOT NULL, until bigint NOT NULL, process text NOT NULL,
    part bigint, failed boolean NOT NULL, counts boolean NOT NULL);
CREATE INDEX claims_by_dataset ON {s}.claims (dataset_id);
CREATE TABLE {s}.outcomes (id uuid PRIMARY KEY, told text, idx bigint NOT NULL, hash text NOT NULL);
CREATE UNLOGGED TABLE {s}.requests (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid UNIQUE NOT NULL,
    body text NOT NULL);
CREATE FUNCTION {s}.stay() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS
    'BEGIN RAISE EXCEPTION ''the record is never changed''; END';
CREATE TRIGGER stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.entries EXECUTE FUNCTION {s}.stay();
CREATE TRIGGER stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.answers EXECUTE FUNCTION {s}.stay();
CREATE TRIGGER stay BEFORE DELETE OR TRUNCATE ON {s}.ledger EXECUTE FUNCTION {s}.stay();
INSERT INTO {s}.ledger VALUES (true, 1, 0, '{beginning}', 0);
"""
# Two requests cannot be one; the charge of one whose outcome may be forgotten is never made, see `since`.
_SECOND = """
DROP TRIGGER IF EXISTS stay ON {s}.outcomes;
DROP FUNCTION IF EXISTS {s}.decision(uuid, bigint, bigint);
DROP FUNCTION IF EXISTS {s}.opened(uuid, bigint, boolean, integer, json);
ALTER TABLE {s}.ledger ADD COLUMN forgotten bigint NOT NULL DEFAULT 0;
ALTER TABLE {s}.requests ADD COLUMN since bigint NOT NULL DEFAULT 0;
ALTER TABLE {s}.requests DROP CONSTRAINT requests_pkey;
CREATE FUNCTION {s}.kept() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$ BEGIN
    IF OLD.idx < (SELECT forgotten FROM {s}.ledger) THEN RETURN OLD; END IF;
    RAISE EXCEPTION 'what was decided is kept'; END $$;
CREATE TRIGGER kept BEFORE DELETE ON {s}.outcomes FOR EACH ROW EXECUTE FUNCTION {s}.kept();
CREATE TRIGGER stay BEFORE UPDATE OR TRUNCATE ON {s}.outcomes EXECUTE FUNCTION {s}.stay();
CREATE FUNCTION {s}.forget() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$ BEGIN
    UPDATE {s}.ledger SET forgotten = greatest(forgotten, idx - {kept});
    DELETE FROM {s}.outcomes WHERE idx < (SELECT forgotten FROM {s}.ledger); END $$;
CREATE OR REPLACE FUNCTION {s}.looked(p json) RETURNS json LANGUAGE plpgsql AS $$
    DECLARE r record; account json; sums json; key json; entry json; answer json; BEGIN
    SELECT * INTO r FROM json_to_record(p)
        AS x(account text[], sums text[], key text[], entry bigint[], answer bigint[]);
    IF r.account IS NOT NULL THEN
        SELECT json_object_agg(t.id, t.declared) INTO account FROM {s}.accounts t WHERE t.id = ANY (r.account);
    END IF;
    IF r.sums IS NOT NULL THEN
        SELECT json_object_agg(t.id, t.body) INTO sums FROM {s}.sums t WHERE t.id = ANY (r.sums);
    END IF;
    IF r.key IS NOT NULL THEN
        SELECT json_object_agg(t.key_id, t.idx) INTO key FROM {s}.charges t WHERE t.key_id = ANY (r.key);
    END IF;
    IF r.entry IS NOT NULL THEN
        SELECT json_object_agg(t.idx, json_build_array(t.body, t.hash)) INTO entry FROM {s}.entries t
            WHERE t.idx = ANY (r.entry);
    END IF;
    IF r.answer IS NOT NULL THEN
        SELECT json_object_agg(t.charge, t.body) INTO answer FROM {s}.answers t WHERE t.charge = ANY (r.answer);
    END IF;
    RETURN json_build_object('account', account, 'sums', sums, 'key', key, 'entry', entry, 'answer', answer);
    END $$;
CREATE FUNCTION {s}.waiting(most integer) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('idle_session_timeout', '{stuck}', false);
    RETURN (SELECT json_build_object(
    'head', json_build_array(l.idx, l.hash, l.time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    'forgotten', l.forgotten,
    'waiting', (SELECT json_agg(json_build_array(w.id, CASE WHEN w.since >= l.forgotten THEN w.body END,
        (SELECT true FROM {s}.outcomes o WHERE o.id = w.id)) ORDER BY w.number)
        FROM (SELECT * FROM {s}.requests ORDER BY number LIMIT most) w)) FROM {s}.ledger l); END $$;
CREATE FUNCTION {s}.entered(asked uuid, gate bigint, waits boolean, most integer, p json) RETURNS json
    LANGUAGE plpgsql AS $$ BEGIN
    IF waits THEN PERFORM pg_advisory_lock(gate);
    ELSIF NOT pg_try_advisory_lock(gate) THEN RETURN NULL; END IF;
    RETURN json_build_object('told', (SELECT json_build_array(told, idx, hash) FROM {s}.outcomes WHERE id = asked),
    'open', {s}.waiting(most), 'found', CASE WHEN p IS NOT NULL THEN {s}.looked(p) END); END $$;
CREATE PROCEDURE {s}.asked(asked uuid, since bigint, body text, gate bigint, turn bigint, anchored bigint,
    most integer, INOUT seen json) LANGUAGE plpgsql AS $$ DECLARE tries integer := 0; BEGIN
    INSERT INTO {s}.requests (id, since, body) VALUES (asked, since, body) ON CONFLICT (id) DO NOTHING;
    COMMIT;
    LOOP
        PERFORM pg_advisory_lock_shared(gate);
        SELECT json_build_array(told, idx, hash, (SELECT e.hash FROM {s}.entries e WHERE e.idx = anchored),
            (SELECT l.forgotten FROM {s}.ledger l)) INTO seen FROM {s}.outcomes WHERE id = asked;
        PERFORM pg_advisory_unlock_shared(gate);
        EXIT WHEN seen IS NOT NULL;
        IF pg_try_advisory_lock(turn) THEN
            seen := {s}.entered(asked, gate, true, most, NULL);
            EXIT;
        END IF;
        tries := tries + 1; -- Whoever has the turn is about to go to the gate.
        IF tries > 2 THEN PERFORM pg_sleep(0.001); END IF;
    END LOOP; END $$;
CREATE FUNCTION {s}.let_go() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('idle_session_timeout', '0', false);
    PERFORM pg_advisory_unlock_all(); END $$;
CREATE OR REPLACE FUNCTION {s}.written(p json) RETURNS void LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN
    SELECT * INTO r FROM json_to_record(p) AS x(entries json, answers json, accounts json, sums json, charges json,
        ended bigint[], claims json, outcomes json, done uuid[], idx bigint, hash text, time bigint, before bigint,
        before_hash text);
    IF r.entries IS NOT NULL THEN
        INSERT INTO {s}.entries SELECT * FROM json_to_recordset(r.entries)
            AS x(idx bigint, hash text, time bigint, body text);
    END IF;
    IF r.answers IS NOT NULL THEN
        INSERT INTO {s}.answers SELECT * FROM json_to_recordset(r.answers) AS x(charge bigint, body text);
    END IF;
    IF r.accounts IS NOT NULL THEN
        INSERT INTO {s}.accounts SELECT * FROM json_to_recordset(r.accounts)
            AS x(id text, dataset text, declared text)
            ON CONFLICT (id) DO UPDATE SET declared = excluded.declared;
    END IF;
    IF r.sums IS NOT NULL THEN
        INSERT INTO {s}.sums SELECT * FROM json_to_recordset(r.sums)
            AS x(id text, dataset text, scope text, body text) ON CONFLICT (id) DO UPDATE SET body = excluded.body;
    END IF;
    IF r.charges IS NOT NULL THEN
        INSERT INTO {s}.charges SELECT * FROM json_to_recordset(r.charges)
            AS x(idx bigint, dataset text, key text, question text, key_id text, question_id text);
    END IF;
    IF r.ended IS NOT NULL THEN
        DELETE FROM {s}.claims WHERE charge = ANY (r.ended);
    END IF;
    IF r.claims IS NOT NULL THEN
        INSERT INTO {s}.claims SELECT * FROM json_to_recordset(r.claims) AS x(charge bigint, idx bigint,
            dataset text, dataset_id text, principal text, until bigint, process text, part bigint, failed boolean,
            counts boolean);
    END IF;
    IF r.outcomes IS NOT NULL THEN
        INSERT INTO {s}.outcomes SELECT id, told, r.idx, r.hash FROM json_to_recordset(r.outcomes)
            AS x(id uuid, told text);
    END IF;
    IF r.done IS NOT NULL THEN
        DELETE FROM {s}.requests WHERE id = ANY (r.done);
    END IF;
    UPDATE {s}.ledger SET idx = r.idx, hash = r.hash, time = r.time WHERE idx = r.before AND hash = r.before_hash;
    IF NOT FOUND THEN RAISE EXCEPTION 'somebody else moved the head'; END IF;
    IF r.idx / {step} > r.before / {step} THEN PERFORM {s}.forget(); END IF;
    END $$;
CREATE PROCEDURE {s}.decided(p json, gate bigint, turn bigint, most integer, goes_on boolean, INOUT open json)
    LANGUAGE plpgsql AS $$ BEGIN
    PERFORM {s}.written(p);
    COMMIT;
    IF goes_on THEN
        PERFORM pg_advisory_unlock(gate); -- Those who wait look; when they have, the gate is ours again.
        PERFORM pg_advisory_lock(gate);
        open := {s}.waiting(most);
    END IF;
    IF open->>'waiting' IS NULL THEN
        open := NULL;
        PERFORM {s}.let_go();
    END IF; END $$;
UPDATE {s}.ledger SET format = 2;
"""
STUCK = "30s"  # for which a client may be silent while others wait for it


def tables(schema: str, beginning: str, since: int | None) -> str:
    """Return the statements that make the tables, or bring those of an older release up to this one."""
    text = _SECOND if since == 1 else _TABLES + _SECOND
    values = {"s": schema, "beginning": beginning, "kept": str(_KEPT), "step": str(_STEP), "stuck": STUCK}
    return re.sub(r"\{(s|beginning|kept|step|stuck)\}", lambda found: values[found[1]], text)


_CLAIM = "charge, hash, c.idx, dataset, principal, until, process, part, failed, counts"
_CLAIMS = f"SELECT {_CLAIM} FROM {{s}}.claims c JOIN {{s}}.entries e ON e.idx = charge"
_PAGE = 5000  # entries that are read at once
_READ_BACK = ("account", "sums", "key", "entry", "answer")
_MUCH, _OVERHEAD = 8_000_000, 300  # characters that are sent at once, and what a row has besides its text


def plain(text: str) -> str:
    """Write a text as PostgreSQL can have it: without NUL."""
    return text.replace("\\", "\\\\").replace("\0", "\\0") if "\0" in text or "\\" in text else text


def clear(text: str) -> str:
    """Read what `plain` has written."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


@lru_cache(maxsize=4096)
def named(*names: str) -> str:
    """Return the name under which an index finds something."""
    return digest("\0".join(f"{len(name)}:{name}" for name in names))


class Missing:
    """A mark for what is not there, which is another thing than None."""


@final
class PostgresRows:
    """The record within a transaction that has the turn, or within a snapshot."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str, anchor: Anchor | None = None) -> None:
        self._connection, self._schema, self._anchor = connection, schema, anchor
        self.new_checkpoint: Head | None = None
        self.before: Head | None = None  # the head that this transaction found
        self._time: int | None = None
        # What was read and what will be written, by kind and name: (kind, name) → value.
        self._known: dict[tuple[str, Any], Any] = {}
        self._written: dict[tuple[str, Any], Any] = {}
        self._journal: list[tuple[tuple[str, Any], Any]] = []
        self.streams = False  # sends what was written once it is much; nothing is taken back then
        self._unsent = 0

    def sql(self, text: str) -> Any:
        """Name the schema in a statement; it is letters, digits and _."""
        return text.replace("{s}", self._schema)

    def _all(self, text: str, *values: Any) -> list[Any]:
        return self._connection.execute(self.sql(text), values or None).fetchall()

    # --- what was written before this transaction's end ---

    def _put(self, kind: str, name: Any, value: Any) -> None:
        self._journal.append(((kind, name), self._written.get((kind, name), Missing)))
        self._written[kind, name] = value

    def mark(self) -> int:
        """Return a mark for `back_to`."""
        return len(self._journal)

    def back_to(self, mark: int) -> None:
        """Take back what was written since a mark."""
        for name, value in reversed(self._journal[mark:]):
            if value is Missing:
                del self._written[name]
            else:
                self._written[name] = value
        del self._journal[mark:]

    def _of(self, kind: str) -> list[tuple[Any, Any]]:
        return [(name[1], value) for name, value in self._written.items() if name[0] == kind]

    def _one(self, kind: str, name: Any, text: str, *values: Any) -> Any:
        """Return one value: written now, read before, or read now."""
        if (kind, name) in self._written:
            return self._written[kind, name]
        if (kind, name) not in self._known:
            found = self._all(text, *values)
            self._known[kind, name] = found[0][0] if found else None
        return self._known[kind, name]

    # --- looking ahead ---

    HEAD = "SELECT idx, hash, time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM {s}.ledger"

    def set_head(self, row: Any) -> Head:
        """Take over the head that was read, and the time of the server."""
        if row is None:
            raise LedgerDamaged("the head of this ledger is gone: restore the database from a backup")
        self.before, self._time = Head(row[0], row[1], row[2]), row[3]
        return self.before

    def look_for(self, requests: Iterable[Any], anchored: int = 0) -> str:
        """Return what to look up for these requests, empty if all is known; `found` takes over what there is."""
        wanted: dict[str, set[Any]] = {kind: set() for kind in ("account", "sums", "key", "entry", "answer")}
        wanted["entry"] |= {anchored} if anchored else set()
        for asked in requests:
            wanted["account"].add(named(asked.dataset))
            wanted["sums"].add(named(asked.dataset, LIFETIME))
            if isinstance(asked, AnswerRequest):
                wanted["entry"].add(asked.charge)
                wanted["answer"].add(asked.charge)
            elif isinstance(asked, ChargeRequest | ClaimRequest) and asked.facts.get("key") is not None:
                wanted["key"].add(named(asked.dataset, asked.facts["key"]))
        new = {
            kind: sorted(each for each in names if (kind, each) not in self._known) for kind, names in wanted.items()
        }
        self._known |= {(kind, name): None for kind, names in new.items() for name in names}
        return json.dumps({kind: names for kind, names in new.items() if names}) if any(new.values()) else ""

    def unlooked(self) -> None:
        """Forget what was to be looked up, and was not."""
        self._known.clear()

    def found(self, looked: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Take over what was looked up."""
        for kind, values in looked.items():
            for name, value in (values or {}).items():
                known = clear(value) if kind == "answer" else tuple(value) if kind == "entry" else value
                self._known[kind, int(name) if kind in ("entry", "answer") else name] = known

    # --- the record ---

    def head(self) -> Head:
        return self._written.get(("head", None)) or self._first()

    def clock(self) -> int | None:
        if self._time is None:
            self.head()
        return self._time

    def append(self, head: Head, body: str) -> None:
        self._put("entry", head.index, (body, head.hash))
        self._put("time", head.index, head.time)
        self._put("head", None, head)
        self._stream(len(body))

    def entry(self, index: int) -> tuple[str, str] | None:
        if ("entry", index) not in self._written and ("entry", index) not in self._known:
            found = self._all("SELECT body, hash FROM {s}.entries WHERE idx = %s", index)
            self._known["entry", index] = tuple(found[0]) if found else None
        return self._written.get(("entry", index), self._known.get(("entry", index)))

    def marked(self, mark: str, *, after: int) -> Iterator[tuple[str, str]]:
        new = [(index, each) for index, each in self._of("entry") if index > after and mark in each[0]]
        yield from (each for _, each in sorted(new, reverse=True))
        if after < self._first().index:
            before, size = 2**62, 1
            while rows := self._all(
                "SELECT idx, body, hash FROM {s}.entries WHERE idx > %s AND idx < %s AND position(%s in body) > 0 "
                "ORDER BY idx DESC LIMIT %s",
                after,
                before,
                mark,
                size,
            ):
                yield from ((body, written_hash) for _, body, written_hash in rows)
                before, size = rows[-1][0], min(8 * size, _PAGE)

    def entries(self, *, after: int = 0) -> Iterator[tuple[Head, str]]:
        self.send()
        while rows := self._page(after, 2**62):
            yield from ((Head(index, written_hash, time), body) for index, written_hash, time, body in rows)
            after = rows[-1][0]

    def links(self, *, before: int) -> Iterator[tuple[int, str, int, bytes]]:
        after = 0
        while rows := self._page(after, before):
            yield from ((index, written_hash, time, body.encode()) for index, written_hash, time, body in rows)
            after = rows[-1][0]

    def _page(self, after: int, before: int) -> list[Any]:
        return self._all(
            "SELECT idx, hash, time, body FROM {s}.entries WHERE idx > %s AND idx < %s ORDER BY idx LIMIT %s",
            after,
            before,
            _PAGE,
        )

    def checkpoint(self) -> Head | None:
        mark = None if self._anchor is None else self._anchor.checkpoint()
        if mark is not None and mark.index > self._first().index:
            return None  # Anchored by somebody else since this snapshot was taken: it cannot show that entry.
        return mark

    def anchor_checkpoint(self, head: Head) -> None:
        self.new_checkpoint = head

    def account(self, dataset: str) -> str | None:
        name = named(dataset)
        found = self._one("account", name, "SELECT declared FROM {s}.accounts WHERE id = %s", name)
        return found[1] if isinstance(found, tuple) else found  # type: ignore[no-any-return]

    def set_account(self, dataset: str, declared: str) -> None:
        self._put("account", named(dataset), (dataset, declared))

    def accounts(self) -> dict[str, str]:
        self.send()
        return {clear(dataset): text for dataset, text in self._all("SELECT dataset, declared FROM {s}.accounts")}

    def clear_accounts(self) -> None:
        self.send()
        self._connection.execute(self.sql("DELETE FROM {s}.accounts"))
        self._known = {name: each for name, each in self._known.items() if name[0] != "account"}

    def sums(self, dataset: str, scope: str) -> str | None:
        name = named(dataset, scope)
        found = self._one("sums", name, "SELECT body FROM {s}.sums WHERE id = %s", name)
        return found[2] if isinstance(found, tuple) else found  # type: ignore[no-any-return]

    def set_sums(self, dataset: str, scope: str, text: str) -> None:
        self._put("sums", named(dataset, scope), (dataset, scope, text))

    def all_sums(self) -> dict[tuple[str, str], str]:
        self.send()
        rows = self._all("SELECT dataset, scope, body FROM {s}.sums")
        return {(clear(dataset), clear(scope)): body for dataset, scope, body in rows}

    def remember(self, index: int, dataset: str, *, key: str | None, question: str | None) -> None:
        self._put("charge", index, (dataset, key, question))
        self._stream(len(key or ""))
        if key is not None:
            self._put("key", named(dataset, key), index)

    def by_key(self, dataset: str, key: str) -> int | None:
        name = named(dataset, key)
        return self._one("key", name, "SELECT idx FROM {s}.charges WHERE key_id = %s", name)  # type: ignore[no-any-return]

    def by_question(self, dataset: str, question: str) -> int | None:
        """Charges and answers of this transaction count too, also an answer of a charge that was there before."""
        found = self._all(
            "SELECT max(idx) FROM {s}.charges JOIN {s}.answers ON charge = idx WHERE question_id = %s",
            named(dataset, question),
        )[0][0]
        now = [charge for charge, _ in self._of("answer") if self._question(charge) == (dataset, question)]
        return max([*now, *([] if found is None else [found])], default=None)

    def _question(self, charge: int) -> tuple[str, str | None] | None:
        found = self.entry(charge)
        content = {} if found is None else json.loads(found[0])
        return (content["dataset"], question_of(content)) if content.get("kind") == "charge" else None

    def newest(self, dataset: str, question: str) -> int | None:
        found = self._all("SELECT max(idx) FROM {s}.charges WHERE question_id = %s", named(dataset, question))[0][0]
        now = [index for index, said in self._of("charge") if (said[0], said[2]) == (dataset, question)]
        return max([*now, *([] if found is None else [found])], default=None)

    def remembered(self) -> dict[int, tuple[str, str | None, str | None]]:
        self.send()
        rows = self._all("SELECT idx, dataset, key, question FROM {s}.charges")
        return {index: (clear(dataset), None if key is None else clear(key), q) for index, dataset, key, q in rows}

    def answer(self, charge: int) -> str | None:
        if ("answer", charge) not in self._written and ("answer", charge) not in self._known:
            found = self._all("SELECT body FROM {s}.answers WHERE charge = %s", charge)
            self._known["answer", charge] = clear(found[0][0]) if found else None
        return self._written.get(("answer", charge), self._known.get(("answer", charge)))

    def set_answer(self, charge: int, text: str) -> None:
        self._put("answer", charge, text)
        self._stream(len(text))

    def answers(self) -> dict[int, str]:
        self.send()
        return {charge: clear(body) for charge, body in self._all("SELECT charge, body FROM {s}.answers")}

    def claim(self, charge: int) -> ReadClaim | None:
        if ("claim", charge) in self._written:
            return self._written["claim", charge]  # type: ignore[no-any-return]
        rows = self._all(f"{_CLAIMS} WHERE charge = %s", charge)
        return _claim(*rows[0]) if rows else None

    def claims(self, dataset: str | None = None) -> tuple[ReadClaim, ...]:
        if ("claims", dataset) not in self._known:
            which, values = ("", ()) if dataset is None else (" WHERE dataset_id = %s", (named(dataset),))
            self._known["claims", dataset] = [_claim(*row) for row in self._all(f"{_CLAIMS}{which}", *values)]
        now = dict(self._of("claim"))
        kept = [claim for claim in self._known["claims", dataset] if claim.charge.id not in now]
        new = [claim for claim in now.values() if claim is not None and dataset in (None, claim.dataset)]
        return tuple(sorted([*kept, *new], key=lambda claim: claim.index))

    def set_claim(self, claim: ReadClaim) -> None:
        self._put("claim", claim.charge.id, claim)

    def end_claim(self, charge: int) -> None:
        self._put("claim", charge, None)

    # --- writing ---

    def _stream(self, size: int) -> None:
        """Send what is more than a statement should have: a value of the server has a gigabyte at most."""
        self._unsent += size + _OVERHEAD
        if self.streams and self._unsent > _MUCH:
            self.send()

    @property
    def has_written(self) -> bool:
        """Tell whether the chain has grown here."""
        return ("head", None) in self._written

    def send(self, outcomes: Iterable[tuple[str, str | None]] = ()) -> None:
        """Send what was written to the server, in the transaction that is open."""
        payload = self.payload(outcomes)
        if payload is not None:
            self._connection.execute(self.sql("SELECT {s}.written(%s)"), (payload,))
            self.sent()

    def payload(self, outcomes: Iterable[tuple[str, str | None]], done: Iterable[str] = ()) -> str | None:
        """Write down everything that was written, for the server; None if there is nothing."""
        told, served = list(outcomes), list(done)
        if not self._written and not told and not served:
            return None
        before, after, of = self._first(), self.head(), self._of
        parts: dict[str, list[Any]] = {
            "entries": [
                {"idx": index, "hash": each[1], "time": self._written["time", index], "body": each[0]}
                for index, each in of("entry")
            ],
            "answers": [{"charge": charge, "body": plain(text)} for charge, text in of("answer")],
            "accounts": [{"id": name, "dataset": plain(d), "declared": text} for name, (d, text) in of("account")],
            "sums": [
                {"id": name, "dataset": plain(d), "scope": plain(scope), "body": text}
                for name, (d, scope, text) in of("sums")
            ],
            "charges": [_charge(index, *said) for index, said in of("charge")],
            "ended": [charge for charge, _ in of("claim")],
            "claims": [_packed(claim) for _, claim in of("claim") if claim is not None],
            "outcomes": [{"id": number, "told": text} for number, text in told],
            "done": served,
        }
        used: dict[str, Any] = {name: rows for name, rows in parts.items() if rows}
        ends = {"idx": after.index, "hash": after.hash, "time": after.time}
        return json.dumps(used | ends | {"before": before.index, "before_hash": before.hash})

    def sent(self) -> None:
        """Go on from what was sent. Only who has the gate may: what was read stays true, apart from lists."""
        self.before = self.head()
        kept = {} if self.streams else {name: each for name, each in self._known.items() if name[0] != "claims"}
        self._known = kept | {name: each for name, each in self._written.items() if name[0] in _READ_BACK}
        self._written.clear()
        self._journal.clear()
        self._unsent = 0

    def _first(self) -> Head:
        if self.before is None:
            found = self._all(self.HEAD)
            self.set_head(found[0] if found else None)
        assert self.before is not None
        return self.before


def _charge(index: int, dataset: str, key: str | None, question: str | None) -> dict[str, Any]:
    return {
        "idx": index,
        "dataset": plain(dataset),
        "key": None if key is None else plain(key),
        "question": question,
        "key_id": None if key is None else named(dataset, key),
        "question_id": None if question is None else named(dataset, question),
    }


def _packed(claim: ReadClaim) -> dict[str, Any]:
    return {
        "charge": claim.charge.id,
        "idx": claim.index,
        "dataset": plain(claim.dataset),
        "dataset_id": named(claim.dataset),
        "principal": plain(claim.principal),
        "until": claim.until,
        "process": claim.process,
        "part": claim.part,
        "failed": claim.is_failed,
        "counts": claim.counts,
    }


def _claim(*row: Any) -> ReadClaim:
    claim = claim_of(*row)
    return replace(claim, dataset=clear(claim.dataset), principal=clear(claim.principal))
