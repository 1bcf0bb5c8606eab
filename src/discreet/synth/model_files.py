"""Models in files: one safetensors file with the domain, the promise and the method's own words as JSON in its head.

Nothing in such a file is run. Whatever is read is checked: kinds, sizes, that numbers are numbers, the domain as if
somebody declared it, and that the promise follows from its event.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, InvalidParameter, Refused
from discreet.ledger.private_files import place
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.domain_file import domain_document, domain_restored
from discreet.synth.domain.images import Images
from discreet.synth.fitted_models import SyntheticImageModel, SyntheticModel
from discreet.synth.method import Document
from discreet.synth.promise import Promise
from discreet.synth.synthesis_plan import model_class

__all__ = ["load", "save"]

_HEAD = "discreet"
_VERSION = 1
_ENDING = ".safetensors"
_LARGEST = 1 << 30  # Bytes of a file.
_KINDS = ("f", "i", "u", "b")
_WIDEST = float(np.finfo(np.float32).max)  # Models are 32-bit floats, or far smaller numbers: their sums are finite.


def save(path: str | Path, domain: Domain | Images, promise: Promise, document: Document) -> None:
    """Write a model, all of it or nothing."""
    from safetensors.numpy import save as packed

    file = Path(path)
    if file.suffix != _ENDING:
        raise InvalidParameter(f"a model is saved to a file whose name ends in {_ENDING}")
    said, arrays = document
    head = {
        "version": _VERSION,
        "promise": promise.document(),
        "domain": domain_document(domain),
        "model": said,
    }
    text = json.dumps(head, ensure_ascii=False, allow_nan=False)
    place(file, packed({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_HEAD: text}))


def load(path: str | Path) -> SyntheticModel | SyntheticImageModel:
    """Read a model that `save` wrote, or refuse.

    Args:
        path: The file that `save` wrote.

    Returns:
        The model, equal to the one that was saved.

    Raises:
        InvalidParameter: If the file is no model, was changed, or is of another version.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> model = dp.synthesize(rows, "independent", domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> model.save("model.safetensors")
        >>> dp.synth.load("model.safetensors").promise == model.promise
        True
    """
    head, arrays = _read(Path(path))
    try:
        if head["version"] != _VERSION:
            raise InvalidParameter("it was written by another version")
        domain, promise = domain_restored(head["domain"]), Promise.restored(head["promise"])
        made = model_class(promise.method, images=isinstance(domain, Images))
        fitted = made.restored(domain, (head["model"], arrays))
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError, AttributeError, DiscreetError) as error:
        _refuse(str(error) if isinstance(error, DiscreetError) else "parts of it are missing or of another kind")
    if isinstance(domain, Images):
        return SyntheticImageModel(domain, promise, fitted)
    return SyntheticModel(domain, promise, fitted)


def _read(file: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        raise InvalidParameter("there is no such file: a model is one file that model.save wrote")
    if file.stat().st_size > _LARGEST:
        _refuse("it is larger than a gibibyte")
    try:
        with safe_open(str(file), framework="np") as opened:
            head = json.loads((opened.metadata() or {})[_HEAD], parse_constant=_no_number)
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dictionary
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError, OSError):
        _refuse("its head or its numbers cannot be read")
    for array in arrays.values():
        _check(array)
    return head, arrays


def _check(array: NDArray[Any]) -> None:
    if array.dtype.kind not in _KINDS or (array.dtype.kind == "f" and not _is_modest(array)):
        _refuse("some of its numbers are none")


def _is_modest(array: NDArray[Any]) -> bool:
    return float(np.abs(array).max(initial=0)) <= _WIDEST  # Not so for what is no number.


def _no_number(text: str) -> NoReturn:
    raise ValueError(text)


def _refuse(why: str) -> NoReturn:
    raise Refused("this file holds no model that model.save wrote", reason=why) from None
