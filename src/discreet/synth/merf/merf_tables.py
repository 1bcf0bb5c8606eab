"""DP-MERF for tables of numbers and categories."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.formatting import record
from discreet.privacy.events import Event
from discreet.synth.domain.coding import TableRows
from discreet.synth.domain.domain import Domain, DomainColumn
from discreet.synth.domain.numeric import Numeric
from discreet.synth.merf.features import RADIUS, CellEmbedding, cell_waves
from discreet.synth.merf.generator import training_for
from discreet.synth.merf.merf_images import check_numbers, check_options
from discreet.synth.merf.merf_models import MerfTableModel
from discreet.synth.merf.sensitivity import SumPrice, price, summed
from discreet.synth.method import Terms, progress_line

__all__ = ["MerfTablePlan", "MerfTables"]

_MOST_CLASSES = 200


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MerfTables:
    """Tables by one noisy sum of random features, and a generator fitted to it. [HAP21]

    Each row is one vector in the place of its label's class: a constant, which counts; its cell in every column; and
    cosines and sines of random waves over two or three columns. Numbers and categories share one bound on its length.

    Args:
        waves: How many random features.
        steps: How many steps of training, which is free.
        hidden: The width of the generator.
        codes: How many random numbers it starts from.

    Examples:
        >>> dp.synth.merf.MerfTables().name
        'merf'
    """

    waves: int = 1000
    steps: int = 1500  # of training, which is free
    hidden: int = 128
    codes: int = 16

    __repr__ = record

    @property
    def name(self) -> str:
        return "merf"

    def plan(self, terms: Terms[Domain]) -> MerfTablePlan:
        """Plan a fit; nothing is read."""
        check_options(self, "waves", "steps", "hidden", "codes")
        _check(terms.domain, terms.label)
        check_numbers(
            sum(terms.domain.sizes) * self.waves, "choose fewer waves, declare fewer cells, or take mst or aim"
        )
        embedding = self._embedding([own for name, own in terms.domain.columns.items() if name != terms.label])
        paid = price(embedding.reach, terms)
        return MerfTablePlan(method=self, domain=terms.domain, label=terms.label, embedding=embedding, price=paid)

    def _embedding(self, columns: list[DomainColumn]) -> CellEmbedding:
        """Draw waves. Of the squared length, the counts have a tenth, and cells and waves half of the rest each."""
        sizes = tuple(column.size for column in columns)
        ordered = [column.size - column.null if isinstance(column, Numeric) else 0 for column in columns]
        turning = self.waves * RADIUS**2
        return CellEmbedding(
            sizes,
            cell_waves(sizes, ordered, self.waves),
            constant=isqrt(2 * turning // 9),
            weight=isqrt(turning // len(columns)),
        )


def _check(domain: Domain, label: str | None) -> None:
    if label is None:
        return
    if domain.columns[domain.names[domain.place(label)]].size > _MOST_CLASSES:
        raise InvalidParameter(f"the label {label!r} has more than {_MOST_CLASSES} cells: declare fewer, or name none")
    if len(domain.names) == 1:
        raise InvalidParameter("there must be a column beside the label")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MerfTablePlan:
    """One noisy sum, then free training. The waves are drawn already, and priced as they are."""

    method: MerfTables
    domain: Domain
    label: str | None
    embedding: CellEmbedding
    price: SumPrice

    @property
    def event(self) -> Event:
        return self.price.event

    def describe(self) -> str:
        by = "" if self.label is None else f" by {self.label}"
        return (
            f"one noisy sum of the cells of {len(self.embedding.sizes)} columns{by} and of {self.method.waves} random "
            f"waves over two or three of them, then {self.method.steps} free steps of training"
        )

    def fit(self, rows: TableRows, *, progress: bool) -> MerfTableModel:
        """Read the rows once, release their noisy sum, and train a generator on it."""
        from discreet.synth.merf.generator_training import train
        from discreet.synth.merf.matching import CellMatching

        sums = self.price.release(summed(self.embedding, *self._split(rows.codes()), self._classes))
        matching = CellMatching(self.embedding, sums)
        how = training_for(self.method, self._classes)
        with progress_line("training", how.steps, shown=progress) as tell:
            network = train(matching, how, start=matching.start, tell=tell)
        return MerfTableModel(self.domain, self.label, network, matching.targets.counts)

    @property
    def _classes(self) -> int:
        return 1 if self.label is None else self.domain.columns[self.label].size

    def _split(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the cells of the other columns, and those of the label."""
        if self.label is None:
            return codes, np.zeros(len(codes), dtype=np.int32)
        place = self.domain.place(self.label)
        return np.delete(codes, place, axis=1), codes[:, place]
