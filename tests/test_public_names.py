"""`__all__` is what is public, and importing the package loads nothing that is not needed."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(path.parent for path in FILES if path.name == "__init__.py")
MOST_NAMES = 425  # lower it with every name that goes; the goal is about 300
OPTIONAL = (
    "scipy", "flint", "pandas", "polars", "pyarrow", "altair", "vl_convert", "cryptography", "duckdb", "sqlglot",
    "sqlite3", "pydantic", "sklearn", "torch", "matplotlib", "numpy.random", "random",
)  # fmt: skip


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def declared(tree: ast.Module) -> list[str] | None:
    """Return what `__all__` says."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def defined(tree: ast.Module) -> set[str]:
    """Return the public classes and functions that a module defines itself."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


@pytest.mark.long
def test_every_module_says_what_is_public() -> None:
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = declared(tree)
        if names is None:
            assert not defined(tree), f"{module_name(path)} defines public names but has no __all__"
            continue
        assert len(names) == len(set(names)), module_name(path)
        module = importlib.import_module(module_name(path))
        assert [name for name in names if not hasattr(module, name)] == [], module_name(path)


def test_what_a_package_imports_by_name_is_what_it_publishes() -> None:
    for package in PACKAGES:
        tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet")
            for alias in node.names
        }
        assert imported <= set(declared(tree) or ()), package.name


def published() -> dict[int, str]:
    """Return what packages publish, each thing once however often it is published, without the packages themselves."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(module_name(package / "__init__.py"))
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                found[id(value)] = f"{module.__name__}.{name}"
    return found


def test_few_names_are_public() -> None:
    """What only comes back from calls, and what only this library uses, is imported from its module."""
    names = published()
    assert len(names) <= MOST_NAMES, sorted(names.values())


def test_every_name_of_the_package_can_be_reached_and_listed() -> None:
    assert dir(discreet) == sorted(discreet.__all__)
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = discreet.nothing_like_this


def test_names_that_people_rely_on_are_there() -> None:
    import discreet as dp

    assert {member.name for member in dp.Relation} == {"ADD_REMOVE", "REPLACE_ONE"}
    assert dp.Release is importlib.import_module("discreet.mechanisms").Release
    assert dp.NotPrivate is importlib.import_module("discreet.privacy").NotPrivate
    assert issubclass(dp.InvalidParameter, dp.DiscreetError)
    assert dp.sum is not sum
    assert dp.Session is importlib.import_module("discreet.query.session.session").Session
    assert dp.Budget is importlib.import_module("discreet.ledger").Budget
    assert dp.query.sum is not dp.sum


def test_the_version_is_that_of_the_installed_package_and_is_read_when_asked_for() -> None:
    assert discreet.__version__ == importlib.metadata.version("discreet")
    assert "importlib.metadata" not in loaded_after("import discreet") - loaded_after("import numpy")


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split())


def test_importing_the_package_loads_no_optional_library() -> None:
    modules = loaded_after("import discreet")
    assert "discreet" in modules
    assert not modules & set(OPTIONAL)


def test_asking_for_errors_and_relations_loads_no_optional_library() -> None:
    modules = loaded_after("import discreet; discreet.Relation; discreet.Refused; discreet.Release; discreet.count")
    assert not modules & (set(OPTIONAL) - {"random", "numpy.random"})


def test_the_words_of_a_session_load_no_engine_and_no_parser() -> None:
    modules = loaded_after("import discreet as dp; dp.Session; dp.Unit; dp.Budget; dp.between; dp.query.col")
    assert "discreet.query.session.session" in modules
    assert not modules & (set(OPTIONAL) - {"random", "numpy.random", "flint", "cryptography"})


def test_a_private_count_needs_neither_scipy_nor_tables_nor_charts() -> None:
    statement = "import discreet as dp; repr(dp.count([1], relation=dp.Relation.ADD_REMOVE, epsilon=1))"
    assert not loaded_after(statement) & {"scipy", "pandas", "polars", "pyarrow", "altair", "vl_convert"}


def test_import_time_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Never a gate: machines differ."""
    code = "import numpy, time; start = time.process_time(); import discreet; print(time.process_time() - start)"
    seconds = float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    with capsys.disabled():
        print(f"\nimport discreet: {1000 * seconds:.1f} ms above numpy")
    assert seconds >= 0
