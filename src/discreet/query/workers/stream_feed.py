"""Streams of sources on their way to a worker: one table after the other, each server in one state of its data.

The worker has no network, so whoever asks reads the source and writes a pipe. A failure of the source is told as such
to nobody: the pipe ends before the number of its rows, the worker fails, and so does the question.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, cast, final

from discreet.custodian_debug import ConstantFailure
from discreet.errors import AnswerFailed
from discreet.query.engine import Deadline
from discreet.query.engines.streamed_tables import Streamed
from discreet.query.sources.protocol import DataSource, ScanRequest, SourceSnapshot, SummingSnapshot, SumRequest

__all__ = ["StreamFeed"]

_COUNT = 8  # bytes
_PATIENCE = 10.0  # Seconds, in which a driver that was told to stop does so.


@final
class StreamFeed:
    """Feeds the pipes of one question in a thread of its own. `files` are the ends that the worker reads.

    Requests are named by the tables that arrive: rows by the one that they are of, sums by a name of their own.
    """

    def __init__(
        self, held: Mapping[str, Any], requests: Mapping[str, ScanRequest | SumRequest], deadline: Deadline
    ) -> None:
        pipes = {name: os.pipe() for name in requests}  # The order in which they are read.
        self.files = {name: ends[0] for name, ends in pipes.items()}
        self._ends = {name: ends[1] for name, ends in pipes.items()}
        self._held, self._requests, self._deadline = held, requests, deadline
        self._snapshots: dict[Hashable, SourceSnapshot] = {}
        self._lock, self._stopped, self._failed = threading.Lock(), False, True
        self._thread: threading.Thread | None = None
        if pipes:
            self._thread = threading.Thread(target=self._feed, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait until all is written; if it was not, nothing that was counted is an answer."""
        if self._thread is not None:
            self._thread.join(_PATIENCE)
            if self._failed or self._thread.is_alive():
                raise AnswerFailed

    def stop(self) -> None:
        """Stop whatever still runs, here and at the sources."""
        for file in self.files.values():
            os.close(file)  # Once the worker is gone, too, whoever writes gets an error.
        self.files = {}
        if self._thread is None or not self._thread.is_alive():
            return
        with self._lock:
            self._stopped = True
            running = list(self._snapshots.values())
        for snapshot in running:
            with suppress(Exception):
                snapshot.cancel()
        self._thread.join(_PATIENCE)

    def _feed(self) -> None:
        # What a driver says may carry values: it goes no further.
        with suppress(AnswerFailed), ConstantFailure(), ExitStack() as opened:
            self._open(opened)
            for name in list(self._ends):
                self._write(name)
            self._failed = False
        for end in self._ends.values():
            os.close(end)

    def _open(self, opened: ExitStack) -> None:
        """Hold one state of each server, before anything is read."""
        sources = [source for name in self._ends if (source := self._table(name).source) is not None]
        for server in dict.fromkeys(source.server for source in sources):
            tables = [source for source in sources if source.server == server]
            snapshot = opened.enter_context(tables[0].snapshot(tables, self._deadline))
            with self._lock:
                self._snapshots[server] = snapshot
            if self._stopped:
                raise AnswerFailed

    def _write(self, name: str) -> None:
        import pyarrow as pa

        table = self._table(name)
        assert table.source is not None
        snapshot = self._snapshots[table.source.server]
        if dict(snapshot.describe(table.source)) != dict(table.columns):
            raise AnswerFailed  # Another schema than was declared on: nothing is read from it.
        rows = 0
        with self._batches(snapshot, table.source, self._requests[name]) as batches:
            end = self._ends.pop(name)
            with open(end, "wb") as file:
                with pa.ipc.new_stream(file, batches.schema) as writer:
                    for batch in batches:
                        writer.write_batch(batch)
                        rows += batch.num_rows
                if self._stopped or not self._deadline.left:
                    raise AnswerFailed
                file.write(rows.to_bytes(_COUNT, "little"))

    @staticmethod
    def _batches(snapshot: SourceSnapshot, source: DataSource, request: ScanRequest | SumRequest) -> Any:
        if isinstance(request, SumRequest):
            return cast(SummingSnapshot, snapshot).sums(source, request)
        return snapshot.stream(source, request)

    def _table(self, name: str) -> Streamed:
        request = self._requests[name]
        held = self._held[request.table if isinstance(request, SumRequest) else name]
        assert isinstance(held, Streamed)
        return held
