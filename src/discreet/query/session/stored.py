"""The rows of a private table as they are stored, for what is fitted to a whole table and was paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.errors import AnswerFailed
from discreet.query.engine import Deadline, Engine, RowEngine
from discreet.query.session.steps import private_table

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.query.session.session import Session

__all__ = ["StoredRows"]


@final
@dataclass(frozen=True, slots=True)
class StoredRows:
    """A private table of a session before it is read."""

    engine: Engine
    table: str
    names: tuple[str, ...]
    seconds: float

    @classmethod
    def of(cls, session: Session, table: str) -> StoredRows:
        """Name a private table of a session; nothing is read."""
        known = private_table(session.catalogue, table).name
        engine = session._desk.engine
        return cls(engine, known, tuple(engine.columns(known)), session._desk.seconds)

    def read(self, columns: Sequence[str], numbers: Sequence[str]) -> pa.Table:
        """Return columns of all rows, texts of `numbers` as doubles or NULL. The charge is the caller's."""
        if not isinstance(self.engine, RowEngine):
            raise AnswerFailed
        return self.engine.rows(self.table, columns, numbers, deadline=Deadline.after(self.seconds))
