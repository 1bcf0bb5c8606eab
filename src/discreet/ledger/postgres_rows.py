"""A ledger in PostgreSQL: its tables, and the record within one transaction.

What a transaction writes is kept here until it ends and goes to the server in one statement, which also moves the
head from where it was: two who write at once cannot both succeed, whatever became of their locks. A request that is
refused takes back what it had written here, and the others go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

from discreet.errors import LedgerDamaged
from discreet.ledger.accounts import LIFETIME
from discreet.ledger.budget import digest
from discreet.ledger.charge_record import Charge, Head, ReadClaim, question_of
from discreet.ledger.requests import AnswerRequest, ChargeRequest, ClaimRequest

if TYPE_CHECKING:
    import psycopg

__all__ = ["FORMAT", "TABLES", "Missing", "PostgresRows", "clear", "named", "plain"]

FORMAT = 1

# Whoever has the gate decides. The turn says who of those who wait goes to it, so that not all of them do.
# Keys, names and scopes can be longer than an index takes, so each is found by its hash. Waiting requests need not
# survive a crash of the server: whoever waits asks again. What was decided does, for as long as the ledger.
TABLES = """
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
CREATE FUNCTION {s}.decision(asked uuid, turn bigint, anchored bigint) RETURNS json LANGUAGE plpgsql AS '
    DECLARE found json; BEGIN
    PERFORM pg_advisory_lock(turn);
    SELECT json_build_array(told, idx, hash, (SELECT e.hash FROM {s}.entries e WHERE e.idx = anchored)) INTO found
        FROM {s}.outcomes WHERE id = asked;
    IF found IS NOT NULL THEN PERFORM pg_advisory_unlock(turn); END IF;
    RETURN found; END';
CREATE FUNCTION {s}.looked(p json) RETURNS json LANGUAGE sql AS $$
    SELECT json_build_object(
    'account', (SELECT json_object_agg(id, declared) FROM {s}.accounts
        WHERE id IN (SELECT json_array_elements_text(p->'account'))),
    'sums', (SELECT json_object_agg(id, body) FROM {s}.sums
        WHERE id IN (SELECT json_array_elements_text(p->'sums'))),
    'key', (SELECT json_object_agg(key_id, idx) FROM {s}.charges
        WHERE key_id IN (SELECT json_array_elements_text(p->'key'))),
    'entry', (SELECT json_object_agg(idx, json_build_array(body, hash)) FROM {s}.entries
        WHERE idx IN (SELECT json_array_elements_text(p->'entry')::bigint)),
    'answer', (SELECT json_object_agg(charge, body) FROM {s}.answers
        WHERE charge IN (SELECT json_array_elements_text(p->'answer')::bigint))) $$;
CREATE FUNCTION {s}.opened(asked uuid, gate bigint, waits boolean, most integer, p json) RETURNS json
    LANGUAGE plpgsql AS $$ BEGIN
    IF waits THEN PERFORM pg_advisory_xact_lock(gate);
    ELSIF NOT pg_try_advisory_xact_lock(gate) THEN RETURN NULL; END IF;
    RETURN json_build_object(
    'told', (SELECT json_build_array(told, idx, hash) FROM {s}.outcomes WHERE id = asked),
    'head', (SELECT json_build_array(idx, hash, time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
        FROM {s}.ledger),
    'waiting', (SELECT json_agg(json_build_array(w.number, w.id, w.body,
        EXISTS (SELECT FROM {s}.outcomes o WHERE o.id = w.id)) ORDER BY w.number)
        FROM (SELECT * FROM {s}.requests ORDER BY number LIMIT most) w),
    'found', {s}.looked(p)); END $$;
CREATE FUNCTION {s}.written(p json) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO {s}.entries SELECT * FROM json_to_recordset(p->'entries')
        AS x(idx bigint, hash text, time bigint, body text);
    IF p->'answers' IS NOT NULL THEN
        INSERT INTO {s}.answers SELECT * FROM json_to_recordset(p->'answers') AS x(charge bigint, body text);
    END IF;
    IF p->'accounts' IS NOT NULL THEN
        INSERT INTO {s}.accounts SELECT * FROM json_to_recordset(p->'accounts')
            AS x(id text, dataset text, declared text)
            ON CONFLICT (id) DO UPDATE SET declared = excluded.declared;
    END IF;
    IF p->'sums' IS NOT NULL THEN
        INSERT INTO {s}.sums SELECT * FROM json_to_recordset(p->'sums')
            AS x(id text, dataset text, scope text, body text) ON CONFLICT (id) DO UPDATE SET body = excluded.body;
    END IF;
    IF p->'charges' IS NOT NULL THEN
        INSERT INTO {s}.charges SELECT * FROM json_to_recordset(p->'charges')
            AS x(idx bigint, dataset text, key text, question text, key_id text, question_id text);
    END IF;
    IF p->'ended' IS NOT NULL THEN
        DELETE FROM {s}.claims WHERE charge IN (SELECT json_array_elements_text(p->'ended')::bigint);
    END IF;
    IF p->'claims' IS NOT NULL THEN
        INSERT INTO {s}.claims SELECT * FROM json_to_recordset(p->'claims') AS x(charge bigint, idx bigint,
            dataset text, dataset_id text, principal text, until bigint, process text, part bigint, failed boolean,
            counts boolean);
    END IF;
    IF p->'outcomes' IS NOT NULL THEN
        INSERT INTO {s}.outcomes SELECT * FROM json_to_recordset(p->'outcomes')
            AS x(id uuid, told text, idx bigint, hash text);
    END IF;
    IF p->'done' IS NOT NULL THEN
        DELETE FROM {s}.requests WHERE number IN (SELECT json_array_elements_text(p->'done')::bigint);
    END IF;
    UPDATE {s}.ledger SET idx = (p->>'idx')::bigint, hash = p->>'hash', time = (p->>'time')::bigint
        WHERE idx = (p->>'before')::bigint AND hash = p->>'before_hash';
    IF NOT FOUND THEN RAISE EXCEPTION 'somebody else moved the head'; END IF;
    END $$;
CREATE FUNCTION {s}.stay() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS
    'BEGIN RAISE EXCEPTION ''the record is never changed''; END';
CREATE TRIGGER stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.entries EXECUTE FUNCTION {s}.stay();
CREATE TRIGGER stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.answers EXECUTE FUNCTION {s}.stay();
CREATE TRIGGER stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.outcomes EXECUTE FUNCTION {s}.stay();
CREATE TRIGGER stay BEFORE DELETE OR TRUNCATE ON {s}.ledger EXECUTE FUNCTION {s}.stay();
INSERT INTO {s}.ledger VALUES (true, {format}, 0, '{beginning}', 0);
"""
_CLAIM = "charge, hash, c.idx, dataset, principal, until, process, part, failed, counts"
_CLAIMS = f"SELECT {_CLAIM} FROM {{s}}.claims c JOIN {{s}}.entries e ON e.idx = charge"
_PAGE = 5000  # entries that are read at once


def plain(text: str) -> str:
    """Write a text as PostgreSQL can have it: without NUL."""
    return text.replace("\\", "\\\\").replace("\0", "\\0") if "\0" in text or "\\" in text else text


def clear(text: str) -> str:
    """Read what `plain` has written."""
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def named(*names: str) -> str:
    """Return the name under which an index finds something."""
    return digest("\0".join(f"{len(name)}:{name}" for name in names))


class Missing:
    """A mark for what is not there, which is another thing than None."""


@final
class PostgresRows:
    """The record within a transaction that has the turn, or within a snapshot."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection, self._schema = connection, schema
        self.before: Head | None = None  # the head that this transaction found
        self._time: int | None = None
        # What was read and what will be written, by kind and name: (kind, name) → value.
        self._known: dict[tuple[str, Any], Any] = {}
        self._written: dict[tuple[str, Any], Any] = {}
        self._journal: list[tuple[tuple[str, Any], Any]] = []

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

    def set_head(self, row: Any) -> None:
        """Take over the head that was read, and the time of the server."""
        if row is None:
            raise LedgerDamaged("the head of this ledger is gone: restore the database from a backup")
        self.before, self._time = Head(row[0], row[1], row[2]), row[3]

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
        return json.dumps(new) if any(new.values()) else ""

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

    def entries(self) -> Iterator[tuple[Head, str]]:
        self.send()
        last = 0
        while rows := self._all(
            "SELECT idx, hash, time, body FROM {s}.entries WHERE idx > %s ORDER BY idx LIMIT %s", last, _PAGE
        ):
            yield from ((Head(index, written_hash, time), body) for index, written_hash, time, body in rows)
            last = rows[-1][0]

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

    def payload(self, outcomes: Iterable[tuple[str, str | None]], done: Iterable[int] = ()) -> str | None:
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
            "outcomes": [{"id": n, "told": text, "idx": after.index, "hash": after.hash} for n, text in told],
            "done": served,
        }
        used: dict[str, Any] = {name: rows for name, rows in parts.items() if rows or name == "entries"}
        ends = {"idx": after.index, "hash": after.hash, "time": after.time}
        return json.dumps(used | ends | {"before": before.index, "before_hash": before.hash})

    def sent(self) -> None:
        """Go on from what was sent."""
        self._known = {name: value for name, value in self._written.items() if name[0] in ("entry", "answer", "key")}
        self.before = self.head()
        self._written.clear()
        self._journal.clear()

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


def _claim(
    charge: int,
    written_hash: str,
    index: int,
    dataset: str,
    principal: str,
    until: int,
    process: str,
    part: int | None,
    is_failed: bool,
    counts: bool,
) -> ReadClaim:
    paid = Charge(charge, charge, written_hash)
    return ReadClaim(paid, index, clear(dataset), clear(principal), until, process, part, is_failed, counts)
