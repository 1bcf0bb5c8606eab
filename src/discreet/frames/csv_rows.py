"""Rows of a CSV file as Arrow, block by block. A line is a row, and no line changes how another one is read.

A reader that goes on in the next line where a quote is not closed takes all rows up to the next quote for one: one
person's row would hide others. So a line that cannot be read is left out by itself, and a field that is not written in
the encoding is missing. Most lines are divided all at once; those with fewer fields or odd quotes are one by one.
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

LONGEST_LINE = 1 << 21  # bytes; a longer line is left out
_BLOCK = 1 << 20
_LINE_FEED = 10
_Flags: TypeAlias = NDArray[np.bool_]  # of lines, or of signs


@final
@dataclass(frozen=True)
class CsvRows:
    """All lines of a file but the first, each as a list of `width` texts. DuckDB reads it as often as it likes."""

    path: str
    width: int
    delimiter: bytes
    quote: bytes
    encoding: str  # utf-8, or one with a byte for each character
    divide: Callable[[bytes, bytes, bytes], list[bytes] | None]  # of one line

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
        """Read whole lines, each with its line feed. A line that is too long is left out, wherever blocks begin."""
        opened = gzip.open if self.path.lower().endswith(".gz") else open
        with opened(self.path, "rb") as file:
            _skip_line(file)
            begun = b""
            while part := file.read(_BLOCK):
                begun += part
                end = begun.rfind(b"\n") + 1
                if end:
                    yield begun[:end]
                    begun = begun[end:]
                if len(begun) > LONGEST_LINE + 1:
                    begun = b""
                    _skip_line(file)
            if begun:
                yield begun + b"\n"

    def _texts(self, block: bytes) -> Iterator[pa.Array]:
        """Divide a block: the lines that are alike at once, then the others one by one."""
        block, others = block.replace(b"\r\n", b"\n") if b"\r" in block else block, list[bytes]()
        for odd in (_long_lines, self._lines_not_text):
            block = _without(odd(block), block, others)
        signs = self._signs(block)
        for check in (_SignsOfBlock.open_lines, _SignsOfBlock.odd_lines, self._lines_of_other_width):
            # What is said of a line holds for it alone, but for where quotes are open: that is known of what is left.
            left = _without(check(signs), block, others)
            signs = signs if left is block else self._signs(left)
            block = left
        if block:
            yield self._at_once(block, signs)
        rows = [row for line in others if (row := self._one(line)) is not None]
        if rows:
            import pyarrow as pa

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

    def _lines_of_other_width(self, signs: _SignsOfBlock) -> _Flags:
        """Whether there are more or fewer fields than columns; an empty line of several columns has fewer."""
        return np.asarray(np.diff(np.flatnonzero(signs.is_end[signs.is_separator]), prepend=-1) != self.width)

    def _at_once(self, block: bytes, signs: _SignsOfBlock) -> pa.Array:
        """Return the fields of all lines, row by row: what is left once separators and quotes are taken away."""
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
        """Divide one line; missing fields are NULL, more than there are columns are not read."""
        if len(line) > LONGEST_LINE or (not line and self.width > 1):
            return None
        fields = self.divide(line, self.delimiter, self.quote)
        if fields is None:
            return None
        read = [self._text(field) for field in fields[: self.width]]
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
