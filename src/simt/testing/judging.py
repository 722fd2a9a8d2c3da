"""What simt's plug-in for pytest says of a test's launches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simt.gpu import GPU
from simt.names import short_name
from simt.result import LaunchResult

from . import baseline as baselines
from .budgets import Budget
from .sarif import Annotation

_PLACE = re.compile(r"(.+):(\d+)$")


@dataclass
class Judgement:
    """findings: what fails the test. properties: for JUnit. kept: for the baseline."""

    findings: list[Annotation] = field(default_factory=list)
    properties: list[tuple[str, object]] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)


def judge(
    gpu: GPU,
    test: str,
    marked: Mapping[str, Any],
    *,
    baseline: Path,
    tolerance: float,
    update: bool,
    place: tuple[str, int | None, str],
) -> Judgement:
    """Compares the launches that a test made with its budgets and the baseline, and takes the checker's
    findings.

    place: of the test: file, line from 0, name; for findings without a line of their own.
    """
    found = Judgement()
    own = place[0], (place[1] or 0) + 1
    for one in gpu.findings():
        at = (one.file, one.line) if one.file and one.line else own
        found.findings.append(Annotation("check", str(one), *at))
    launches = [] if gpu.functional else list(gpu.result().launches)
    budgets = marked.get("budget", ())
    for text in [budgets] if isinstance(budgets, str) else budgets:
        if problem := Budget.read(text).problem(launches):
            found.findings.append(Annotation("budget", problem, *own))
    found.properties = list(_properties(launches))
    if not launches or not marked.get("baseline", True):
        return found
    found.kept = {test: baselines.kept(launches)}
    before = None if update else baselines.load(baseline).get(test)
    if before is not None:
        for text, line in baselines.changes(before, launches, tolerance):
            known = _PLACE.match(line)
            where = (known[1], int(known[2])) if known and Path(known[1]).is_file() else own
            found.findings.append(Annotation("baseline", text, *where))
    return found


def _properties(launches: Iterable[LaunchResult]) -> Iterable[tuple[str, object]]:
    """Cycles and time of each kernel, of its longest launch."""
    longest: dict[str, LaunchResult] = {}
    for x in launches:
        if x.name not in longest or x.cycles > longest[x.name].cycles:
            longest[x.name] = x
    for x in longest.values():
        yield f"simt.{short_name(x.name)}.cycles", x.cycles
        yield f"simt.{short_name(x.name)}.nanoseconds", round(1e9 * x.seconds)
