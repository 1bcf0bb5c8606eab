"""What a worker does: it opens tables, and answers one question after the other until nobody asks any more."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.abc import MetaPathFinder
from typing import Any, final

import duckdb  # noqa: F401, loaded before workers are forked, as are the next
import numpy.ma  # noqa: F401
import pyarrow as pa
import pyarrow.compute

from discreet.custodian_debug import ConstantFailure, keep_hidden
from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.query.bounding.secret import Secret
from discreet.query.engine import Deadline
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.streamed_tables import Streamed
from discreet.query.engines.tables import InMemory
from discreet.query.policy import PublicTable
from discreet.query.workers.lockdown import die_with_parent, forget_everything, limit_memory, lock, used_memory
from discreet.query.workers.messages import (
    ByteBlocks,
    Message,
    decoded,
    encoded,
    read_table,
    receive,
    send,
    write_table,
    write_tallied,
)

__all__ = ["serve"]

# Whatever is loaded here is loaded once, and not by every worker that is forked.
pa.default_memory_pool()  # It reads its setting now, and workers have no environment.
Secret((bytes(32), bytes(32)))  # It loads a cipher.
_SHOWN: list[str] = []  # What the custodian asked to see of failures; else nothing is kept.
_FULL = 0.5  # Of the memory that there is: beyond it the next question gets another worker.


class _Without(MetaPathFinder):
    """Hides pandas, which DuckDB and Arrow load if they find it: all is Arrow here, and it takes a second."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def serve(connection: int, temporary: str, parent: int) -> None:
    """Answer what comes through a connection, locked in; return when it ends."""
    die_with_parent(parent)
    sys.meta_path.insert(0, _Without())
    forget_everything(connection)
    tempfile.tempdir = temporary
    asker = socket.socket(fileno=connection)
    try:
        send(asker, {"process": os.getpid()})
        opening = receive(asker)
        worker = _ServingWorker(opening.said)
        _answer(asker, worker.open, opening)
        while True:
            _answer(asker, worker.answer, receive(asker))
    except (EOFError, OSError):
        return


def _answer(asker: socket.socket, work: Callable[[Message, ByteBlocks], dict[str, Any]], message: Message) -> None:
    """Answer one message. Our own errors have texts without data; of every other one nothing is told."""
    blocks = ByteBlocks()
    said: dict[str, Any] = {}
    with suppress(AnswerFailed), ConstantFailure():
        try:
            said = {"answer": work(message, blocks)}
        except (InvalidParameter, Refused) as error:
            said = {"refused": "Refused" if isinstance(error, Refused) else "InvalidParameter", "text": str(error)}
    send(asker, said or {"shown": "".join(_SHOWN)}, blocks.all if "answer" in said else ())
    _SHOWN.clear()


@final
class _ServingWorker:
    """Tables under a lock."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._memory, self._threads = int(said["memory"]), int(said["threads"])
        self._given: dict[str, Any] = {}
        self._streamed: dict[str, Streamed] = {}
        self._secrets: Iterator[Secret] = iter(())
        self._engine: DuckDBEngine | None = None
        if said["debug"]:
            keep_hidden(_SHOWN)
        self._most = limit_memory(self._memory, self._threads)
        lock()
        pa.set_cpu_count(self._threads)
        pa.set_io_thread_count(1)

    def open(self, message: Message, blocks: ByteBlocks) -> dict[str, Any]:
        """Open tables; those in memory come later, with the first question that may see them."""
        held = {name: self._held(name, told) for name, told in message.said["tables"].items()}
        public = set(message.said["public"])
        self._engine = DuckDBEngine(
            {name: PublicTable(table) if name in public else table for name, table in held.items()},
            memory=self._memory,
            threads=self._threads,
            secret=lambda: next(self._secrets),
        )
        return {name: {column: kind.value for column, kind in self._engine.columns(name).items()} for name in held}

    def _held(self, name: str, told: Any) -> Any:
        if isinstance(told, dict):
            return InMemory(told, lambda: self._given[name])
        held = decoded(told)
        if isinstance(held, tuple):  # the columns of a table that is streamed
            self._streamed[name] = Streamed(dict(held))
        return self._streamed.get(name, held)

    def answer(self, message: Message, blocks: ByteBlocks) -> dict[str, Any]:
        """Take the tables that come along, do what is asked, and say whether to be replaced."""
        said = message.said
        streams, given = said["streams"], said["given"]
        files, out = message.files[len(streams) :], message.files[len(streams) + len(given) :]
        sums = {name: Streamed(dict(decoded(told))) for name, told in said["sums"].items()}
        for name, file in zip(streams, message.files, strict=False):
            (sums.get(name) or self._streamed[name]).give(os.dup(file))
        for name, file in zip(given, files, strict=False):
            self._given[name] = read_table(file)
        keys = iter(bytes.fromhex(said["secrets"][start : start + 64]) for start in range(0, len(said["secrets"]), 64))
        self._secrets = (Secret(pair) for pair in zip(keys, keys, strict=True))
        deadline = Deadline.after(said["seconds"])
        try:
            assert self._engine is not None
            engine = self._engine.beside(sums) if sums else self._engine
            if streams:
                engine.take_streams(streams, deadline=deadline)
            done = self._do(engine, said, deadline, out, blocks)
            engine.forget_streams()
        finally:
            for file in message.files:
                os.close(file)
        return {"done": done, "full": self._is_full()}

    def _do(
        self, engine: DuckDBEngine, said: Mapping[str, Any], deadline: Deadline, out: list[int], blocks: ByteBlocks
    ) -> Any:
        given = decoded(said["about"])
        match said["do"]:
            case "run":
                (stage,) = given
                return write_tallied(engine.run(stage, deadline=deadline), stage, blocks)
            case "run_all":
                found = engine.run_all(given, deadline=deadline)
                return [write_tallied(one, stage, blocks) for one, stage in zip(found, given, strict=True)]
            case "first_groups":
                stage, most = given
                return write_table(engine.first_groups(stage, most, deadline=deadline), out[0])
            case "rows":
                table, columns, numbers = given
                return write_table(engine.rows(table, columns, numbers, deadline=deadline), out[0])
            case "columns_now":
                return encoded(engine.columns_now(*given))
            case "public_columns":
                return encoded(tuple(engine.public_columns(*given).items()))
            case "public_is_unique":
                return engine.public_is_unique(*given)
            case "public_rows":
                return engine.public_rows(*given)
        raise InvalidParameter("a worker does not know such work")

    def _is_full(self) -> bool:
        used = used_memory()
        return used is not None and self._most is not None and self._most - used < _FULL * self._memory
