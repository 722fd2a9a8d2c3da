"""The JSON Schemas of files, which follow from the classes that are written to them.

`make generate` in a checkout runs this file. The schemas are checked in; tests fail where they are not up to
date.
"""

from __future__ import annotations

from pathlib import Path

from simt.result import schema as result_schema
from simt.sampling import plan

_PACKAGE = Path(__file__).parent


def files() -> dict[Path, str]:
    """The text of each file."""
    return {
        _PACKAGE / "sampling" / "simt.plan-1.schema.json": plan.schema(),
        _PACKAGE / "result" / "simt.result-1.schema.json": result_schema.schema(),
    }


if __name__ == "__main__":
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
