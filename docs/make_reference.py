"""Write the pages of the API reference: one for each public package, every name of its `__all__` once.

    python docs/make_reference.py

The words are those of the docstrings, which the site generator (mkdocstrings) reads; a page only says where they are.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

PAGES = Path(__file__).parent / "reference"
PACKAGES = (
    "discreet",
    "discreet.errors",
    "discreet.statistics",
    "discreet.query",
    "discreet.client",
    "discreet.mechanisms",
    "discreet.noise",
    "discreet.privacy",
    "discreet.privacy.compose",
    "discreet.privacy.convert",
    "discreet.privacy.group",
    "discreet.privacy.subsample",
    "discreet.ledger",
    "discreet.adaptive",
    "discreet.robust",
    "discreet.release",
    "discreet.learn",
    "discreet.learn.sklearn",
    "discreet.learn.torch",
    "discreet.learn.training",
    "discreet.synth",
    "discreet.synth.tables",
    "discreet.synth.merf",
    "discreet.synth.diffusion",
    "discreet.plots",
    "discreet.data",
    "discreet.lab.attacks",
    "discreet.lab.audit",
    "discreet.lab.evaluation",
    "discreet.lab.verify",
)
PREFACE = """\
Every public name is here with what its parameters mean, what it returns, what it raises, and an example. Examples are
run by the tests, after `import discreet as dp`. Noise differs from run to run, so an example shows what is certain.

Some parameters have the same meaning everywhere:

- `relation`: which two data sets are neighbours, `Relation.ADD_REMOVE` (one unit more or less; the number of units is
  private) or `Relation.REPLACE_ONE` (one unit's data changed; the number of units is public),
  or its name, `"add-remove"` or `"replace-one"`.
- `public_rows`: about how many rows there are, as everybody may know; under replace-one it is their number.
- `idempotency_key`: a name for a charge; the same again under it costs nothing.
- `epsilon`, `delta`, `rho`: what may be spent. Numbers are read exactly: 0.1 is one tenth.
- `session`: who pays (a `Ledger`, a `Session`, any `Payer`). It is charged before the data is read.

Fields are public and may be printed, logged and stored; private data enters through arguments that the text calls
private. No message of an error has a value of the data in it."""


def home_of(value: object) -> str:
    """Return the path under which a class or a function is defined."""
    return f"{value.__module__}.{value.__qualname__}"  # type: ignore[attr-defined]


def names_of(package: str) -> dict[str, object]:
    """Return what a package publishes, but for other packages, by name."""
    module = import_module(package)
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def is_documented_by_itself(value: object) -> bool:
    """Tell whether a docstring belongs to this name: not so for constants and type aliases."""
    return inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))  # type: ignore[arg-type]


def place_of_constant(package: str, name: str) -> str:
    """Return the path of a constant: the module of the package in which it is assigned."""
    module = import_module(package)
    for other in vars(module).values():
        if isinstance(other, ModuleType) and name in getattr(other, "__all__", ()) and name in vars(other):
            return f"{other.__name__}.{name}"
    return f"{package}.{name}"


def page_name(package: str) -> str:
    """Return the file of a package, in the folder of the reference."""
    if package == "discreet":
        return "index.md"
    return f"{package.removeprefix('discreet.').removeprefix('lab.').replace('.', '-')}.md"


def page(package: str, known: dict[str, str]) -> str:
    """Return the text of one page; `known` are the paths that earlier pages show, and gets those of this one."""
    lines = [f"# {package}", "", (import_module(package).__doc__ or "").split("\n")[0], ""]
    if package == "discreet":
        lines += [PREFACE, ""]
    for name, value in names_of(package).items():
        path = home_of(value) if is_documented_by_itself(value) else place_of_constant(package, name)
        if path in known:
            lines += [f"- `{name}`: see [{known[path]}.{name}][{path}]"]
        else:
            lines += ["", f"::: {path}", ""]
            known[path] = package
    text = "\n".join(lines) + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip("\n") + "\n"


def pages() -> dict[str, str]:
    """Return the text of every page by its file."""
    known: dict[str, str] = {}
    return {page_name(package): page(package, known) for package in PACKAGES}


if __name__ == "__main__":
    for file, text in pages().items():
        (PAGES / file).write_text(text, encoding="utf-8")
