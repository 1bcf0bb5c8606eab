"""Subsample and aggregate: any function on many random blocks of the data, and one private answer of all."""

from __future__ import annotations

import io
import marshal
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations, product
from math import factorial
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.adaptive.aggregators import Aggregator, BlockMode
from discreet.adaptive.block_runner import FAILED, BlockLimits, BlockRows, Program, heard, probe, run_blocks
from discreet.adaptive.block_sandbox import spoken, unpacked
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact, positive_integer
from discreet.formatting import record
from discreet.frames.column import Column, column_of
from discreet.mechanisms.parameters import read_flag, settle
from discreet.mechanisms.release import Release
from discreet.privacy import outcomes
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import GDP, ZCDP, ApproxDP, Event, Grouped, PureDP
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

__all__ = [
    "Progress",
    "Records",
    "SubsampleAndAggregate",
    "all_assignments",
    "assign",
    "blocks_needed",
    "read_records",
    "release_if_subsampling_stable",
    "rows_of",
]

# --- blocks ---
# Which record is in which block, by fresh secret randomness alone, and the rows of a block as they are sent.
#
# Every record draws its blocks for itself. So one record more or less changes what its own blocks hold and nothing
# else; blocks by position would all shift. The rows of a block are in random order, which tells nothing of others.


Records: TypeAlias = NDArray[Any] | list[Any]

_DEEPEST = 16  # Nested lists in a record.
_MOST_ASSIGNMENTS = 1 << 16


def read_records(data: Any) -> Records:
    """Take an array with one record a row, a column, or a sequence of records; tables are refused.

    What kind of numbers an array holds is public. How wide its texts are is not: one of them decides it for all, and
    every block would see that. So texts become a list.
    """
    if isinstance(data, np.ndarray) and not isinstance(data, np.ma.MaskedArray):
        if data.ndim == 0:
            raise InvalidParameter("data must have one record a row")
        return data if _has_one_width(data.dtype) else data.tolist()
    if isinstance(data, (Column, np.ma.MaskedArray)):
        return column_of(data).objects()
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise InvalidParameter(f"data must be an array or a sequence of records, not {type(data).__name__}")
    return list(data)


def _has_one_width(kind: np.dtype[Any]) -> bool:
    """Tell whether values of a type are of one size, whatever they are: not objects, and not texts or bytes."""
    if kind.names is None:
        return kind.base.kind in "biufcmM"
    return all(_has_one_width(kind[name]) for name in kind.names)


def assign(count: int, *, blocks: int, memberships: int) -> list[NDArray[np.int64]]:
    """Draw `memberships` different blocks for each of `count` records; return the records of each block, shuffled."""
    drawn = _subsets(count, blocks, memberships)
    records, labels = np.repeat(np.arange(count), memberships), drawn.ravel()
    order = noise.permutation(len(labels)) if len(labels) else np.zeros(0, np.int64)
    order = order[np.argsort(labels[order], kind="stable")]
    ends = np.cumsum(np.bincount(labels, minlength=blocks))
    return np.split(records[order], ends[:-1])


def _subsets(count: int, blocks: int, size: int) -> NDArray[np.int64]:
    """Draw a subset of the blocks in each row, all of this size equally likely. [BF87]

    Numbers are drawn from more and more of the blocks; where one repeats, the newest block is taken instead.
    """
    chosen = np.zeros((count, size), np.int64)
    for place, last in enumerate(range(blocks - size, blocks)):
        drawn = noise.uniform(last + 1, size=count)
        again = (chosen[:, :place] == drawn[:, None]).any(axis=1)
        chosen[:, place] = np.where(again, last, drawn)
    return chosen


def all_assignments(count: int, *, blocks: int, memberships: int) -> Iterator[list[tuple[int, ...]]]:
    """List the records of each block for everything that may be drawn, each as likely as any other."""
    choices = list(combinations(range(blocks), memberships))
    if len(choices) ** count > _MOST_ASSIGNMENTS:
        raise InvalidParameter("too many assignments to list: verify with fewer records or blocks")
    for drawn in product(choices, repeat=count):
        yield [tuple(record for record in range(count) if block in drawn[record]) for block in range(blocks)]


def rows_of(records: Records, chosen: NDArray[np.int64] | Sequence[int]) -> BlockRows:
    """Pack some of the records, in this order."""
    if not isinstance(records, np.ndarray):
        return BlockRows(marshal.dumps([_plain(records[place]) for place in chosen], 2), array=False)
    packed = io.BytesIO()
    np.save(packed, records[np.asarray(chosen, dtype=np.int64)], allow_pickle=False)
    return BlockRows(packed.getvalue(), array=True)


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a record made of None, truth values, numbers, texts, bytes, and tuples, lists and dicts of these.

    Exact numbers, dates and times become text, and everything else becomes None: what it is made of is its own
    affair, and one record must not stop all others.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return value
    if depth >= _DEEPEST:
        return None
    if type(value) in (tuple, list):
        return type(value)(_plain(part, depth + 1) for part in value)
    if type(value) is dict:
        return {_plain(key, _DEEPEST): _plain(part, depth + 1) for key, part in value.items()}
    return _written(value) if type(value) in (Fraction, Decimal) or isinstance(value, (date, time)) else None


def _written(value: Any) -> str | None:
    """Return a value as text; None for a ratio of more digits than Python writes."""
    try:
        return str(value)
    except ValueError:
        return None


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

    Args:
        function: What is run on each block: any function of rows, or a `Program`.
        aggregator: What makes one private answer of the blocks' answers.
        relation: The neighbouring relation.
        memberships: How many blocks each record is in.
        limits: What one block may use.
        trusted: Whether the function runs right here; whoever says so vouches for it.

    Raises:
        InvalidParameter: If a record would be in more blocks than there are.

    Examples:
        >>> import statistics
        >>> aggregator = dp.adaptive.block_median(
        ...     blocks=101, grid=dp.mechanisms.Grid.between(0, 120, step=1),
        ...     recipe=dp.adaptive.polynomial(1, beta=0.1),
        ... )
        >>> mechanism = dp.adaptive.SubsampleAndAggregate(
        ...     function=statistics.median, aggregator=aggregator, relation=dp.Relation.ADD_REMOVE, trusted=True
        ... )
        >>> mechanism.release([40] * 2000).cost
        'ε = 1'
    """

    function: Callable[[Any], Any] | Program
    aggregator: Aggregator
    relation: Relation
    memberships: int = 1  # blocks that each record is in
    limits: BlockLimits = field(default_factory=BlockLimits)
    trusted: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
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
        with paid(session, self, purpose="subsample and aggregate"):
            release = self.aggregator.release(self._drawn(data, progress))
            return replace(release, event=self.event, relation=self.relation, delta=self._quoted(release.delta))

    def rehearse(self, rows: Any) -> Any:
        """Return what a block would say about made-up rows, as the aggregator reads it; refuse if it fails."""
        self._check()
        records = read_records(rows)
        (answer,) = self._hasty._answers([rows_of(records, range(len(records)))], None)
        if answer is FAILED:
            raise Refused("the function fails on a block of these rows: check the rows, the function and the limits")
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


# --- subsample_stability: A function's answer, exactly, if most small random parts of the data give the same one. ---


_TWO_THIRDS = Fraction(2, 3)


def blocks_needed(
    *,
    epsilon: Number,
    delta: Number,
    agreement: Number = _TWO_THIRDS,
    confidence: Number = Fraction(95, 100),
    memberships: int = 1,
) -> int:
    """Return from how many blocks on the common answer is named, if this part of them gives it. It is public.

    Theorem     If the part a of m blocks agree, their lead is at least 2 ceil(a m) - m, even if all others agree on
                something else; it must be the reliable lead of the mode. With e memberships that is about
                m = 2 e / (2 a - 1) (1 + (ln(1 / (2 delta)) + t) / epsilon) for a confidence of 1 - e^-t / 2. [ST13]
    """
    part = exact(agreement, name="agreement")
    if not Fraction(1, 2) < part <= 1:
        raise InvalidParameter("agreement must be above 1/2 and at most 1: otherwise two answers could have it")
    epsilon, delta = exact(epsilon, name="epsilon"), exact(delta, name="delta")
    mode = BlockMode(blocks=1, domain=None, epsilon=epsilon, delta=delta, entries=memberships)
    lead = mode.reliable_lead(confidence)
    blocks = math.ceil(lead / (2 * part - 1))
    while 2 * math.ceil(part * (blocks - 1)) - (blocks - 1) >= lead:
        blocks -= 1
    return max(blocks, positive_integer(memberships, name="memberships"))


def release_if_subsampling_stable(
    function: Callable[[Any], Any] | Program,
    *,
    epsilon: Number,
    delta: Number,
    relation: Relation | str,
    domain: tuple[Hashable, ...] | None = None,
    agreement: Number = _TWO_THIRDS,
    confidence: Number = Fraction(95, 100),
    memberships: int = 1,
    limits: BlockLimits | None = None,
    trusted: bool = False,
) -> SubsampleAndAggregate:
    """Make the mechanism that names a function's answer if this part of as many blocks as it takes agree on it.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     The blocks' answers are a data set of which one unit replaces one, and their mode is released if it is
                stable. [NRS07, ST13]
    Utility     if `agreement` of the blocks say the same, it is named with probability `confidence` at least.

    Args:
        function: What is run on each block: any function of rows, or a `Program`.
        epsilon: What a release spends.
        delta: The chance that an unstable answer passes the test.
        relation: The neighbouring relation.
        domain: The public answers that are possible; None takes every key.
        agreement: The part of the blocks that must agree, above 1/2.
        confidence: How surely the answer is then named.
        memberships: How many blocks each record is in.
        limits: What one block may use.
        trusted: Whether the function runs right here; whoever says so vouches for it.

    Returns:
        The mechanism, with as many blocks as it takes.

    Raises:
        InvalidParameter: If the agreement is not above 1/2.

    Examples:
        >>> mechanism = dp.adaptive.release_if_subsampling_stable(
        ...     len, epsilon=1, delta=1e-6, relation=dp.Relation.ADD_REMOVE, trusted=True
        ... )
        >>> mechanism.aggregator.blocks > 10
        True
    """
    relation = read_relation(relation)
    blocks = blocks_needed(
        epsilon=epsilon, delta=delta, agreement=agreement, confidence=confidence, memberships=memberships
    )
    mode = BlockMode(
        blocks=blocks,
        domain=domain,
        epsilon=exact(epsilon, name="epsilon"),
        delta=exact(delta, name="delta"),
        entries=memberships,
    )
    return SubsampleAndAggregate(
        function=function,
        aggregator=mode,
        relation=relation,
        memberships=memberships,
        limits=BlockLimits() if limits is None else limits,
        trusted=trusted,
    )
