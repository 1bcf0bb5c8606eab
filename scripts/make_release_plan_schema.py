"""Write the JSON Schema of plan files into the documentation: `python scripts/make_release_plan_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.release import release_plan_schema

TARGET = Path(__file__).parents[1] / "docs" / "schema" / "release-plan.schema.json"


def main() -> None:
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(release_plan_schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
