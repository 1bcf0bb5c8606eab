"""Draw the floors of the package: `python docs/make_floors.py`.

Which part is on which floor is read from the test that keeps imports pointing down: the picture cannot say otherwise.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).parent / "pictures" / "floors.svg"
GLOSSES = {
    "errors": "all exceptions",
    "custodian_debug": "hidden failures",
    "exact": "fractions",
    "formatting": "numbers as text",
    "names": "names and paths",
    "stored_names": "names in files",
    "data": "made-up tables",
    "file_locks": "flock",
    "http_client": "token, retries",
    "seccomp_rules": "system calls",
    "schema": "columns, TOML",
    "frames": "tables → Arrow",
    "pages": "HTML and SVG",
    "balls": "proven intervals",
    "noise": "secure bits → exact integers; the laws of all samplers",
    "plots": "charts from plain arrays",
    "privacy": "relations, events, composition and accountants, guarantees, the Payer protocol",
    "mechanisms": "one file a mechanism: grid, sensitivity, noise, release",
    "adaptive": "noise calibrated to the data at hand",
    "ledger": "budgets, filters, the durable record",
    "robust": "estimates without tight bounds",
    "statistics": "dp.count … dp.regression in one call; dp.compare",
    "query": "SQL → plan → charge → rows → noise; sessions",
    "learn": "DP-SGD for PyTorch; scikit-learn estimators",
    "synth": "synthetic tables and pictures",
    "release": "plans, prices, bundles, reports, profiles",
    "lab": "verify, attacks, audit, demo, evaluation",
    "server_answers": "what a server answers, as it is read",
    "remote_releases": "releases of a server",
    "client": "a server from Python, with the verbs of a session",
    "server": "HTTP API, accounts, jobs, pages",
    "cli": "the command line: one file a command",
}
WIDTH, LEFT, HEIGHT, GAP = 900, 64, 46, 8
MANY = 5  # Parts on a floor whose names need smaller letters.
FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# A card of its own, like the other pictures, so that it looks the same on a light page and on a dark one.
CARD, BOX, EDGE, INK, QUIET = "#ffffff", "#eef2f5", "#9aa8b5", "#1d2730", "#51606e"


def floors() -> dict[int, list[str]]:
    """Return the parts that exist, by floor."""
    tree = ast.parse((ROOT / "tests" / "test_imports_point_down.py").read_text(encoding="utf-8"))
    assigned = (node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name))
    (listed,) = [node.value for node in assigned if node.targets[0].id == "FLOORS"]  # type: ignore[attr-defined]
    found: dict[int, list[str]] = {}
    for part, floor in ast.literal_eval(listed).items():
        source = ROOT / "src" / "discreet" / part
        if source.is_dir() or source.with_suffix(".py").exists():
            found.setdefault(floor, []).append(part)
    return dict(sorted(found.items(), reverse=True))


def drawing() -> str:
    """Return the picture."""
    rows = list(floors().items())
    height = GAP + len(rows) * (HEIGHT + GAP)
    told = "; ".join(f"floor {floor}: {', '.join(parts)}" for floor, parts in rows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="{FONT}">',
        f"<title>The floors of discreet, imports point down: {escape(told)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{CARD}"/>',
        *_arrow(height),
    ]
    for place, (floor, parts) in enumerate(rows):
        lines += _row(GAP + place * (HEIGHT + GAP), floor, parts)
    return "\n".join([*lines, "</svg>\n"])


def _arrow(height: int) -> list[str]:
    """Say once, along the left edge, what the order means."""
    middle, end = height // 2, height - 2 * GAP
    return [
        f'<path d="M16 {2 * GAP}V{end}m-4 -8l4 8l4 -8" fill="none" stroke="{QUIET}"/>',
        f'<rect x="8" y="{middle - 62}" width="16" height="124" fill="{CARD}"/>',
        f'<text transform="translate(20 {middle}) rotate(-90)" font-size="12" fill="{QUIET}" text-anchor="middle">'
        "imports point down</text>",
    ]


def _row(top: int, floor: int, parts: list[str]) -> list[str]:
    width = (WIDTH - LEFT - GAP * len(parts)) / len(parts)
    lines = [
        f'<text x="{LEFT - 14}" y="{top + HEIGHT / 2 + 4:g}" font-size="13" fill="{QUIET}" text-anchor="end">'
        f"{floor}</text>"
    ]
    for place, part in enumerate(parts):
        left = LEFT + place * (width + GAP)
        middle = left + width / 2
        lines += [
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" rx="4" fill="{BOX}" '
            f'stroke="{EDGE}"/>',
            _text(middle, top + 20, 14 if len(parts) < MANY else 13, INK, part, weight="600"),
            _text(middle, top + 37, 11.5, QUIET, GLOSSES[part]),
        ]
    return lines


def _text(x: float, y: int, size: float, colour: str, text: str, weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size:g}" font-weight="{weight}" fill="{colour}" text-anchor="middle">'
        f"{escape(text)}</text>"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
