"""Tables as people have them. Names and shapes may be looked at before payment; values are read by `columns` alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.mechanisms.column import Column
from discreet.statistics.columns import as_column, reader_for

__all__ = ["UnreadTable", "table_of"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class UnreadTable:
    """A table before it is read: the names of its columns, and how to read some of them."""

    names: tuple[str, ...]
    rows: int | None  # known without reading for tables in memory; private under add-remove
    _read: Callable[[Sequence[str], Sequence[str]], Mapping[str, Column]] = field(repr=False)
    of_session: bool = False  # whether a session holds its rows, and whoever asks does not

    def columns(self, names: Sequence[str], *, numbers: Sequence[str] = ()) -> dict[str, Column]:
        """Read some columns, where texts of some are to be taken as numbers. This is private."""
        return dict(self._read(names, numbers))

    def check_has(self, names: Sequence[str]) -> None:
        """Refuse if a column is not there."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InvalidParameter(
                f"the table has no column {', '.join(map(repr, missing))}. It has: {', '.join(map(str, self.names))}"
            )


def table_of(data: Any) -> UnreadTable:
    """Take a table of any known kind; no value is looked at."""
    if isinstance(data, UnreadTable):
        return data
    if isinstance(data, (str, Path)):
        from discreet.synth.domain.files import file_table

        return file_table(Path(data))
    if isinstance(data, Mapping):
        return _of_mapping(data)
    module = type(data).__module__.partition(".")[0]
    if module in _NAMES and hasattr(data, "columns"):
        return _of_frame(data, _NAMES[module](data))
    raise InvalidParameter(
        f"a table must be of pandas, polars or Arrow, a dictionary of columns, or a path of a CSV or Parquet file, "
        f"not {type(data).__name__}"
    )


def _of_mapping(data: Mapping[Any, Any]) -> UnreadTable:
    for column in data.values():
        reader_for(column)  # Refuses what is no column by its kind.
    lengths = {len(column) for column in data.values()}
    if len(lengths) != 1:
        raise InvalidParameter("a table needs columns, all of one length")
    return UnreadTable(_texts(data), lengths.pop(), lambda names, _: {name: as_column(data[name]) for name in names})


def _of_frame(data: Any, names: Sequence[Any]) -> UnreadTable:
    return UnreadTable(_texts(names), len(data), lambda wanted, _: {name: as_column(data[name]) for name in wanted})


def _texts(names: Any) -> tuple[str, ...]:
    found = tuple(names)
    if not all(isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise InvalidParameter("the columns of a table must have names that are texts, each another one")
    return found


_NAMES: dict[str, Callable[[Any], Sequence[Any]]] = {
    "pandas": lambda table: list(table.columns),
    "polars": lambda table: list(table.columns),
    "pyarrow": lambda table: list(table.column_names),
}
