"""The part of a program's text that one name in it needs.

A script that defines a function often also reads the data, right beside it. A block must not do that, and cannot; so
it gets the statements that define what the function mentions, those that define what these mention, and no others.
No value goes with them: whatever they bind, they compute anew from the text.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

__all__ = ["excerpt", "undefined"]


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
