"""How far simulated times of published runs were off, run by run: what intervals of Results are made of.

`row_errors.csv` has a line for each run that was compared: what makes it like others (its length, its
instructions, what its warps waited for, the GPU, the code), its measured time as a multiple of the
simulated one, and what it was measured with. `simt validate programs --record` puts rows into it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from simt.files import replacing
from simt.result import Result

ROWS = Path(__file__).with_name("row_errors.csv")
MODELS: tuple[tuple[int, tuple[str, ...]], ...] = ((10, ()), (11, ("qv100", "titanv")))
"""Numbers of the last timing models (the table of docs/records/whole-programs.md), and the GPUs whose cycles
each changed; none: all."""
_COLUMNS = (
    "gpu", "sm_version", "code", "suite", "program", "row", "use", "cycles", "instructions", "waits", "ratio",
    "sampling", "half_width", "model", "commit", "date",
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
    """A run that was compared.

    ratio: measured / simulated time.
    use: see docs/whole-programs.md; empty: it is in no mean, as its recipe is gone or has become unclear.
    sampling: the method; empty: simulated whole. half_width: of the 95 % interval of the simulated time, as a
        share of it: of the sampling, not of the model.
    model: number of the timing model. commit: of simt, with a + if its model had been changed. date: when it
        was recorded.
    """

    features: RunFeatures
    suite: str
    program: str
    row: str
    ratio: float
    use: str = ""
    sampling: str = ""
    half_width: float = 0.0
    model: int = 0
    commit: str = ""
    date: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        return self.features.gpu, self.features.code, self.suite, self.program, self.row

    @property
    def error(self) -> float:
        """(simulated - measured) / measured."""
        return 1 / self.ratio - 1

    @property
    def is_older(self) -> bool:
        """Whether the GPU has another timing model by now."""
        return self.model < present_model(self.features.gpu)


def present_model(gpu: str) -> int:
    """Number of the timing model of a GPU."""
    return max(number for number, gpus in MODELS if not gpus or gpu in gpus)


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
    about = row["suite"], row["program"], row["row"], float(row["ratio"]), row["use"], row["sampling"]
    return ErrorRow(
        features, *about, float(row["half_width"] or 0), int(row["model"]), row["commit"], row["date"]
    )


def record_rows(rows: Iterable[ErrorRow], path: Path = ROWS, not_counted: Iterable[ErrorRow] = ()) -> None:
    """Puts rows into the file, each in the place of the same row of the same GPU and code; all others stay as
    they are. A sampled row does not replace one that the same model simulated whole.

    not_counted: rows that are in no mean any more, if they are in the file.
    """
    kept = {row.key: row for row in error_rows(path)}
    for row in rows:
        old = kept.get(row.key)
        if old is None or not row.sampling or old.sampling or old.model != row.model:
            kept[row.key] = row
    for row in not_counted:
        if row.key in kept:
            kept[row.key] = replace(kept[row.key], use="")
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for _, row in sorted(kept.items()):
            x = row.features
            most = sorted(x.waits.items(), key=lambda wait: (-round(wait[1], 2), wait[0]))[:_STATES]
            waits = " ".join(f"{state}={share:.2f}" for state, share in most)
            run = x.gpu, x.sm_version, x.code, row.suite, row.program, row.row, row.use
            sampled = (row.sampling, f"{row.half_width:.4f}") if row.sampling else ("", "")
            about = round(x.cycles), round(x.instructions, 1), waits, f"{row.ratio:.4f}"
            writer.writerow([*run, *about, *sampled, row.model, row.commit, row.date])
    error_rows.cache_clear()
