"""Findings of tests as SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simt.errors import SimtError
from simt.files import write_text
from simt.version import __version__

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
    """The log with these findings. Schema: OASIS, SARIF version 2.1.0."""
    results = []
    for one in findings:
        place: dict[str, Any] = {"artifactLocation": {"uri": one.file}}
        if one.line > 0:
            place["region"] = {"startLine": one.line}
        results.append(
            {
                "ruleId": one.rule,
                "level": "error",
                "message": {"text": one.message},
                "locations": [{"physicalLocation": place}],
            }
        )
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "simt", "version": __version__, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def write(path: Path, findings: Iterable[Annotation]) -> None:
    """Writes the log; the file appears whole or not at all. Raises SimtError."""
    write_text(path, json.dumps(to_sarif(findings), indent=1) + "\n", SimtError)
