"""Say what to install where an optional library is missing."""

from __future__ import annotations

from importlib.util import find_spec

from discreet.errors import MissingLibrary

__all__ = ["require"]


def require(*libraries: str, extra: str) -> None:
    """Raise if one of these libraries is missing, with the command that brings it."""
    missing = next((library for library in libraries if find_spec(library) is None), None)
    if missing is not None:
        raise MissingLibrary(
            f"this needs {missing}, which is not installed: pip install 'discreet[{extra}]'", name=missing
        )
