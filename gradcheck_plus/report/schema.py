"""The JSON Schema of the report, generated from the structs that are written; `schema.json` is its copy in the package.

``python -m gradcheck_plus.report.schema`` prints it; a test compares the two.
"""

import json
import sys
from importlib import resources
from typing import Any

import msgspec

from gradcheck_plus.results import Report


def generated() -> dict[str, Any]:
    """Return the schema of what ``--json`` writes."""
    schema = msgspec.json.schema(Report)
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "gradcheck-plus report, schema version 1"}
    return {**title, **schema}


def shipped() -> dict[str, Any]:
    """Return the schema that ships with the package.

    Example:
        >>> shipped()["title"]
        'gradcheck-plus report, schema version 1'
    """
    text = (resources.files("gradcheck_plus.report") / "schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


if __name__ == "__main__":
    sys.stdout.write(json.dumps(generated(), indent=1) + "\n")
