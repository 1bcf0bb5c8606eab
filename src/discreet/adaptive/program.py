"""A function as text, so that a process that knows nothing else can run it."""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self, final

from discreet.adaptive.excerpt import excerpt, undefined
from discreet.errors import InvalidParameter

__all__ = ["Program"]

_PARSING = Lock()
# Parts that a library would import when first used, when it is too late.
_LATE = {
    "collections": ("heapq",),
    "datetime": ("_strptime",),
    "numpy": tuple(f"numpy.{part}" for part in ("fft", "linalg", "ma", "polynomial", "random")),
    "statistics": ("heapq",),
    "time": ("_strptime",),
}
_WAY_OUT = (
    "put it at the top level of a file, with installed libraries only, or say trusted=True for one that you vouch for"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Where a function comes from: a module that is installed, or a text that defines it. It is public.

    The text may import installed libraries. They are imported before it is read, since a block opens no file; a
    library that imports more when it is used needs that named by an import in the text as well.
    """

    name: str  # of the function in its module, dotted for one in a class
    module: str | None = None  # one that is installed; or
    source: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.module is None) == (self.source is None):
            raise InvalidParameter("say either module or source")
        if not all(part.isidentifier() for part in self.name.split(".")):
            raise InvalidParameter("name must be the name of a function")
        _ = self.libraries
        if self.source is not None and (missing := undefined(self.source)):
            raise InvalidParameter(
                f"{self.name} needs what its text does not define: {', '.join(sorted(missing))}. Import or define that "
                "in the same file, or inside the function where there is no file"
            )

    @classmethod
    def of(cls, function: Callable[[Any], Any]) -> Self:
        """Find the text of a function and of what it mentions, or refuse one that is more than its text."""
        name, place = getattr(function, "__qualname__", ""), getattr(function, "__module__", None)
        if "<" in name or not name or place not in sys.modules:
            raise InvalidParameter(f"a function without a name of its own cannot be run elsewhere: {_WAY_OUT}")
        if _is_installed(place):
            return cls(name=name, module=place)
        try:
            whole = inspect.getsource(sys.modules[place])
        except (OSError, TypeError):
            return cls(name=name, source=_alone(function))
        return cls(name=name, source=excerpt(whole, name.partition(".")[0]))

    @property
    def libraries(self) -> tuple[str, ...]:
        """What is imported before the function is read."""
        try:
            named = [self.module] if self.module is not None else _imported(self.source or "")
        except (SyntaxError, ValueError):
            raise InvalidParameter("source must be Python") from None
        late = [part for name in named for part in _LATE.get(name.partition(".")[0], ())]
        return tuple(dict.fromkeys([*named, *late]))


def _imported(source: str) -> list[str]:
    """Name what a text imports. Parsers of two threads disturb each other's count of depth in some Pythons."""
    with _PARSING:
        return list(_imports(ast.parse(source)))


def _alone(function: Callable[[Any], Any]) -> str:
    """Return the text of a function that was typed in, without what stood around it: it must import for itself."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise InvalidParameter(f"the text of this function cannot be found: {_WAY_OUT}") from None


def _imports(tree: ast.AST) -> Iterator[str]:
    """Name every module that is imported anywhere, and everything that may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")


def _is_installed(name: str) -> bool:
    """Tell whether a fresh interpreter finds a module among its libraries."""
    if name == "__main__":
        return False
    top = sys.modules.get(name.partition(".")[0])
    file = getattr(top, "__file__", None)
    if top is None or file is None:
        return name in sys.builtin_module_names
    folders = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).resolve().is_relative_to(Path(folder).resolve()) for folder in folders)
