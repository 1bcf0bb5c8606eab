"""Synthetic tables and pictures: declared values that may be published, with the promise that comes with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.frames.column import Column
from discreet.ledger.private_files import place
from discreet.synth.domain.images import Images
from discreet.synth.promise import Promise

__all__ = ["SyntheticImages", "SyntheticTable"]

# --- table ---
# A synthetic table: columns of declared values that may be published, and the promise that comes with them.


_SHOWN = 10
_NOTHING = {"f": np.nan, "M": np.datetime64("NaT")}  # What is missing in columns that have a mark for it.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticTable:
    """Rows that belong to nobody. Everything in it may be published.

    Args:
        promise: What was spent, and what that means.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> model.sample(10).to_arrow().num_rows
        10
    """

    promise: Promise
    _columns: Mapping[str, Column] = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column as an array; what is missing is NaN, NaT or None."""
        if name not in self._columns:
            raise InvalidParameter(f"there is no column {name!r}. There are: {', '.join(self._columns)}")
        column = self._columns[name]
        values = np.asarray(column.values)
        if column.missing is None or not column.missing.any():
            return values
        shown: NDArray[Any] = values.copy() if values.dtype.kind in _NOTHING else values.astype(object)
        shown[column.missing] = _NOTHING.get(values.dtype.kind)
        return shown

    def to_arrow(self) -> Any:
        """Return a pyarrow table; missing values are nulls."""
        import pyarrow as pa

        return pa.table({name: pa.array(column.values, mask=column.missing) for name, column in self._columns.items()})

    def to_pandas(self) -> Any:
        """Return a pandas data frame; whole numbers and truth values that may be missing have nullable types."""
        import pandas as pd

        return pd.DataFrame({name: _series(self[name], self._columns[name]) for name in self._columns})

    def to_polars(self) -> Any:
        """Return a polars data frame."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Write comma-separated values to a file, all of it or nothing, or return them as text."""
        from pyarrow import csv

        written = BytesIO()
        csv.write_csv(self.to_arrow(), written, csv.WriteOptions(quoting_style="needed"))
        if path is None:
            return written.getvalue().decode()
        place(Path(path), written.getvalue())
        return None

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file, all of it or nothing; the promise stands in its metadata."""
        from pyarrow import parquet

        written = BytesIO()
        table = self.to_arrow().replace_schema_metadata({"discreet": str(self.promise)})
        parquet.write_table(table, written, compression="zstd")
        place(Path(path), written.getvalue())

    def __str__(self) -> str:
        shown = min(len(self), _SHOWN)
        cells = [[name, *(str(value) for value in self[name][:shown])] for name in self._columns]
        widths = [max(map(len, column)) for column in cells]
        rows = zip(*cells, strict=True)
        lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, f"({len(self):,} synthetic rows)"])

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid

        shown = [self[name][:_SHOWN] for name in self._columns]
        right = [values.dtype.kind in "iuf" for values in shown]
        return f"{grid(zip(*shown, strict=True), self.columns, right=right)}<small>{len(self):,} synthetic rows</small>"

    def __repr__(self) -> str:
        return f"SyntheticTable({len(self)} rows; {', '.join(self._columns)})"


def _series(shown: NDArray[Any], column: Column) -> Any:
    import pandas as pd

    kind = np.asarray(column.values).dtype.kind
    if column.missing is None or kind in _NOTHING:
        return pd.Series(shown)
    return pd.Series(shown, dtype={"b": "boolean", "i": "Int64"}.get(kind, object))


# --- pictures: Synthetic pictures with their labels, and the promise that comes with them. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticImages:
    """Pictures of nobody. Everything in it may be published.

    Args:
        promise: What was spent, and what that means.
        domain: The public declaration of the pictures.
    """

    promise: Promise
    domain: Images
    _pixels: NDArray[np.uint8] = field(repr=False)  # (rows, pixels)
    _codes: NDArray[np.int32] = field(repr=False)

    @property
    def images(self) -> NDArray[np.uint8]:
        """The pictures, (rows, height, width) of 0 to 255."""
        return self._pixels.reshape(-1, self.domain.height, self.domain.width)

    @property
    def labels(self) -> NDArray[Any]:
        """The class of each picture."""
        return np.array(self.domain.classes)[self._codes]

    def __len__(self) -> int:
        return len(self._pixels)

    def to_safetensors(self, path: str | Path) -> None:
        """Write pictures and the places of their labels to one file, all of it or nothing."""
        from safetensors.numpy import save

        place(Path(path), save({"images": self.images, "labels": self._codes}, {"discreet": str(self.promise)}))

    def __repr__(self) -> str:
        return f"SyntheticImages({len(self)} pictures of {self.domain.height} x {self.domain.width})"
