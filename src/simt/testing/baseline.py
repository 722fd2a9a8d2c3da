"""Baselines: what tests' kernels took, in a file of the repository, and why they take another time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from simt.errors import SimtError
from simt.files import write_text
from simt.names import short_name
from simt.result import LaunchResult
from simt.version import __version__

SCHEMA = "simt.baseline/1"

# What is kept of a launch, and what it is called: (in the engine's counters, one, several, states of warps).
_COUNTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "shared_bank_conflicts",
        "shared-memory pass",
        "shared-memory passes",
        ("mio_throttle", "short_scoreboard"),
    ),
    ("global_load_sectors", "sector loaded", "sectors loaded", ("long_scoreboard", "lg_throttle")),
    ("global_store_sectors", "sector stored", "sectors stored", ("lg_throttle", "long_scoreboard")),
    ("atomic_requests", "atomic request", "atomic requests", ("long_scoreboard", "lg_throttle")),
    ("local_requests", "local-memory request", "local-memory requests", ("long_scoreboard", "lg_throttle")),
    ("dram_reads", "sector read from DRAM", "sectors read from DRAM", ("long_scoreboard",)),
    ("dram_writes", "sector written to DRAM", "sectors written to DRAM", ("long_scoreboard", "drain")),
    ("warp_instructions", "warp instruction", "warp instructions", ()),
    ("instruction_cache_misses", "instruction-cache miss", "instruction-cache misses", ("no_instruction",)),
)


class Kept(msgspec.Struct):
    """A launch in a baseline. lines: `FILE:LINE` or PC: issued instructions, and samples by state of
    warps."""

    kernel: str
    cycles: int
    counts: dict[str, int]
    lines: dict[str, dict[str, int]]


class _File(msgspec.Struct):
    schema: Literal["simt.baseline/1"]
    version: str
    tests: dict[str, list[Kept]]


def kept(launches: Sequence[LaunchResult]) -> list[dict[str, Any]]:
    """What a baseline keeps of launches, as JSON."""
    from simt.result.listing import place_text

    found = []
    for x in launches:
        lines = {place_text(line.place): {"issued": line.issued, **line.stalled} for line in x.lines()}
        counts = {name: x.engine[name] for name, *_ in _COUNTS}
        found.append({"kernel": x.name, "cycles": x.cycles, "counts": counts, "lines": lines})
    return found


def load(path: Path) -> dict[str, list[Kept]]:
    """The tests of a baseline; empty if there is none. Raises SimtError for a file of another form."""
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).tests
    except (msgspec.MsgspecError, OSError) as error:
        raise SimtError(
            f"{path}: not a baseline of schema {SCHEMA}: {error}; write a new one with --simt-update"
        ) from None


def save(path: Path, tests: Mapping[str, Any]) -> None:
    """Writes a baseline, with these tests in place of their earlier ones. Raises SimtError."""
    before = msgspec.to_builtins(load(path))
    merged = {name: value for name, value in sorted({**before, **tests}.items())}
    data = {"schema": SCHEMA, "version": __version__, "tests": merged}
    write_text(path, json.dumps(data, indent=1, sort_keys=True) + "\n", SimtError)


def changes(
    before: Sequence[Kept], launches: Sequence[LaunchResult], tolerance: float
) -> list[tuple[str, str]]:
    """Launches that take more than `tolerance` longer than before: why, and the line; and launches that are
    no longer the same ones."""
    now = msgspec.convert(kept(launches), list[Kept])
    names = [[short_name(x.kernel) for x in rows] for rows in (before, now)]
    if names[0] != names[1]:
        return [(f"other launches than in the baseline: {_listed(names[1])}; before {_listed(names[0])}", "")]
    found = []
    for a, b, launch in zip(before, now, launches, strict=True):
        if b.cycles > a.cycles * (1 + tolerance):
            reason, line = _reason(a, b)
            more = b.cycles / a.cycles - 1
            what = f"{short_name(b.kernel)} (launch {launch.id})"
            found.append(
                (f"{what}: {100 * more:,.3g} % more cycles ({a.cycles:,} to {b.cycles:,}): {reason}", line)
            )
    return found


def _listed(names: Sequence[str]) -> str:
    return (
        ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") if names else "none"
    )


def _reason(a: Kept, b: Kept) -> tuple[str, str]:
    """The count that grew most, relative to the launch's instructions, and the line where it shows."""
    grown = []
    for name, one, several, states in _COUNTS:
        more = b.counts.get(name, 0) - a.counts.get(name, 0)
        if more > 0:
            grown.append((more / max(1, a.counts.get(name, 0)), more, one if more == 1 else several, states))
    if not grown:
        line, state = _waits_longer(a, b, ())
        if not state:
            return "the counts are the same", line
        return f"as many instructions and accesses, but warps wait longer for {state}{_at(line)}", line
    _, more, what, states = max(grown, key=lambda row: row[0])
    line, _ = _waits_longer(a, b, states)
    return f"{more:,} more {what}{_at(line)}", line


def _at(line: str) -> str:
    if not line:
        return ""
    file, colon, number = line.rpartition(":")
    return f" at line {number} of {file}" if colon else f" at {line}"


def _waits_longer(a: Kept, b: Kept, states: Sequence[str]) -> tuple[str, str]:
    """The line at which these states (none: all; for instructions, `issued`) grew most, and the state."""
    most, found = 0, ("", "")
    for line, row in b.lines.items():
        before = a.lines.get(line, {})
        for state, n in row.items():
            if state != "not_selected" and (state in states if states else True):
                more = n - before.get(state, 0)
                if more > most:
                    most, found = more, (line, state)
    return found
