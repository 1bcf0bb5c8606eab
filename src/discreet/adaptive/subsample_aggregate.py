"""Any function of the data, privately: on many blocks of it, each by itself, and one private answer of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations, product
from math import factorial
from typing import Any, TypeAlias, final

from discreet.adaptive.aggregators import Aggregator
from discreet.adaptive.block_worker import spoken, unpacked
from discreet.adaptive.blocks import Records, all_assignments, assign, read_records, rows_of
from discreet.adaptive.charging import charge
from discreet.adaptive.isolation import FAILED, BlockLimits, BlockRows, heard, probe, run_blocks
from discreet.adaptive.program import Program
from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive_integer
from discreet.mechanisms.fields import read_flag, read_relation, settle
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.events import GDP, ZCDP, ApproxDP, Event, Grouped, PureDP
from discreet.privacy.leaves import leaves
from discreet.privacy.notprivate import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["Progress", "SubsampleAndAggregate"]

Progress: TypeAlias = Callable[[int, int], None]  # How many blocks are done, of how many.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsampleAndAggregate:
    """Run a function on blocks of the data that were drawn at random, and aggregate its answers privately.

    Each record draws `memberships` of the blocks for itself. The function may be anything: it is run in a process
    of its own for each block, which can compute and answer and nothing else, within limits that are public. If it
    wants random numbers, the operating system gives it fresh ones. A block that fails has the answer that the
    aggregator declares. With `trusted=True` it is run right here, and whoever says so vouches that what it returns
    for some rows depends on these rows only, and that it ends.

    Guarantee   that of the aggregator, under either relation; for more memberships than it allows for, that of a
                group of as many.
    Theorem     A record that comes, goes or changes changes what its own blocks hold, whatever was drawn, and so as
                many answers as it has memberships: for the aggregator these are replaced. [NRS07, ST13]
    Utility     that of the aggregator, if the function says much the same on a small part of the data as on all.
    """

    function: Callable[[Any], Any] | Program
    aggregator: Aggregator
    relation: Relation
    memberships: int = 1  # blocks that each record is in
    limits: BlockLimits = field(default_factory=BlockLimits)
    trusted: bool = False

    def __post_init__(self) -> None:
        read_relation(self.relation)
        read_flag(self.trusted, name="trusted")
        settle(self, memberships=positive_integer(self.memberships, name="memberships"))
        if self.memberships > self.aggregator.blocks:
            raise InvalidParameter("a record cannot be in more blocks than there are")
        if self.trusted and not callable(self.function):
            raise InvalidParameter("a program is run in a process of its own: give the function itself to trust it")
        if not self.trusted and not isinstance(self.function, Program):
            settle(self, function=Program.of(self.function))
        _ = self.event

    @property
    def event(self) -> Event:
        own, times = self.aggregator.event, -(-self.memberships // self.aggregator.entries)
        if times == 1:
            return own
        # Other events are statements about one step between neighbours, of which a group's do not follow.
        if not isinstance(own, (PureDP, ApproxDP, ZCDP, GDP)):
            raise InvalidParameter("this aggregator must be told how many answers one unit replaces: entries=…")
        return Grouped(own, times)

    def release(self, data: Any, *, session: Payer | None = None, progress: Progress | None = None) -> Release[Any]:
        """Try the function without data, charge, then run all blocks and aggregate."""
        self._check()
        charge(self, session, purpose="subsample and aggregate")
        release = self.aggregator.release(self._drawn(data, progress))
        return replace(release, event=self.event, relation=self.relation, delta=self._quoted(release.delta))

    def rehearse(self, rows: Any) -> Any:
        """Return what a block would say about made-up rows, as the aggregator reads it; refuse if it fails."""
        self._check()
        records = read_records(rows)
        (answer,) = self._hasty._answers([rows_of(records, range(len(records)))], None)
        if answer is FAILED:
            raise Refused("a block fails on these rows: they or the function need another look, or other limits")
        return self.aggregator.read(answer)

    def distribution(self, data: Any) -> Outcomes:
        """List the law of the release over all assignments and orders of rows, for a few records."""
        weights: Counter[tuple[Hashable, ...]] = Counter()
        total = 0
        for answers, weight in self._hasty._all_answers(read_records(data)):
            # Which block said what does not matter to an aggregator.
            weights[tuple(sorted(answers, key=repr))] += weight
            total += weight
        return outcomes.mixture((Fraction(w, total), self.aggregator.distribution(a)) for a, w in weights.items())

    def true_answers(self, data: Any) -> NotPrivate[tuple[Any, ...]]:
        """Tell the custodian what each block says, for one assignment."""
        self._check()
        return NotPrivate(tuple(self._drawn(data, None)))

    @property
    def _hasty(self) -> SubsampleAndAggregate:
        """The same without padding, for made-up data, of which there is nothing to hide."""
        return replace(self, limits=replace(self.limits, padded=False))

    def _check(self) -> None:
        if isinstance(self.function, Program):
            probe(self.function, self.limits)

    def _drawn(self, data: Any, progress: Progress | None) -> list[Hashable]:
        records = read_records(data)
        chosen = assign(len(records), blocks=self.aggregator.blocks, memberships=self.memberships)
        answers = self._answers([rows_of(records, block) for block in chosen], progress)
        return [self.aggregator.read(answer) for answer in answers]

    def _answers(self, blocks: Sequence[BlockRows], progress: Progress | None) -> list[Any]:
        if isinstance(self.function, Program):
            return run_blocks(self.function, blocks, self.limits, progress)
        answers = []
        for block in blocks:
            answers.append(_answer_here(self.function, block))
            if progress is not None:
                progress(len(answers), len(blocks))
        return answers

    def _all_answers(self, records: Records) -> Iterator[tuple[tuple[Hashable, ...], int]]:
        known: dict[tuple[int, ...], Counter[Hashable]] = {}
        whole = factorial(len(records))
        for blocks in all_assignments(len(records), blocks=self.aggregator.blocks, memberships=self.memberships):
            for block in blocks:
                if block not in known:
                    known[block] = self._in_any_order(records, block)
            for answers in product(*(known[block].items() for block in blocks)):
                weight = whole ** len(blocks)
                for block, (_, count) in zip(blocks, answers, strict=True):
                    weight = weight * count // factorial(len(block))
                yield tuple(answer for answer, _ in answers), weight

    def _in_any_order(self, records: Records, block: tuple[int, ...]) -> Counter[Hashable]:
        packed = Counter(rows_of(records, order) for order in permutations(block))
        counted: Counter[Hashable] = Counter()
        for answer, times in zip(self._answers(list(packed), None), packed.values(), strict=True):
            counted[self.aggregator.read(answer)] += times
        return counted

    def _quoted(self, delta: Fraction | None) -> Fraction | None:
        """Return the delta to quote the cost at: the aggregator's, or what that is for a group."""
        (leaf, *more) = leaves(self.event, relation=self.relation)
        return leaf.delta if isinstance(leaf, ApproxDP) and not more else delta


def _answer_here(function: Callable[[Any], Any], block: BlockRows) -> Any:
    """Run a trusted function on a copy of its rows; the answer goes the way of all answers."""
    # Whatever is raised may hold data, and that it was raised is the answer of this block and of no other.
    with suppress(Exception, SystemExit):
        return heard(spoken(function(unpacked(block.packed, array=block.array))).encode())
    return FAILED
