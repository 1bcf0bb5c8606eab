"""Rows of a CSV file as Arrow, block by block. No row changes how another one is read.

What a row is follows from how the file was written, which is declared. A program that quotes as RFC 4180 says may put
line breaks into quoted fields, and then a row ends with the first line break outside of quotes: read line by line, a
person's text could be taken for rows of others. Where no field has line breaks, a line is a row: then a quote that
somebody forgot to double hides no other row. A row that cannot be read is left out by itself, and a field that is not
written in the encoding is missing. Most rows are divided all at once; those with odd quotes are one by one.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LONGEST_LINE", "CsvRows"]

LONGEST_LINE = 1 << 21  # bytes; a longer row is left out
_BLOCK = 1 << 20
_CELLS = 1 << 20  # of a batch: lines that are much shorter than rows become many cells
_LINE_FEED = 10
_Flags: TypeAlias = NDArray[np.bool_]  # of lines, or of signs


@final
@dataclass(frozen=True)
class CsvRows:
    """All rows of a file but the header, each as a list of `width` texts. DuckDB reads it as often as it likes."""

    path: str
    width: int
    delimiter: bytes
    quote: bytes
    encoding: str  # utf-8, or one with a byte for each character
    divide: Callable[[bytes, bytes, bytes, int], list[bytes] | None]  # of one row, up to so many fields
    is_open: Callable[[bytes, bytes, bytes], bool]  # whether a quoted field goes on in the next line
    line_breaks: bool = True  # whether quoted fields may have them

    @cached_property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([("f", pa.list_(pa.string(), self.width))])

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for block in self._blocks():
            for texts in self._texts(block):
                rows = pa.FixedSizeListArray.from_arrays(texts, self.width)
                yield pa.record_batch([rows], schema=self.schema)

    def _blocks(self) -> Iterator[bytes]:
        """Read whole rows, each with its line feed. A row that is too long is left out, wherever blocks begin."""
        opened = gzip.open if self.path.lower().endswith(".gz") else open
        with opened(self.path, "rb") as file:
            _skip_line(file)
            begun = b""
            while part := file.read(_BLOCK):
                begun += part
                end = self._end_of_rows(begun)
                if end:
                    yield begun[:end]
                    begun = begun[end:]
                if len(begun) > LONGEST_LINE + 1:
                    self._skip_row(file, begun)
                    begun = b""
            if begun:
                yield begun + b"\n"

    def _end_of_rows(self, begun: bytes) -> int:
        """Return where the last row ends that is there as a whole; 0 if there is none."""
        end = begun.rfind(b"\n") + 1
        _, is_begun_in = self._rows_of_lines(begun[:end])
        return end if is_begun_in is None else _line_starts(begun[:end])[is_begun_in]

    def _skip_row(self, file: Any, begun: bytes) -> None:
        """Read to the end of a row of which this much is known."""
        first = begun.partition(b"\n")[0]
        is_open = (
            self._may_go_on and self.is_open(first, self.delimiter, self.quote) and begun.count(self.quote) % 2 == 1
        )
        while part := file.readline(_BLOCK):
            is_open ^= self._may_go_on and part.count(self.quote) % 2 == 1
            if part.endswith(b"\n") and not is_open:
                return

    @property
    def _may_go_on(self) -> bool:
        return self.line_breaks and bool(self.quote)

    def _rows_of_lines(self, block: bytes) -> tuple[list[tuple[int, int]], int | None]:
        """Find rows of several lines: the first and the last line of each, and where one begins that does not end.

        A line with an even number of quotes opens and closes as many, so only the others are looked at.
        """
        if not self._may_go_on or self.quote not in block:
            return [], None
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _LINE_FEED)
        quotes = np.diff(np.searchsorted(np.flatnonzero(data == self.quote[0]), ends), prepend=0)
        odd = np.flatnonzero(quotes & 1).tolist()
        starts = _line_starts(block) if odd else ends
        rows, begun = list[tuple[int, int]](), None
        for line in odd:
            if begun is not None:
                rows.append((begun, line))
                begun = None
            elif self.is_open(block[starts[line] : ends[line]], self.delimiter, self.quote):
                begun = line
        return rows, begun

    def _texts(self, block: bytes) -> Iterator[pa.Array]:
        """Divide a block: the lines that are alike at once, then the others one by one."""
        block, others = block.replace(b"\r\n", b"\n") if b"\r" in block else block, list[bytes]()
        block = self._without_rows_of_lines(block, others)
        for odd in (_long_lines, self._lines_not_text):
            block = _without(odd(block), block, others)
        signs = self._signs(block)
        for check in (_SignsOfBlock.open_lines, _SignsOfBlock.odd_lines, self._lines_with_more):
            # What is said of a line holds for it alone, but for where quotes are open: that is known of what is left.
            left = _without(check(signs), block, others)
            signs = signs if left is block else self._signs(left)
            block = left
        if block:
            yield from self._at_once(block, signs)
        yield from self._one_by_one(others)

    def _without_rows_of_lines(self, block: bytes, others: list[bytes]) -> bytes:
        """Take rows of several lines out of a block; one that does not end, at the end of the file, is left out."""
        rows, begun = self._rows_of_lines(block)
        if not rows and begun is None:
            return block
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _LINE_FEED)
        starts = _line_starts(block)
        is_taken = np.zeros(len(ends), bool)
        is_taken[len(ends) if begun is None else begun :] = True
        for first, last in rows:
            is_taken[first : last + 1] = True
            others.append(block[starts[first] : ends[last]])
        left: bytes = data[np.repeat(~is_taken, ends + 1 - starts[:-1])].tobytes()
        return left

    def _one_by_one(self, lines: list[bytes]) -> Iterator[pa.Array]:
        import pyarrow as pa

        most = max(1, _CELLS // self.width)
        for first in range(0, len(lines), most):
            rows = [row for line in lines[first : first + most] if (row := self._one(line)) is not None]
            if rows:
                yield pa.array([text for row in rows for text in row], pa.string())

    def _signs(self, block: bytes) -> _SignsOfBlock:
        data = np.frombuffer(block, np.uint8)
        is_sign = (data == self.delimiter[0]) | (data == _LINE_FEED)
        if self.quote and self.quote in block:
            is_sign |= data == self.quote[0]
        places = np.flatnonzero(is_sign)
        found = data[places]
        is_quote = found == self.quote[0] if self.quote else np.zeros(len(found), bool)
        return _SignsOfBlock(places, is_quote, found == _LINE_FEED)

    def _lines_not_text(self, block: bytes) -> _Flags | None:
        if self.encoding != "utf-8":
            odd = np.flatnonzero(~self._is_defined[np.frombuffer(block, np.uint8)])
            return _marked(odd, np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)) if len(odd) else None
        if _is_utf8(block):
            return None
        return np.array([not _is_utf8(line) for line in block.split(b"\n")[:-1]])

    def _lines_with_more(self, signs: _SignsOfBlock) -> _Flags:
        """Whether there are more fields than columns."""
        return np.asarray(signs.fields > self.width)

    def _at_once(self, block: bytes, signs: _SignsOfBlock) -> Iterator[pa.Array]:
        """Return the fields of all lines, row by row; those that are missing at the end of a line are NULL."""
        import pyarrow as pa

        texts, fields = self._divided(block, signs), signs.fields
        if (fields == self.width).all():
            yield texts
            return
        first = np.concatenate(([0], np.cumsum(fields)))[:-1]
        # A line without anything in it is no row, but for tables of one column.
        is_row = np.diff(signs.places[signs.is_end], prepend=-1) > 1 if self.width > 1 else np.ones(len(fields), bool)
        first, fields = first[is_row], fields[is_row]
        columns, most = np.arange(self.width), max(1, _CELLS // self.width)
        for start in range(0, len(fields), most):
            rows = slice(start, start + most)
            places = (first[rows, None] + columns).ravel()
            is_missing = (columns >= fields[rows, None]).ravel()
            yield texts.take(pa.array(places, mask=is_missing))

    def _divided(self, block: bytes, signs: _SignsOfBlock) -> pa.Array:
        """Return the fields of a block: what is left once separators and quotes are taken away."""
        import pyarrow as pa

        data = np.frombuffer(block, np.uint8)
        is_dropped = ~signs.is_kept
        dropped = signs.places[is_dropped]
        ranks = np.flatnonzero(signs.is_separator[is_dropped])
        ends = dropped[ranks] - ranks  # where each field ends in what is left
        is_left = np.ones(len(data), bool)
        is_left[dropped] = False
        texts = data[is_left]
        if self.encoding != "utf-8" and not block.isascii():
            ends = np.concatenate(([0], np.cumsum(self._sizes[texts], dtype=np.int64)))[ends]
            texts = np.frombuffer(texts.tobytes().decode(self.encoding).encode(), np.uint8)
        offsets = np.concatenate(([0], ends)).astype(np.int32)
        return pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(texts)])

    def _one(self, line: bytes) -> list[str | None] | None:
        """Divide one row; missing fields are NULL, more than there are columns are not read."""
        if len(line) > LONGEST_LINE or (not line and self.width > 1):
            return None
        if not self.line_breaks and self.quote and line.count(self.quote) % 2:
            return None  # It may be part of a row whose text has line breaks after all.
        fields = self.divide(line, self.delimiter, self.quote, self.width)
        if fields is None:
            return None
        read = [self._text(field) for field in fields]
        return read + [None] * (self.width - len(read))

    def _text(self, field: bytes) -> str | None:
        try:
            return field.decode(self.encoding)
        except UnicodeDecodeError:
            return None

    @cached_property
    def _characters(self) -> list[str]:
        return [bytes([byte]).decode(self.encoding, "ignore") for byte in range(256)]

    @cached_property
    def _is_defined(self) -> _Flags:
        return np.array([bool(character) for character in self._characters])

    @cached_property
    def _sizes(self) -> NDArray[np.uint8]:
        return np.array([len(character.encode()) for character in self._characters], np.uint8)


def _skip_line(file: Any) -> None:
    while (part := file.readline(_BLOCK)) and not part.endswith(b"\n"):
        pass


@final
@dataclass(frozen=True)
class _SignsOfBlock:
    """Delimiters, quotes and line feeds of a block, in their order."""

    places: NDArray[np.int64]
    is_quote: _Flags
    is_end: _Flags

    @cached_property
    def is_inside(self) -> _Flags:
        """Whether the number of quotes up to each is odd: true of quotes that open, and of what they enclose."""
        return np.bitwise_xor.accumulate(self.is_quote.view(np.uint8)).view(bool)

    @cached_property
    def is_separator(self) -> _Flags:
        return np.asarray(self.is_end | ~(self.is_quote | self.is_inside))

    @cached_property
    def fields(self) -> NDArray[np.int64]:
        """How many fields each line has."""
        return np.diff(np.flatnonzero(self.is_end[self.is_separator]), prepend=-1)

    @cached_property
    def is_before_another(self) -> _Flags:
        """Whether the next byte is a sign too."""
        return np.asarray(np.diff(self.places, append=-1) == 1)

    @property
    def is_kept(self) -> _Flags:
        """Which are part of a text: delimiters in quotes, and the first of two quotes, which closes before another."""
        is_first = self.is_before_another & ~self.is_inside
        is_first[:-1] &= self.is_quote[1:]
        return np.asarray(np.where(self.is_quote, is_first, self.is_inside & ~self.is_end))

    def open_lines(self) -> _Flags | None:
        """Whether a quote of a line is not closed."""
        if not self.is_quote.any():
            return None
        at_ends = self.is_inside[self.is_end]
        return np.diff(at_ends, prepend=False)

    def odd_lines(self) -> _Flags | None:
        """Whether a quote of a line is neither at an end of a field nor doubled within one; all of them are closed."""
        if not self.is_quote.any():
            return None
        is_after_another = np.concatenate(([self.places[0] == 0], self.is_before_another[:-1]))
        fits = np.where(self.is_inside, is_after_another, self.is_before_another)
        return _marked(np.flatnonzero(self.is_quote & ~fits), np.flatnonzero(self.is_end))


def _long_lines(block: bytes) -> _Flags | None:
    if len(block) <= LONGEST_LINE:
        return None
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)
    return np.diff(ends, prepend=-1) > LONGEST_LINE + 1


def _line_starts(block: bytes) -> NDArray[np.int64]:
    """Return where lines begin, and where another one would."""
    return np.concatenate(([0], np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED) + 1))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _marked(marks: NDArray[np.int64], ends: NDArray[np.int64]) -> _Flags:
    """Return of each line whether one of some places is in it, from the places where lines end."""
    found = np.zeros(len(ends), bool)
    found[np.searchsorted(ends, marks)] = True
    return found


def _without(found: _Flags | None, block: bytes, others: list[bytes]) -> bytes:
    """Take some lines out of a block, put them to others without their line feeds, and return what is left."""
    if found is None or not found.any():
        return block
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == _LINE_FEED)
    starts = np.concatenate(([0], ends[:-1] + 1))
    others += [block[starts[place] : ends[place]] for place in np.flatnonzero(found)]
    return data[np.repeat(~found, ends + 1 - starts)].tobytes()
