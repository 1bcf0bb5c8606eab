"""From a scan to exact whole numbers of every group: the one call of this package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.query.bounding.gathered import PackedShape
from discreet.query.bounding.limits import MOST_GROUPS, BoundedColumn, ContributionBounds
from discreet.query.bounding.memory import keep_freed_memory
from discreet.query.bounding.partition import Counting
from discreet.query.bounding.reading import Reader
from discreet.query.bounding.rows import RowChunk, clean
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.store import RowStore
from discreet.query.bounding.tallying import Aggregation, Tally

__all__ = ["tally"]

_MEMORY = 1 << 31
_THREADS = 2


def tally(
    chunks: Iterable[RowChunk],
    *,
    groups: int,
    limits: ContributionBounds,
    measures: Sequence[BoundedColumn] = (),
    memory: int = _MEMORY,
    threads: int = _THREADS,
    secret: Secret | None = None,
) -> Tally:
    """Bound what each unit gives, at random and in secret, and count what is kept, exactly.

    Guarantee   One unit more or less changes at most `max_groups` groups of the tally, and in each of them `units` by
                at most 1, `rows`, `counts` and `distinct` by `max_rows`, `total` and `squares` by `max_rows` times the
                largest |index - centre| or its square, and `values` by `max_rows` values added or removed.
    Theorem     What is kept of a unit is a function of its own rows and of fresh secret randomness; see `selection`.
                It is the same for any order and any chunks of the rows, any number of threads and any `memory`.
    Utility     A unit's kept groups are a uniform subset, and so are its kept rows in each of them.

    `groups` is public or will be released by a threshold; beyond `memory` bytes rows wait in files without a name.
    A `secret` is drawn here, or was drawn for this call alone by whoever asks from another process.
    """
    if not 1 <= positive_integer(groups, name="groups") <= MOST_GROUPS:
        raise InvalidParameter("groups must be at most 2^31")
    keep_freed_memory()
    shape = PackedShape(groups, [measure.bits for measure in measures])
    secret, reader = secret or Secret(), Reader()
    with (
        RowStore(shape, secret, positive_integer(memory, name="memory")) as store,
        ThreadPoolExecutor(positive_integer(threads, name="threads")) as workers,
    ):
        for chunk in chunks:
            store.add(clean(chunk, groups, measures, reader))
        counting = Counting(limits, measures, shape, secret, workers, threads)
        whole = Aggregation(groups, measures)
        for partition in store.partitions():
            whole.merge(counting.count(partition))
        return whole.finish()
