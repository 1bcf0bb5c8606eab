"""Write the JSON Schema of policy files into the documentation: `python scripts/make_policy_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.query.session.policy_file import policy_schema

TARGET = Path(__file__).parents[1] / "docs" / "schema" / "policy.schema.json"


def main() -> None:
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(policy_schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
