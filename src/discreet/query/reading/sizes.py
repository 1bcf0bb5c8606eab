"""How large a tree is when it is written out. A few shared nodes, doubled again and again, would be a forest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, final

from discreet.query.expressions import Apply, Case, Expression
from discreet.query.question import Choose, Combine, Post

__all__ = ["LARGEST_TREE", "Sizes"]

_Node: TypeAlias = Expression | Post
LARGEST_TREE = 20_000  # nodes; a list of 10,000 constants has half of them


@final
@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of trees by identity: each node is looked at once, however often it occurs. Keeps the nodes alive."""

    known: dict[int, tuple[_Node, int]] = field(default_factory=dict)

    def of(self, node: _Node) -> int:
        """Return the number of nodes of a tree, written out."""
        waiting = [node]
        while waiting:
            current = waiting[-1]
            missing = [part for part in _parts(current) if id(part) not in self.known]
            if id(current) in self.known or not missing:
                waiting.pop()
                self.known[id(current)] = current, 1 + sum(self.known[id(part)][1] for part in _parts(current))
            else:
                waiting += missing
        return self.known[id(node)][1]


def _parts(node: _Node) -> list[_Node]:
    match node:
        case Apply() | Combine():
            return list(node.arguments)
        case Case() | Choose():
            return [part for branch in node.branches for part in branch] + [node.otherwise]
    return []
