"""Arrow columns in few types, all of whose values can be read without an error.

Which columns there are depends on the schema only: nested and rare types are left out. Nothing is rounded here, for a
column may tell units apart: what makes two people one makes one of them fill the other's place.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.frames.cells import in_calendar

__all__ = ["arrow_times", "is_text", "is_time", "is_uuid", "moments", "safe", "safe_texts", "uuid_texts"]

_MOST_DIGITS = 38  # of a decimal
_FEW = 1024  # Texts that are looked at one by one if any of them is invalid.
_NONE = np.iinfo(np.int64).min  # NumPy's mark of no time.
_FIRST, _LAST = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
_AS_THEY_ARE = {"bool", "float", "double", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def safe(column: Any) -> Any:
    """Return a column, whole or in chunks, in its safe type; None if it is left out."""
    import pyarrow as pa

    whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind = whole.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return safe(pa.chunked_array([chunk.dictionary.take(chunk.indices) for chunk in whole.chunks], kind.value_type))
    if is_text(kind):
        return pa.chunked_array([piece for chunk in whole.chunks for piece in safe_texts(chunk)], kind)
    make = _maker(kind)
    if make is None:
        return whole if str(kind) in _AS_THEY_ARE else None
    return pa.chunked_array([make(chunk) for chunk in whole.chunks] or [make(pa.array([], kind))])


def _maker(kind: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _text_dictionary
    if types.is_date32(kind):
        return _days
    if is_time(kind) and not types.is_duration(kind):
        return lambda chunk: arrow_times(moments(chunk))
    if types.is_decimal(kind):
        return _decimals if 0 <= kind.scale <= min(kind.precision, _MOST_DIGITS) else None
    if types.is_float16(kind):
        return lambda chunk: chunk.cast(pa.float64())
    if is_uuid(kind):
        return uuid_texts
    return (lambda chunk: pa.nulls(len(chunk), pa.string())) if types.is_null(kind) else None


def is_text(kind: Any) -> bool:
    """Tell whether a type is one of those of texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_time(kind: Any) -> bool:
    """Tell whether a type is one of moments, dates or durations."""
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind))


def is_uuid(kind: Any) -> bool:
    """Tell whether a type is that of UUIDs."""
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def uuid_texts(chunk: Any) -> Any:
    """Return UUIDs as texts."""
    import pyarrow as pa

    return pa.array([None if value is None else str(value) for value in chunk.to_pylist()], pa.string())


def safe_texts(chunk: Any) -> list[Any]:
    """Return texts as they are, those with invalid characters as NULL, in pieces.

    A piece that is valid is not copied, and an invalid one is halved until it is small: one odd row must not make
    objects of all the others, which takes many times the memory.
    """
    import pyarrow as pa

    try:
        chunk.validate(full=True)
    except pa.ArrowInvalid:
        if len(chunk) > _FEW:
            half = len(chunk) // 2
            return [*safe_texts(chunk.slice(0, half)), *safe_texts(chunk.slice(half))]
        parts = (
            chunk.cast(pa.large_binary()) if not pa.types.is_string_view(chunk.type) else chunk.cast(pa.binary_view())
        )
        return [pa.array([_decoded_text(part) for part in parts.to_pylist()], pa.large_string()).cast(chunk.type)]
    return [chunk]


def _decoded_text(part: bytes | None) -> str | None:
    try:
        return None if part is None else part.decode()
    except UnicodeDecodeError:
        return None


def _text_dictionary(chunk: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces, indices = safe_texts(chunk.dictionary), chunk.indices.cast(pa.int32())
    values = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    if values.null_count:
        # Not the texts themselves are taken: they are there once, however many rows have them.
        indices = pc.if_else(values.is_null().take(indices), pa.scalar(None, pa.int32()), indices)
        values = values.fill_null("")
    return pa.DictionaryArray.from_arrays(indices, values)


def moments(chunk: Any) -> NDArray[Any]:
    """Return moments (in UTC), dates or durations as NumPy has them, those beyond the calendar as missing.

    A date that is stored in milliseconds and is no whole day is missing, too.
    """
    import pyarrow as pa

    kind = chunk.type
    counts = chunk.view(pa.int32()).cast(pa.int64()) if pa.types.is_date32(kind) else chunk.view(pa.int64())
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    letter = "m" if pa.types.is_duration(kind) else "M"
    times = counts.fill_null(_NONE).to_numpy(zero_copy_only=False).view(f"{letter}8[{unit}]")
    if pa.types.is_date64(kind):
        days = times.astype("M8[D]")
        times = np.where(days.astype("M8[ms]") == times, days, np.datetime64("NaT", "D"))
    return in_calendar(times)


def arrow_times(times: NDArray[Any]) -> Any:
    """Return moments or dates within the calendar as Arrow has them."""
    import pyarrow as pa

    unit, counts, missing = np.datetime_data(times.dtype)[0], times.astype(np.int64), np.isnat(times)
    if unit == "D":
        return pa.array(np.where(missing, 0, counts).astype(np.int32), pa.int32(), mask=missing).view(pa.date32())
    return pa.array(counts, pa.int64(), mask=missing).view(pa.timestamp(unit))


def _days(chunk: Any) -> Any:
    """Return dates; not even copied where all lie within the calendar, as almost all do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(chunk.view(pa.int32())).as_py()
    inside = ends["min"] is None or _FIRST <= ends["min"] <= ends["max"] <= _LAST
    return chunk if inside else arrow_times(moments(chunk))


def _decimals(chunk: Any) -> Any:
    """Read decimals of other widths; those beyond the digits that an engine takes are at their end."""
    import pyarrow as pa

    if pa.types.is_decimal128(chunk.type):
        return chunk
    precision, scale = min(chunk.type.precision, _MOST_DIGITS), chunk.type.scale
    most = Decimal((0, (9,) * precision, -scale))
    values = [None if value is None else max(most.copy_negate(), min(most, value)) for value in chunk.to_pylist()]
    return pa.array(values, pa.decimal128(precision, scale))
