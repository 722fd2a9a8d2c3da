"""How far simulated times of published runs were off, run by run: what intervals of Results are made of.

`row_errors.csv` has a line for each run that was compared: what makes it like others (its length, its
instructions, what its warps waited for, the GPU, the code), and its measured time as a multiple of the
simulated one. `simt validate programs --record` writes it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from simt.files import replacing
from simt.result import Result

ROWS = Path(__file__).with_name("row_errors.csv")
_COLUMNS = (
    "gpu", "sm_version", "code", "suite", "program", "row", "cycles", "instructions", "waits", "ratio",
)  # fmt: skip
_ISSUE = ("selected", "not_selected")
_STATES = 5  # of warps: the most frequent ones are kept


@dataclass(frozen=True)
class RunFeatures:
    """What makes runs alike. code: `ptx`, or `sass` for machine code and traces. cycles, instructions: of a
    launch, on average. waits: share of all waiting by state.
    """

    gpu: str
    sm_version: int
    code: str
    cycles: float
    instructions: float
    waits: Mapping[str, float]

    @classmethod
    def of(cls, result: Result) -> RunFeatures:
        t = result.totals
        n = max(1, t.launches)
        return cls(
            result.machine.name,
            result.launches[0].sm_version if result.launches else 0,
            "ptx" if result.provenance.code in ("PTX", "") else "sass",
            t.cycles / n,
            t.warp_instructions / n,
            shares_of_waiting(t.warp_stalls),
        )


@dataclass(frozen=True)
class ErrorRow:
    """A run that was compared. ratio: measured / simulated time."""

    features: RunFeatures
    suite: str
    program: str
    row: str
    ratio: float


def shares_of_waiting(states: Mapping[str, float]) -> dict[str, float]:
    """Of all waiting, the share of each state."""
    waits = {name: n for name, n in states.items() if name not in _ISSUE and not math.isnan(n) and n > 0}
    total = sum(waits.values())
    return {name: n / total for name, n in waits.items()}


@lru_cache(maxsize=4)
def error_rows(path: Path = ROWS) -> tuple[ErrorRow, ...]:
    """The compared rows, in the order of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_read(row) for row in csv.DictReader(file))


def _read(row: Mapping[str, str]) -> ErrorRow:
    features = RunFeatures(
        row["gpu"],
        int(row["sm_version"]),
        row["code"],
        float(row["cycles"]),
        float(row["instructions"]),
        {name: float(share) for name, _, share in (part.partition("=") for part in row["waits"].split())},
    )
    return ErrorRow(features, row["suite"], row["program"], row["row"], float(row["ratio"]))


def record_rows(rows: Iterable[ErrorRow], path: Path = ROWS) -> None:
    """Writes rows into the file, in the place of those of the same GPU, code, suite and name."""

    def about(row: ErrorRow) -> tuple[str, ...]:
        return row.features.gpu, row.features.code, row.suite, row.program, row.row

    kept = {about(row): row for row in [*error_rows(path), *rows]}
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for _, row in sorted(kept.items()):
            x = row.features
            most = sorted(x.waits.items(), key=lambda wait: (-wait[1], wait[0]))[:_STATES]
            waits = " ".join(f"{state}={share:.2f}" for state, share in most)
            run = x.gpu, x.sm_version, x.code, row.suite, row.program, row.row
            writer.writerow([*run, round(x.cycles), round(x.instructions, 1), waits, f"{row.ratio:.4f}"])
    error_rows.cache_clear()
