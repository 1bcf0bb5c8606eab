"""A function of the user's own code, by its name: `my_module:fn`, from this folder or from what is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter

__all__ = ["function_named"]


def function_named(name: str) -> Callable[..., Any]:
    """Import a function: its module is looked for in this folder first. Importing runs that module's code."""
    module, separator, function = name.partition(":")
    if not separator or not all(part.isidentifier() for part in (*module.split("."), function)):
        raise InvalidParameter(f"{name!r} is no function: write module:function, such as my_module:fn")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    if not _there(module):
        raise InvalidParameter(f"there is no module {module}: run this in its folder, or install it")
    found = getattr(import_module(module), function, None)
    if not callable(found):
        raise InvalidParameter(f"the module {module} has no function {function}")
    loaded: Callable[..., Any] = found
    return loaded


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # A folder above it is not there.
        return False
