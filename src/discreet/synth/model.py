"""What dp.synthesize returns: a model that may be published, sampled from without limit, saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import Images
from discreet.synth.method import FittedImages, FittedTable
from discreet.synth.pictures import SyntheticImages
from discreet.synth.possible import possible_rows
from discreet.synth.promise import Promise
from discreet.synth.table import SyntheticTable

__all__ = ["SyntheticImageModel", "SyntheticModel"]

_MOST = 1 << 28  # Rows of one sample.


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticModel:
    """A model of a table. Everything in it was released; any number of rows may be drawn at no further cost."""

    domain: Domain
    promise: Promise
    fitted: FittedTable = field(repr=False)

    @property
    def rows(self) -> int | None:
        """About how many rows the real table has, as far as that was released."""
        return self.fitted.rows

    def sample(self, rows: int | None = None) -> SyntheticTable:
        """Draw rows; as many as the real table has, about, unless a number is said."""
        wanted = _wanted(rows, self.fitted.rows)
        return SyntheticTable(self.promise, possible_rows(self.domain, wanted, self.fitted.sample))

    def save(self, path: str | Path) -> None:
        """Write the model, its domain and its promise to one safetensors file, all of it or nothing."""
        from discreet.synth.saving import save

        save(path, self.domain, self.promise, self.fitted.document())

    def __str__(self) -> str:
        return f"a model of {len(self.domain.names)} columns. {self.promise}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticImageModel:
    """A model of pictures. Everything in it was released; any number may be drawn at no further cost."""

    domain: Images
    promise: Promise
    fitted: FittedImages = field(repr=False)

    @property
    def rows(self) -> int | None:
        """About how many real pictures there are, as far as that was released."""
        return self.fitted.rows

    def sample(self, rows: int | None = None) -> SyntheticImages:
        """Draw pictures with labels; as many as there are real ones, about, unless a number is said."""
        pixels, labels = self.fitted.sample(_wanted(rows, self.fitted.rows))
        return SyntheticImages(self.promise, self.domain, pixels, labels)

    def save(self, path: str | Path) -> None:
        """Write the model, its domain and its promise to one safetensors file, all of it or nothing."""
        from discreet.synth.saving import save

        save(path, self.domain, self.promise, self.fitted.document())

    def __str__(self) -> str:
        return f"a model of pictures of {self.domain.height} x {self.domain.width}. {self.promise}"


def _wanted(rows: int | None, released: int | None) -> int:
    if rows is None and released is None:
        raise InvalidParameter("say how many rows to draw: how many the real table has was not released")
    wanted = max(1, released or 0) if rows is None else positive_integer(rows, name="rows")
    if wanted > _MOST:
        raise InvalidParameter(f"rows must be at most {_MOST}: draw several samples")
    return wanted
