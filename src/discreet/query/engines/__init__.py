"""Where the data live. One engine a file; each is imported only when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.query.engines.duckdb import DuckDBEngine
    from discreet.query.engines.made_up_rows import dummy_engine

__all__ = ["DuckDBEngine", "dummy_engine"]


def __getattr__(name: str) -> Any:
    if name == "DuckDBEngine":
        from discreet.query.engines.duckdb import DuckDBEngine

        return DuckDBEngine
    if name == "dummy_engine":
        from discreet.query.engines.made_up_rows import dummy_engine

        return dummy_engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
