"""The classes of a classifier are declared: which labels occur is a fact about the people in the table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from discreet.errors import InvalidParameter, Refused
from discreet.mechanisms.column import Column
from discreet.statistics.columns import as_column

__all__ = ["FOUND_IN_Y", "class_codes", "read_classes"]

FOUND_IN_Y: Final = "found in y"


def read_classes(classes: Any, y: Any, *, has_session: bool) -> NDArray[Any]:
    """Return the sorted classes: those declared, or, if the caller says so and no session pays, those found in y.

    Labels that occur are data: a rare one tells that somebody has it. So they are declared, and "found in y" is for
    whoever may publish which labels there are; what is spent says nothing about them.
    """
    if classes is None:
        raise Refused(
            "this needs classes=[…], the labels that there may be",
            reason="a label that only one person has would tell of that person, so labels are not read from the data",
            way_out="declare them, also those that may not occur; or, if it is public which of them occur, say "
            'classes="found in y", which no session accepts',
        )
    if isinstance(classes, str) and classes == FOUND_IN_Y:
        if has_session:
            raise Refused(
                'classes="found in y" would publish which labels occur, and no charge covers that',
                way_out="declare them: classes=[…]",
            )
        check_classification_targets(y)
        return np.unique(y)
    return _declared(classes)


def _declared(classes: Any) -> NDArray[Any]:
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__"):
        raise InvalidParameter('classes must be a list of labels, or "found in y"')
    try:
        given = np.asarray(classes)
        found = np.unique(given)
    except TypeError:
        raise InvalidParameter("classes must be labels of one kind: all numbers or all texts") from None
    if given.ndim != 1 or not 0 < len(found) == len(given) or found.dtype.kind not in "biufU":
        raise InvalidParameter("classes must be different labels, all numbers or all texts")
    return found


def class_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each label among the classes, -1 for whatever is none of them. This is private.

    The rule is total and looks at one label at a time: a strange label is no error, since that would tell of it.
    """
    places = {label: place for place, label in enumerate(classes.tolist())}
    column = y if isinstance(y, Column) else as_column(y)
    return np.array([_place(places, label) for label in column.objects()], dtype=np.int64)


def _place(places: dict[Any, int], label: Any) -> int:
    try:
        return places.get(label, -1)
    except TypeError:
        return -1
