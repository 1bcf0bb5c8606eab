"""What a task reports of the parts that it counted, and how the driver puts reports together.

A report is taken only together with all others: every part is in exactly one of them, all were sent to by the same
sources, and no unit is in two. What is refused is the constant failure: it was paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from discreet.errors import AnswerFailed
from discreet.query.bounding.byte_blocks import Block, ByteBlocks, unpacked
from discreet.query.bounding.partial_tally import PartialTally, Wanted, merged
from discreet.query.bounding.secret import Blocks
from discreet.query.engine import ExactCounts, Stage, known_keys

__all__ = ["Report", "check_parts", "check_sources", "put_together", "wanted"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """What one task counted: of which parts, sent by which sources, digests of its units, one state for each stage."""

    parts: tuple[int, ...]
    sources: tuple[int, ...]
    digests: Blocks  # of all units, or of those with the least digests: sorted
    states: tuple[PartialTally, ...]

    def to_bytes(self) -> bytes:
        blocks = ByteBlocks()
        said = {
            "parts": self.parts,
            "sources": self.sources,
            "digests": blocks.add(np.ascontiguousarray(self.digests, "<u8").tobytes()),
            "states": [blocks.add(state.to_bytes()) for state in self.states],
        }
        return blocks.packed(said)

    @classmethod
    def from_bytes(cls, written: Block) -> Report:
        said, blocks = unpacked(written)
        return cls(
            parts=tuple(said["parts"]),
            sources=tuple(said["sources"]),
            digests=np.frombuffer(blocks[said["digests"]], "<u8").reshape(-1, 2),
            states=tuple(PartialTally.from_bytes(blocks[place]) for place in said["states"]),
        )


def check_parts(reports: Sequence[Report], parts: int, sources: int) -> None:
    """Refuse a part that is missing or counted twice, one that lacks one of so many sources, and a unit in two tasks.

    Digests are of what tells units apart in the count, not of what routed them: a rule that routes one unit to two
    tasks is found here. Of a task with very many units the least digests are compared, the same units in all tasks.
    """
    if sorted(part for report in reports for part in report.parts) != list(range(parts)):
        raise AnswerFailed
    if any(len({*report.sources}) != sources for report in reports if report.parts):
        raise AnswerFailed
    if len({report.sources for report in reports if report.parts}) > 1:
        raise AnswerFailed
    every = np.concatenate([np.zeros((0, 2), np.uint64), *(report.digests for report in reports)])
    if len(np.unique(every, axis=0)) != len(every):
        raise AnswerFailed


def check_sources(reports: Sequence[Report], sources: int) -> None:
    """Refuse what is missing or counted twice of rows that were counted where they are, in so many sources.

    A source numbers what it counted from 0 on, and says last how much there was.
    """
    by_source: dict[int, list[tuple[int, ...]]] = {}
    for report in reports:
        (source,) = report.parts
        by_source.setdefault(source, []).append(report.sources)
    if sorted(by_source) != list(range(sources)):
        raise AnswerFailed
    for turns in by_source.values():
        last = [one for one in turns if len(one) > 1]
        counted = sorted(turn[0] for turn in turns if len(turn) == 1)
        if len(last) != 1 or counted != list(range(last[0][0])):
            raise AnswerFailed


def wanted(stage: Stage) -> tuple[Wanted, ...]:
    """Say what the whole tells of the kept values of each column."""
    return tuple(Wanted(distinct=one.wants.distinct, values=one.wants.values) for one in stage.columns)


def put_together(stages: Sequence[Stage], states: Sequence[Sequence[PartialTally]]) -> tuple[ExactCounts, ...]:
    """Add up the states of all reports, stage by stage; there is one at least."""
    return tuple(_whole(stage, [one[place] for one in states]) for place, stage in enumerate(stages))


def _whole(stage: Stage, parts: Sequence[PartialTally]) -> ExactCounts:
    is_known = all(key.domain is not None for key in stage.keys)
    groups = prod(len(key.domain or ()) for key in stage.keys) if is_known else 0
    tally, found = merged(parts, groups, wanted(stage))
    if found is None and not is_known:
        return ExactCounts(groups=0, tally=tally, keys=lambda _: [])
    keys = known_keys(stage) if found is None else found.values
    return ExactCounts(groups=groups if found is None else found.size, tally=tally, keys=keys, found=found)
