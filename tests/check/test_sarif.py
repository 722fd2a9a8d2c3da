"""SARIF logs against the standard (OASIS, SARIF 2.1.0, sections 3.13 to 3.49), as far as simt uses it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from simt.check import Finding, sarif
from simt.check.findings import Access
from simt.testing.sarif import Annotation, to_sarif

TEXT = {"type": "string", "minLength": 1}


def an_object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """What has these properties, and no others: those that SARIF does not know are errors."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def a_list(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


MESSAGE = an_object({"text": TEXT})
REGION = an_object({"startLine": {"type": "integer", "minimum": 1}})
URI = {"type": "string", "pattern": r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%\[\]-]*$"}
PLACE = an_object({"artifactLocation": an_object({"uri": URI})}, {"region": REGION})
LOCATION = an_object({"physicalLocation": PLACE}, {"message": MESSAGE})
RULE = an_object({"id": TEXT}, {"help": MESSAGE, "shortDescription": MESSAGE})
RESULT = an_object(
    {"message": MESSAGE},
    {
        "ruleId": TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},
        "occurrenceCount": {"type": "integer", "minimum": 1},
        "locations": a_list(LOCATION),
        "relatedLocations": a_list(LOCATION),
    },
)
DRIVER = an_object({"name": TEXT}, {"version": TEXT, "rules": {**a_list(RULE), "uniqueItems": True}})
RUN = an_object({"tool": an_object({"driver": DRIVER}), "results": a_list(RESULT)})
LOG = an_object({"version": {"const": "2.1.0"}, "runs": a_list(RUN)}, {"$schema": TEXT})

ACCESS = Access(
    what="write",
    file="my kernels/sum.cu",
    line=4,
    inner="",
    instruction="st.shared.u32 [%r3], %r5;",
    thread=(1, 0, 0),
    block=(0, 0, 0),
    address=4,
    space="shared",
    variable="s",
    offset=4,
    allocation="",
    source="s[t] = x[t];",
)
RACE = Finding(
    check="race",
    kind="race-shared",
    kernel="sum",
    file="my kernels/sum.cu",
    line=6,
    message="two threads access the same shared memory",
    remedy="Put __syncthreads() between them.",
    first=ACCESS,
    second=replace(ACCESS, what="read", line=6),
    count=3,
)
FINDINGS = {
    "two accesses": RACE,
    "no line": replace(RACE, line=None, first=replace(ACCESS, line=None)),
    "no place": replace(RACE, kind="deadlock", check="sync", file="", line=None, first=None, second=None),
    "a leak": replace(RACE, kind="leak-device", check="leak", kernel="", first=None, second=None),
}


def require_valid(log: dict[str, Any]) -> None:
    jsonschema.validate(log, LOG)
    for run in log["runs"]:
        known = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(known) == len(set(known))
        assert {result["ruleId"] for result in run["results"]} <= set(known)


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_gives_a_valid_log(name: str) -> None:
    log = sarif([FINDINGS[name]])
    require_valid(log)
    (result,) = log["runs"][0]["results"]
    assert result["occurrenceCount"] == 3


def test_logs_of_many_findings_and_of_none_are_valid() -> None:
    require_valid(sarif([*FINDINGS.values(), RACE]))
    require_valid(sarif([]))


def test_files_are_references_to_uris() -> None:
    """A name may have spaces, `#` and letters that a URI has not."""
    (result,) = sarif([replace(RACE, file="/kernels #2/größe.cu")])["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "/kernels%20%232/gr%C3%B6%C3%9Fe.cu"


def test_logs_of_tests_are_valid() -> None:
    require_valid(
        to_sarif(
            [Annotation("budget", "too slow", "a test.py", 3), Annotation("check", "a race", "test.py", 0)]
        )
    )
