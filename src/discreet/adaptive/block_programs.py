"""A function as text, so that a process that knows nothing else can run it."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self, final

from discreet.errors import InvalidParameter

__all__ = ["Program", "excerpt", "undefined"]

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


# --- excerpt: The part of a program's text that one name in it needs. ---
#
# A script that defines a function often also reads the data, right beside it. A block must not do that, and cannot; so
# it gets the statements that define what the function mentions, those that define what these mention, and no others.
# No value goes with them: whatever they bind, they compute anew from the text.


def excerpt(text: str, name: str) -> str:
    """Return the statements at the top level of a text that define a name, directly or indirectly, in their order."""
    statements = ast.parse(text).body
    needed, taken = {name}, {place for place, statement in enumerate(statements) if _is_always_needed(statement)}
    grown = True
    while grown:
        more = {
            place
            for place, statement in enumerate(statements)
            if place not in taken and needed & set(_bound(statement))
        }
        for place in more:
            needed |= {node.id for node in ast.walk(statements[place]) if isinstance(node, ast.Name)}
        taken |= more
        grown = bool(more)
    return "\n".join(ast.unparse(statements[place]) for place in sorted(taken)) + "\n"


def _is_always_needed(statement: ast.stmt) -> bool:
    """Imports from the future, and of everything: what these define cannot be told by name."""
    if not isinstance(statement, ast.ImportFrom):
        return False
    return statement.module == "__future__" or any(alias.name == "*" for alias in statement.names)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Name what a statement binds, or may bind somewhere inside."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
        return
    for node in ast.walk(statement):
        yield from _names(node)


def _names(node: ast.AST) -> Iterator[str]:
    """Name what one part of a statement binds or changes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        # `settings.rate = 2` and `table["x"] = 1` change what a name stands for.
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store()):
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
            yield name


def undefined(text: str) -> set[str]:
    """Name what a text mentions and neither defines nor finds among what every Python has."""
    nodes = list(ast.walk(ast.parse(text)))
    if any(isinstance(node, ast.alias) and node.name == "*" for node in nodes):
        return set()
    mentioned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    known = {name for node in nodes for name in (*_names(node), *_inner_names(node))}
    return mentioned - known - set(dir(builtins)) - {"__file__"}


def _inner_names(node: ast.AST) -> Iterator[str]:
    """Name what is bound inside functions and patterns only."""
    match node:
        case ast.arg(arg=str(name)) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
