"""Every public name says what its parameters mean, what comes back, and shows an example that runs."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import inspect
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import discreet as dp

ROOT = Path(__file__).parent.parent

_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Examples):\n((?:    .*\n|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    \*{0,2}(\w+)(?: \(.*?\))?: \S", re.MULTILINE)


def script(name: str) -> ModuleType:
    """Load a script of the documentation."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = script("make_reference")
PUBLIC = {
    REFERENCE.home_of(value): value
    for package in REFERENCE.PACKAGES
    for value in REFERENCE.names_of(package).values()
    if REFERENCE.is_documented_by_itself(value)
}


def shown_elsewhere() -> dict[str, object]:
    """Return what is not public and has an example all the same, by its path."""
    found = {}
    for file in sorted((ROOT / "src" / "discreet").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        module = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(text).body if ">>> " in text else ():
            is_named = isinstance(node, (ast.ClassDef, ast.FunctionDef))
            if is_named and ">>> " in (ast.get_docstring(node) or "") and f"{module}.{node.name}" not in PUBLIC:
                found[f"{module}.{node.name}"] = getattr(import_module(module), node.name)
    return found


SHOWN = PUBLIC | shown_elsewhere()


def sections(value: object) -> dict[str, str]:
    """Return the sections of a docstring by their heading."""
    return dict(_SECTION.findall((inspect.getdoc(value) or "") + "\n"))


def parameters(value: object) -> set[str]:
    """Return the parameters of a function, or of the constructor of a class; what begins with _ is nobody else's."""
    if inspect.isclass(value) and (getattr(value, "_is_protocol", False) or not has_constructor(value)):
        return set()
    named = inspect.signature(value).parameters  # type: ignore[arg-type]
    return {name for name in named if not name.startswith("_")}


def has_constructor(value: type) -> bool:
    """Tell whether a class, or one of this package that it extends, says how it is made."""
    ours = (base for base in value.__mro__ if base.__module__.startswith("discreet"))
    made_by = {"__init__"} if issubclass(value, Enum) else {"__init__", "__new__"}
    return any(made_by & vars(base).keys() for base in ours)


def returns_something(value: object) -> bool:
    """Tell whether a function says that it returns something other than None."""
    if inspect.isclass(value):
        return False
    returned = inspect.signature(value).return_annotation  # type: ignore[arg-type]
    return returned not in (None, "None", "NoReturn", inspect.Signature.empty)


def lacks(value: object) -> list[str]:
    """List what the docstring of a public name does not say."""
    found = sections(value)
    explained = set(_ENTRY.findall(found.get("Args", "") + found.get("Attributes", "")))
    missing = [f"parameter {name}" for name in sorted(parameters(value) - explained)]
    if returns_something(value) and not {"Returns", "Yields"} & found.keys():
        missing.append("what it returns")
    if ">>> " not in found.get("Examples", ""):
        missing.append("an example")
    return missing


def invented(value: object) -> set[str]:
    """Return what is explained as a parameter and is none."""
    return set(_ENTRY.findall(sections(value).get("Args", ""))) - parameters(value)


def run(value: object, name: str) -> tuple[doctest.TestResults, dict[str, object]]:
    """Run the examples of a docstring after `import discreet as dp`; return also what they have named."""
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", {"dp": dp}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    return runner.run(test, clear_globs=False), test.globs


_UNREADABLE = {
    "an address in memory": re.compile(r" at 0x[0-9a-f]+|<[\w.]+ object"),
    "a fraction as Python writes it": re.compile(r"Fraction\("),
    "a number that nobody reads": re.compile(r"(?<![0-9a-f])\d{21,}(?![0-9a-f])"),
    "more than a page": re.compile(r"(?s).{6000}"),
    "a line without end": re.compile(r".{1200}"),
}


def unreadable(named: dict[str, object]) -> list[str]:
    """List what is wrong with how objects of this package show themselves, which a notebook does with the last one."""
    ours = [value for value in named.values() if type(value).__module__.startswith("discreet")]
    shown = [(type(value).__name__, repr(value)) for value in ours if not hasattr(value, "__array__")]
    return [f"{name}: {why}" for name, text in shown for why, sign in _UNREADABLE.items() if sign.search(text)]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_says_what_goes_in_and_what_comes_out(name: str) -> None:
    assert lacks(PUBLIC[name]) == []
    assert invented(PUBLIC[name]) == set()


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_the_example_of_a_name_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    results, named = run(SHOWN[name], name)
    assert results.attempted > 0
    assert results.failed == 0, "see what was printed: expected and got"
    assert unreadable(named) == []


def test_a_public_record_says_itself_how_it_is_shown() -> None:
    """What `dataclass` would write has fractions and addresses in it: `__repr__ = record` or words of its own."""
    records = [value for value in PUBLIC.values() if inspect.isclass(value) and is_dataclass(value) and fields(value)]
    assert len(records) > 90
    ours = str(ROOT / "src")
    assert [one.__qualname__ for one in records if not inspect.getfile(one.__repr__).startswith(ours)] == []


def test_what_nobody_can_read_is_noticed() -> None:
    class Told(SimpleNamespace):
        __module__ = "discreet.made_up"

    def found(value: object) -> list[str]:
        return unreadable({"one": Told(text=value), "other": value})

    assert found(1) == []
    assert found(Fraction(1, 3)) == ["Told: a fraction as Python writes it"]
    assert found(object()) == ["Told: an address in memory"]
    assert found(10**20 + 1) == ["Told: a number that nobody reads"]
    assert found("x" * 7000) == ["Told: more than a page", "Told: a line without end"]


def test_every_public_package_has_its_page() -> None:
    written = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "docs" / "reference").glob("*.md")}
    assert written == REFERENCE.pages(), "run python docs/make_reference.py"
    parts = {getattr(dp, name).__name__ for name in dp.__all__ if inspect.ismodule(getattr(dp, name))}
    assert parts - {"discreet.lab"} <= set(REFERENCE.PACKAGES)


def poor(good: int, bad: int = 0) -> int:
    """Add.

    Args:
        good: The first number.

    Raises:
        ValueError: Never.
    """
    return good + bad


def test_what_is_left_out_is_noticed() -> None:
    assert lacks(poor) == ["parameter bad", "what it returns", "an example"]
    assert sections(poor).keys() == {"Args", "Raises"}


def test_a_wrong_example_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    def wrong() -> None:
        """Do nothing.

        Examples:
            >>> 1 + 1
            3
        """

    assert run(wrong, "wrong")[0] == (1, 1)
    assert "Expected" in capsys.readouterr().out
