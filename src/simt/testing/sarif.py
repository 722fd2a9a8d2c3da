"""Findings of tests as SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simt.check.report import sarif_log, sarif_place
from simt.errors import SimtError
from simt.files import write_text

_RULES = {
    "budget": "A kernel takes more than its budget",
    "baseline": "A kernel takes longer than in the baseline",
    "check": "A kernel does what is undefined, such as a data race",
}


@dataclass(frozen=True)
class Annotation:
    """rule: budget, baseline or check. file, line: where; 0: not known."""

    rule: str
    message: str
    file: str
    line: int

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {}


def to_sarif(findings: Iterable[Annotation]) -> dict[str, Any]:
    """The log with these findings."""
    results = [
        {
            "ruleId": one.rule,
            "level": "error",
            "message": {"text": one.message},
            "locations": [{"physicalLocation": sarif_place(one.file, one.line or None)}],
        }
        for one in findings
    ]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    return sarif_log("simt", rules, results)


def write(path: Path, findings: Iterable[Annotation]) -> None:
    """Writes the log; the file appears whole or not at all. Raises SimtError."""
    write_text(path, json.dumps(to_sarif(findings), indent=1) + "\n", SimtError)
