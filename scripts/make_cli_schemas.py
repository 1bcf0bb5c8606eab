"""Write the JSON Schema of what each command answers into the documentation: `python scripts/make_cli_schemas.py`."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.cli.schemas import ANSWERS, schema_of

TARGET = Path(__file__).parents[1] / "docs" / "schema" / "cli"


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in ANSWERS:
        file = TARGET / f"{name.replace(' ', '-')}.schema.json"
        file.write_text(json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
