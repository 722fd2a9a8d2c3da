"""How far simulated times of published runs were off, run by run: what intervals of Results are made of.

`row_errors.csv` has a line for each run that was compared: what makes it like others (its length, its
instructions, what its warps waited for, the GPU, the code), and its measured time as a multiple of the
simulated one. `simt validate programs --record` writes it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from simt.files import replacing
from simt.result import Result
from simt.spec import load_spec

if TYPE_CHECKING:
    from simt.validate.whole_programs import RowOutcome

ROWS = Path(__file__).with_name("row_errors.csv")
_COLUMNS = (
    "gpu", "sm_version", "code", "suite", "use", "program", "row", "cycles", "instructions", "waits", "ratio",
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
            waiting(t.warp_stalls),
        )


@dataclass(frozen=True)
class ErrorRow:
    """A run that was compared. ratio: measured / simulated time."""

    features: RunFeatures
    suite: str
    use: str
    program: str
    row: str
    ratio: float

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What is recorded at once."""
        return self.features.gpu, self.features.code, self.suite, self.use

    @classmethod
    def of(cls, outcome: RowOutcome) -> ErrorRow:
        states = sorted(waiting(outcome.stalls).items(), key=lambda row: -row[1])[:_STATES]
        features = RunFeatures(
            outcome.gpu,
            load_spec(outcome.gpu).sm_version,
            outcome.code,
            round(outcome.simulated / (outcome.compared or outcome.launches)),
            round(outcome.instructions / outcome.launches),
            {name: round(share, 2) for name, share in states},
        )
        ratio = round(outcome.measured / outcome.simulated, 4)
        return cls(features, outcome.suite, outcome.use, outcome.program, outcome.row, ratio)


def waiting(states: Mapping[str, float]) -> dict[str, float]:
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
    return ErrorRow(features, row["suite"], row["use"], row["program"], row["row"], float(row["ratio"]))


def record_rows(outcomes: Sequence[RowOutcome], path: Path = ROWS) -> int:
    """Replaces the rows of these outcomes' suites, GPUs, codes and uses; how many there are of them."""
    new = [ErrorRow.of(x) for x in outcomes if x.counts and x.measured and x.simulated]
    groups = {row.group for row in new}
    kept = [row for row in error_rows(path) if row.group not in groups] if path.exists() else []
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in sorted([*kept, *new], key=lambda row: (*row.group, row.program, row.row)):
            x = row.features
            waits = " ".join(f"{name}={share:.2f}" for name, share in x.waits.items())
            numbers = (f"{x.cycles:.0f}", f"{x.instructions:.0f}", waits, f"{row.ratio:.4f}")
            writer.writerow((x.gpu, x.sm_version, x.code, row.suite, row.use, row.program, row.row, *numbers))
    error_rows.cache_clear()
    return len(new)
