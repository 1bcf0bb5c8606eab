"""How a CSV file is written: declared, never guessed from rows. Its header is public and is checked here."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from discreet.errors import InvalidParameter
from discreet.schema.columns import check_format, number_format

__all__ = ["CsvFile", "csv", "fields_of", "goes_on", "header_of", "is_read_by_bytes"]

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_LONGEST_HEADER = 1 << 20  # bytes
_UTF8_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
# One byte for each character, and those of ASCII as in ASCII: no byte of a text can be taken for a delimiter.
_BY_BYTES = frozenset(
    ["cp437", "cp850", "cp852", "cp858", "cp866", "koi8-r", "koi8-u", "mac-roman"]
    + [f"cp{number}" for number in range(1250, 1259)]
    + [f"iso8859-{number}" for number in range(1, 17) if number != 12]
)
_ENCODINGS = "utf-8, latin-1, cp1252 (Windows) or another one with a byte for each character, such as iso8859-15"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile:
    """A CSV file and how it is written. `csv` makes one."""

    path: str
    delimiter: str = ","
    quote: str = '"'  # "" if nothing is quoted
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    dates: str | tuple[tuple[str, str], ...] = ""  # the format of all dates, or of those in some columns
    line_breaks: bool = True

    def __post_init__(self) -> None:
        if not _is_mark(self.delimiter):
            raise InvalidParameter('delimiter must be one character of ASCII, such as ";"')
        if self.quote and (not _is_mark(self.quote) or self.quote == self.delimiter):
            raise InvalidParameter('quote must be one character of ASCII other than the delimiter, or "" for none')
        if not isinstance(self.line_breaks, bool):
            raise InvalidParameter("line_breaks must be True or False")
        number_format(self._number)
        for pattern in [self.dates] if isinstance(self.dates, str) else [one for _, one in self.dates]:
            check_format(pattern or None)

    @property
    def _number(self) -> str:
        return f"1{self.thousands}234{self.decimal}56"

    @property
    def number_format(self) -> str | None:
        """How its numbers are written, as 1234.56 would be; None where it is as in SQL."""
        return number_format(self._number)

    def date_format(self, column: str) -> str | None:
        """How the dates of a column are written, None for ISO 8601."""
        if isinstance(self.dates, str):
            return self.dates or None
        return next((one for name, one in self.dates if name.casefold() == column.casefold()), None)

    def is_date(self, column: str) -> bool:
        """Whether a column is said to hold dates."""
        return not isinstance(self.dates, str) and self.date_format(column) is not None


def csv(
    path: str | Path,
    *,
    delimiter: str | None = None,
    quote: str = '"',
    encoding: str = "utf-8",
    decimal: str = ".",
    thousands: str = "",
    dates: str | Mapping[str, str] = "",
    line_breaks: bool = True,
) -> CsvFile:
    """Declare how a CSV file is written: delimiter, quote, encoding, decimal comma, date formats.

    It stands wherever the path of a file can. Nothing is guessed from rows; the header, which is public, is checked. A
    row that cannot be read is left out, a value that cannot be read is missing.

    Args:
        path: The private file, with a header in its first line; it may be packed (.gz).
        delimiter: What stands between fields; a comma if not said, a tab in a .tsv file.
        quote: What encloses fields that have a delimiter in them, and is doubled inside; "" if nothing is quoted.
        encoding: The encoding of texts: "utf-8", "latin-1", "cp1252" or another one with a byte for each character.
        decimal: The decimal mark of numbers: "." or ",".
        thousands: What groups digits by three, such as "." in 1.234,5; "" if nothing does.
        dates: The strptime format of dates, of all or by column, such as `{"Datum": "%d.%m.%Y"}`; else ISO 8601.
        line_breaks: Whether a quoted field may go on in the next line, as programs write it that double quotes in texts
            (RFC 4180: pandas, R, Excel, PostgreSQL). Say False only of a file in which no field has line breaks: then
            a line is a row, also where somebody forgot to double a quote.

    Returns:
        The declaration, to be used in place of the path.

    Raises:
        InvalidParameter: If something declared is not known.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("lohn.csv").write_text("Person;Lohn\\n1;2500,50\\n2;3100,00\\n", encoding="cp1252")
        >>> file = dp.csv("lohn.csv", delimiter=";", decimal=",", encoding="cp1252")
        >>> session = dp.Session(
        ...     file, unit="row", budget=dp.Budget(epsilon=1), columns={"Lohn": dp.between(0, 9000)},
        ...     ledger="memory", dataset="lohn", principal="ana",
        ... )
        >>> session.close()
    """
    if isinstance(dates, str):
        formats: str | tuple[tuple[str, str], ...] = dates
    else:
        formats = tuple(sorted(dates.items()))
    is_tabbed = Path(path).name.lower().removesuffix(".gz").endswith(".tsv")
    return CsvFile(
        path=str(path),
        delimiter=("\t" if is_tabbed else ",") if delimiter is None else delimiter,
        quote=quote,
        encoding=_encoding(encoding),
        decimal=decimal,
        thousands=thousands,
        dates=formats,
        line_breaks=line_breaks,
    )


def is_read_by_bytes(encoding: str) -> bool:
    """Whether an encoding has one byte for each character."""
    return encoding in _BY_BYTES


def _is_mark(text: str) -> bool:
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in "\n\r\0"


def _encoding(said: str) -> str:
    """Return the one name of an encoding."""
    import codecs

    try:
        found = codecs.lookup(said).name
    except (LookupError, TypeError, ValueError):
        found = ""
    if found in ("utf-8", "utf-8-sig", "ascii"):
        return "utf-8"
    if found not in _BY_BYTES:
        raise InvalidParameter(f"encoding must be {_ENCODINGS}: save the file in one of these, best in utf-8")
    return found


# --- lines: How a line is divided into fields, by itself. ---


def fields_of(line: bytes, delimiter: bytes, quote: bytes, most: int | None = None) -> list[bytes] | None:
    """Divide a row; None if a quote is not closed, or if something stands between its end and the delimiter.

    A quote is one where a field begins, and a character like others elsewhere. Beyond `most` fields nothing is read.
    """
    found = list(islice(_fields(line, delimiter, quote), most))
    return None if None in found else [field for field in found if field is not None]


def goes_on(line: bytes, delimiter: bytes, quote: bytes) -> bool:
    """Tell whether a quoted field of a line is still open at its end."""
    at = 0
    while True:
        if line.startswith(quote, at):
            at = _closing(line, quote, at + 1) + 1
            if not at:
                return True
        at = line.find(delimiter, at) + 1
        if not at:
            return False


def _fields(line: bytes, delimiter: bytes, quote: bytes) -> Iterator[bytes | None]:
    at = 0
    while True:
        if quote and line.startswith(quote, at):
            end = _closing(line, quote, at + 1)
            if end < 0 or line[end + 1 : end + 2] not in (b"", delimiter):
                yield None
                return
            yield line[at + 1 : end].replace(quote * 2, quote)
            end += 1
        else:
            end = line.find(delimiter, at)
            end = len(line) if end < 0 else end
            yield line[at:end]
        if end >= len(line):
            return
        at = end + 1


def _closing(line: bytes, quote: bytes, start: int) -> int:
    """Return where a quoted field ends, -1 if it does not."""
    while True:
        end = line.find(quote, start)
        if end < 0 or line[end + 1 : end + 2] != quote:
            return end
        start = end + 2


# --- header ---


def header_of(file: CsvFile) -> tuple[str, ...]:
    """Read the names of the columns, which are public: the first line, and nothing else of the file."""
    name = Path(file.path).name
    opened = gzip.open if name.lower().endswith(".gz") else open
    with opened(file.path, "rb") as source:
        line = source.readline(_LONGEST_HEADER)
    text = _decoded(line, file, name)
    names = _divided(text, file.delimiter, file.quote)
    if names is None or len(names) == 1:
        _check_delimiter(text, file, name)
    if not names or not all(names):
        raise InvalidParameter(
            f"the first line of {name} must name all its columns, each in one line and with its quotes closed (a frame "
            "of pandas is written so by to_csv(index=False))"
        )
    return tuple(names)


def _decoded(line: bytes, file: CsvFile, name: str) -> str:
    if line.startswith(_WIDE_MARKS) or b"\0" in line:
        raise InvalidParameter(f"{name} is written in UTF-16 or is no text: save it as CSV in UTF-8")
    if line.startswith(_UTF8_MARK) and file.encoding != "utf-8":
        raise InvalidParameter(f"{name} begins with the mark of UTF-8: leave encoding out")
    line = line.removeprefix(_UTF8_MARK).removesuffix(b"\n").removesuffix(b"\r")
    if b"\r" in line:
        raise InvalidParameter(f"the lines of {name} end in a carriage return alone: save it with line feeds (\\n)")
    try:
        return line.decode(file.encoding)
    except UnicodeDecodeError:
        raise InvalidParameter(
            f"the header of {name} is not written in {file.encoding}. {_say(file, name, 'encoding', 'cp1252')} if it "
            f"comes from Windows; there are {_ENCODINGS}"
        ) from None


def _divided(text: str, delimiter: str, quote: str) -> list[str] | None:
    fields = fields_of(text.encode(), delimiter.encode(), quote.encode())
    return None if fields is None else [field.decode() for field in fields]


def _check_delimiter(text: str, file: CsvFile, name: str) -> None:
    """Refuse a header of one column that would be several by another delimiter."""
    for other, word in _DELIMITERS.items():
        if other != file.delimiter and len(_divided(text, other, file.quote) or ()) > 1:
            said = _DELIMITERS.get(file.delimiter, repr(file.delimiter))
            raise InvalidParameter(
                f"the header of {name} is one column, divided by {said}, and has a {word} in it. "
                f"{_say(file, name, 'delimiter', other)}"
            )


def _say(file: CsvFile, name: str, option: str, value: str) -> str:
    """Say how something is declared, in Python, in TOML and on the command line."""
    written = value.replace("\t", "\\t")
    shell = "$'\\t'" if value == "\t" else f'"{value}"'
    return (
        f'Declare it: dp.csv("{name}", {option}="{written}"), or [tables.NAME.csv] with {option} = "{written}" in a '
        f"policy or plan, or --{option} {shell} on the command line"
    )
