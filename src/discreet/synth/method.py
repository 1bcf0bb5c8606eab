"""What every method is: a plan from public facts with a price, a fit that reads once, a model that may be published.

    terms -> Method.plan -> FitPlan (event) -> charge -> FitPlan.fit(rows) -> Fitted -> sample, document

A method sees the private table only through `TableRows` or `ImageRows`, which give whole numbers of a public shape and
have bounded what one unit brings. Whatever a fitted model holds was released: it may be published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.frames.column import Column
from discreet.pages.progress import working
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.synth.domain.coding import TableRows
from discreet.synth.domain.domain import Domain, Rule
from discreet.synth.domain.images import ImageRows, Images

__all__ = [
    "ConditionalTable",
    "Document",
    "FitPlan",
    "FittedImages",
    "FittedTable",
    "ImageMethod",
    "TableMethod",
    "Terms",
    "progress_line",
]

Document: TypeAlias = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # JSON, and arrays for a safetensors file
D = TypeVar("D")
R_contra = TypeVar("R_contra", contravariant=True)
F_co = TypeVar("F_co", covariant=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms(Generic[D]):
    """What is asked of a method. All of it is public."""

    domain: D
    epsilon: Fraction
    delta: Fraction
    relation: Relation
    rows_per_unit: int = 1  # how many rows one unit can bring
    public_rows: int | None = None  # how many rows there are, where that is public or a public guess
    label: str | None = None  # a column of the domain that matters most, if somebody named one


class FitPlan(Protocol[R_contra, F_co]):
    """What will be done and what it costs. Frozen, and public."""

    @property
    def event(self) -> Event:
        """What is charged before anything is read: for one unit with `rows_per_unit` rows, under their relation."""

    def describe(self) -> str:
        """Say in a few plain words what will be done."""

    def fit(self, rows: R_contra, *, progress: bool) -> F_co:
        """Read the rows and fit. It is called once, after the charge; nothing about values may end in an error."""


class TableMethod(Protocol):
    """A method for tables. Its own options are its fields."""

    @property
    def name(self) -> str:
        """What it is called in dp.synthesize and in files."""

    def plan(self, terms: Terms[Domain]) -> FitPlan[TableRows, FittedTable]:
        """Plan a fit, or refuse; nothing is read."""


class ImageMethod(Protocol):
    """A method for pictures. Its own options are its fields."""

    @property
    def name(self) -> str:
        """What it is called in dp.synthesize and in files."""

    def plan(self, terms: Terms[Images]) -> FitPlan[ImageRows, FittedImages]:
        """Plan a fit, or refuse; nothing is read."""


class FittedTable(Protocol):
    """A model of a table. `type(model).restored(domain, document)` makes it again, and checks everything it is told."""

    @property
    def rows(self) -> int | None:
        """How many rows the table has, as far as that was released; it is how many a sample has by default."""

    def sample(self, rows: int) -> Mapping[str, Column]:
        """Draw rows: columns in the order of the domain, made by `Coder.decode` or `Coder.decode_steps`."""

    def document(self) -> Document:
        """Return everything that is to be saved; neither the domain nor the promise, which are saved beside it."""


@runtime_checkable
class ConditionalTable(FittedTable, Protocol):
    """A model of a table that knows the law of rows of some values alone."""

    def given(self, where: Rule) -> FittedTable:
        """Return the model of the rows that are as `where` says, or refuse if there are none."""


class FittedImages(Protocol):
    """A model of pictures. `type(model).restored(domain, document)` makes it again, and checks everything."""

    @property
    def rows(self) -> int | None:
        """How many pictures there were, as far as that was released."""

    def sample(self, rows: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Draw pictures, (rows, pixels) of 0 to 255, and the places of their labels among the classes."""

    def document(self) -> Document:
        """Return everything that is to be saved."""


# --- progress: A line that shows how far a fit is: steps of a public plan, never rows. ---


@contextmanager
def progress_line(what: str, steps: int, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show how far a fit is; call what is yielded after every step, with a word about the next."""
    with working(what, total=steps, shown=shown) as current:
        yield current.step
