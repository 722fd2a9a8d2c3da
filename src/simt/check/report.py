"""Findings as text and as SARIF, from which code hosts annotate lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from simt.formatting import plural
from simt.version import __version__

from .findings import REMEDIES, Access, Finding

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def show(findings: Sequence[Finding], write: Callable[[str], None], limit: int) -> None:
    """Writes each finding, at most `limit`, what gives them lines, and a last line with their number."""
    for finding in findings[:limit]:
        write(f"{finding}\n")
    if len(findings) > limit:
        write(f"{plural(len(findings) - limit, 'further finding')} not shown (--limit)")
    if any(finding.without_lines for finding in findings):
        write("Numba gives the lines of a kernel with @cuda.jit(lineinfo=True)")
    write(plural(len(findings), "finding") if findings else "nothing found")


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """A log of SARIF 2.1.0 with a result for each finding."""
    kinds = sorted({finding.kind for finding in findings})
    rules = [{"id": kind, "help": {"text": REMEDIES[kind]}} for kind in kinds]
    return sarif_log("simt check", rules, [_result(each) for each in findings])


def sarif_log(tool: str, rules: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    """A log of one tool. Schema: OASIS, SARIF version 2.1.0."""
    driver = {"name": tool, "version": __version__, "rules": rules}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    weak = finding.kind == "race-weak" or finding.check == "leak"
    found: dict[str, Any] = {
        "ruleId": finding.kind,
        "level": "warning" if weak else "error",
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "occurrenceCount": finding.count,
    }
    if finding.file:
        found["locations"] = [{"physicalLocation": sarif_place(finding.file, finding.line)}]
    if finding.first is not None and finding.second is not None and finding.first.file:
        found["relatedLocations"] = [_related(finding.first)]
    return found


def _related(access: Access) -> dict[str, Any]:
    return {
        "physicalLocation": sarif_place(access.file, access.line),
        "message": {"text": f"{access.what} by {access.thread_text}"},
    }


def sarif_place(file: str, line: int | None) -> dict[str, Any]:
    """The physical location of a line; of the file if the line is not known."""
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
    return place if line is None else {**place, "region": {"startLine": line}}
