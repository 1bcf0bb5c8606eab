"""Keys of an answer: what each is called, and which of its values are public."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from discreet.errors import InvalidParameter
from discreet.query.expressions import Expression
from discreet.query.question import Key, KeyValue, OutputColumn
from discreet.query.reading.domains import domain_of, listed_domain
from discreet.query.reading.scopes import Context, Scope, ScopeColumn

__all__ = ["keys_with_domains"]

_Lists = Mapping[str, Sequence[Hashable]]


def keys_with_domains(
    context: Context, scope: Scope, keys: Sequence[Expression], outputs: Sequence[OutputColumn], given: _Lists
) -> tuple[Key, ...]:
    """Name keys as the answer does, and list their values: as given, or as found, or as public facts have it."""
    lists = {name.lower(): values for name, values in given.items()}
    shown = [[output.name for output in outputs if output.value == KeyValue(place)] for place in range(len(keys))]
    found = [
        _key(context, expression, names, _column(scope, expression), lists)
        for expression, names in zip(keys, shown, strict=True)
    ]
    unused = sorted(set(lists) - {name for _, name in found})
    if unused:
        raise InvalidParameter(f"keys are given for {unused[0]}, which is no key of this question")
    return tuple(key for key, _ in found)


def _column(scope: Scope, expression: Expression) -> ScopeColumn | None:
    columns = (column for part in scope.parts for column in part.columns)
    return next((column for column in columns if column.field == expression), None)


def _key(
    context: Context, expression: Expression, shown: Sequence[str], column: ScopeColumn | None, lists: _Lists
) -> tuple[Key, str]:
    """Return a key, and under which name its values were given, if they were."""
    names = [*shown, *([] if column is None else [column.name, column.origin or column.name])]
    name = names[0] if names else "key"
    chosen = next((entry.lower() for entry in names if entry.lower() in lists), "")
    if chosen:
        return Key(name, expression, listed_domain(name, lists[chosen], expression.facts.kind)), chosen
    stored = {entry.lower(): values for entry, values in context.catalogue.keys.items()}
    origin = "" if column is None or column.origin is None else column.origin.lower()
    return Key(name, expression, stored[origin] if origin in stored else domain_of(expression)), ""
