"""The methods by name; each is loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from discreet.errors import InvalidParameter
from discreet.synth.method import ImageMethod, TableMethod

__all__ = ["IMAGE_METHODS", "TABLE_METHODS", "image_method", "model_class", "table_method"]

# name: (module, method, fitted model)
TABLE_METHODS = {
    "aim": ("discreet.synth.tables", "AIM", "TableModel"),
    "mst": ("discreet.synth.tables", "MST", "TableModel"),
    "independent": ("discreet.synth.tables", "Independent", "TableModel"),
    "merf": ("discreet.synth.merf", "MerfTables", "MerfTableModel"),
}
IMAGE_METHODS = {
    "merf": ("discreet.synth.merf", "MerfImages", "MerfImageModel"),
    "diffusion": ("discreet.synth.diffusion", "Diffusion", "DiffusionModel"),
}


def table_method(name: str) -> TableMethod:
    """Return a method for tables with its usual options."""
    return cast(TableMethod, _load(name, TABLE_METHODS, "tables")())


def image_method(name: str) -> ImageMethod:
    """Return a method for pictures with its usual options."""
    return cast(ImageMethod, _load(name, IMAGE_METHODS, "pictures")())


def model_class(name: str, *, images: bool) -> Any:
    """Return the class of what a method fits."""
    return _load(name, IMAGE_METHODS if images else TABLE_METHODS, "pictures" if images else "tables", part=2)


def _load(name: str, methods: dict[str, tuple[str, str, str]], what: str, *, part: int = 1) -> Any:
    if name not in methods:
        raise InvalidParameter(f'there is no method {name!r} for {what}. There are: "auto", {", ".join(methods)}')
    module = methods[name][0]
    return getattr(import_module(module), methods[name][part])
