"""Names and paths that are declared: what cannot be stored, or could steer a terminal or a page, is refused at once."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter

__all__ = ["check_lines", "check_name", "check_path", "escaped"]

# Controls, separators of lines, marks that turn the direction of writing, and halves of surrogate pairs.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST_NAME = 1_000  # characters
_LONGEST_PART = 255  # bytes of a part of a path, as file systems have it
_LONGEST_PATH = 4_096


def check_name(text: Any, *, name: str) -> str:
    """Refuse what is no name: no text, an empty or endless one, or one with a character that steers a screen."""
    if not isinstance(text, str) or not text.strip() or len(text) > _LONGEST_NAME:
        raise InvalidParameter(f"{name} must not be empty: write a text of at most {_LONGEST_NAME:,} characters")
    _check_steering(text, name)
    return text


def check_lines(text: Any, *, name: str) -> str:
    """The same for a text that may have several lines and be long, such as SQL."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter(f"{name} must not be empty: write a text")
    _check_steering(text.translate(dict.fromkeys(map(ord, "\n\r\t"))), name)
    return text


def _check_steering(text: str, name: str) -> None:
    found = _STEERING.search(text)
    if found is not None:
        raise InvalidParameter(
            f"{name} has the control character {escaped(found[0])}, which could steer a terminal or a page: "
            "leave it out"
        )


def check_path(path: Any, *, name: str) -> Path:
    """Refuse what cannot be the path of a file on any system; whether the file is there is not asked."""
    if not isinstance(path, (str, Path)):
        raise InvalidParameter(f"{name} must be the path of a file, as a text or a pathlib.Path")
    try:
        written = os.fsencode(path)
    except UnicodeEncodeError:
        raise InvalidParameter(f"{name} has half of a surrogate pair, which no file name can have") from None
    longest = max(map(len, re.split(rb"[/\\]", written)))
    if not written or b"\0" in written or longest > _LONGEST_PART or len(written) > _LONGEST_PATH:
        raise InvalidParameter(
            f"{name} cannot be a path: it is empty or has a NUL character, more than {_LONGEST_PATH:,} bytes, or more "
            f"than {_LONGEST_PART} in one of its parts"
        )
    return Path(path)


def escaped(text: str) -> str:
    """Write what is not printable as Python does, so that it can be read and steers nothing."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
