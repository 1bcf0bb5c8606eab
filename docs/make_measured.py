"""Write the table of measured figures into README.md: `python docs/make_measured.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
_START, _END = "<!-- measured: written by docs/make_measured.py -->\n", "<!-- end of measured -->"

_NOISE = {
    "discreet": "Discreet: exact, cryptographic source",
    "numpy": "NumPy floats: not secure",
    "opendp": "OpenDP, vector call",
    "python-dp": "python-dp, in a loop",
    "diffprivlib": "diffprivlib, in a loop",
}
_ACCOUNTS = {
    ("discreet", "epsilon"): "Discreet: proven upper bound",
    ("dp-accounting", "PLD 1e-3"): "dp-accounting, PLD, grid 1e-3",
    ("dp-accounting", "PLD 1e-4"): "dp-accounting, PLD, grid 1e-4",
    ("prv-accountant", "PRV 0.01"): "prv-accountant, upper end, error 0.01",
    ("opacus", "PRV"): "Opacus, PRV",
    ("opacus", "RDP"): "Opacus, RDP",
}


_QUANTILES = {
    ("discreet", "smooth sensitivity"): "Discreet: smooth sensitivity",
    ("discreet", "exponential mechanism"): "Discreet: exponential mechanism",
    ("numpy", "np.sort"): "np.sort: not private",
    ("opendp", None): "OpenDP, 1,001 candidates",
    ("python-dp", None): "python-dp",
    ("diffprivlib", None): "diffprivlib",
}


def rows(topic: str) -> list[dict[str, Any]]:
    """Return what the last full run of a topic measured; nothing if there was none."""
    path = RESULTS / f"{topic}.json"
    return list(json.loads(path.read_text())["rows"]) if path.exists() else []


def block() -> str:
    """Return the tables."""
    parts = [_noise(rows("noise")), _accounting(rows("accounting")), _quantiles(rows("speed")), _machine()]
    return "\n".join(part for part in parts if part)


def _noise(found: list[dict[str, Any]]) -> str:
    jobs = (("laplace", "1"), ("laplace", "1000000"), ("gaussian", "100"), ("gaussian", "1000000"))
    columns = ("CPU ns a sample, in arrays", "Laplace, scale 1", "scale 10⁶", "Gaussian, σ = 100", "σ = 10⁶")
    head = f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|\n"
    lines = [
        f"| {title} | {' | '.join(_ns(found, subject, *job) for job in jobs)} |" for subject, title in _NOISE.items()
    ]
    return head + "\n".join(lines) + "\n" if found else ""


def _ns(found: list[dict[str, Any]], subject: str, job: str, parameter: str) -> str:
    wanted = {"subject": subject, "job": job, "parameter": parameter, "call": "vector"}
    times = [row["cpu_ns"] for row in found if wanted.items() <= row.items() and "cpu_ns" in row]
    return _short(min(times)) if times else "–"


def _accounting(found: list[dict[str, Any]]) -> str:
    head = "| ε of DP-SGD, q = 0.01, σ = 1, 10,000 steps, δ = 10⁻⁵ | ε | CPU ms |\n|---|---|---|\n"
    lines = []
    for (subject, how), title in _ACCOUNTS.items():
        wanted = {"subject": subject, "how": how, "task": "dpsgd"}
        mine = [row for row in found if wanted.items() <= row.items()]
        if mine:
            lines.append(f"| {title} | {mine[0]['value']:.4f} | {_short(min(row['cold_ms'] for row in mine))} |")
    return head + "\n".join(lines) + "\n" if lines else ""


def _quantiles(found: list[dict[str, Any]]) -> str:
    head = "| Private median of floats, CPU ns a value | 10⁶ values | 10⁷ values |\n|---|---|---|\n"
    lines = [
        f"| {title} | {' | '.join(_value_ns(found, subject, how, size) for size in (10**6, 10**7))} |"
        for (subject, how), title in _QUANTILES.items()
    ]
    return head + "\n".join(lines) + "\n" if found else ""


def _value_ns(found: list[dict[str, Any]], subject: str, how: str | None, size: int) -> str:
    wanted = {"subject": subject, "size": size} | ({} if how is None else {"how": how})
    times = [row["cpu_ns"] for row in found if wanted.items() <= row.items() and row["job"] in ("", "median")]
    return _short(max(times)) if times else "–"


def _machine() -> str:
    machine = json.loads((RESULTS / "noise.json").read_text())["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {machine['date']}"
    return f"{where}; each library in its own\nenvironment, each table from one run (`make bench`).\n"


def _short(value: float) -> str:
    """Write a figure with three digits at most."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def renewed(text: str) -> str:
    """Return the page with the tables renewed."""
    before, _, rest = text.partition(_START)
    return before + _START + "\n" + block() + "\n" + _END + rest.partition(_END)[2]


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
