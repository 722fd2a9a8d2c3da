"""How far a Result's time may be off: by the errors of the nearest rows that were compared with real GPUs.

A row is a run of a program whose time on a real GPU is published; `row_errors.csv` has its simulated cycles,
instructions, what its warps waited for, and how its measured time relates to the simulated one. Near are rows
with launches of about the same length and size that wait for the same things, on the same GPU or one of its
generation. The interval holds the middle 90 % of the nearest rows' ratios, widened for their
number. Where there are too few near rows, nothing is claimed.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from simt.files import replacing
from simt.formatting import format_time
from simt.result import Result
from simt.spec.files import available, load_spec

ROWS = Path(__file__).with_name("row_errors.csv")
COVERAGE = 0.9
NEAREST = 24  # rows that an interval is made of, at most
LEAST = 12  # and at least
FARTHEST = 1.6  # distance beyond which a row says nothing
WIDENING = 1.15  # of the interval in logarithms: the nearest rows are not drawn from those to come
_OTHER_GPU = 0.3  # of the same generation; of others nothing follows
_OTHER_CODE = 0.3
_COLUMNS = (
    "gpu", "sm_version", "code", "suite", "program", "row", "cycles", "instructions", "waits", "ratio"
)  # fmt: skip
_STATES = 5  # in which warps wait most, that are recorded
_ISSUE = ("selected", "not_selected")


@dataclass(frozen=True)
class RunFeatures:
    """What makes runs alike. code: "ptx" or "sass". cycles, instructions: of a launch, on average. waits:
    share of all waiting by state."""

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
            "ptx" if result.provenance.code == "PTX" else "sass",
            t.cycles / n,
            t.warp_instructions / n,
            shares_of_waiting(t.warp_stalls),
        )

    def distance(self, other: RunFeatures) -> float:
        """In units of a factor of ten in length, or of all waiting for something else."""
        lengths = math.log10((self.cycles + 1) / (other.cycles + 1))
        sizes = math.log10((self.instructions + 1) / (other.instructions + 1)) / 2
        states = {*self.waits, *other.waits}
        differ = sum(abs(self.waits.get(s, 0.0) - other.waits.get(s, 0.0)) for s in states) / 2
        if self.sm_version != other.sm_version:
            return math.inf
        machine = 0.0 if self.gpu == other.gpu else _OTHER_GPU
        return (
            math.hypot(lengths, sizes, differ) + machine + (_OTHER_CODE if self.code != other.code else 0.0)
        )


@dataclass(frozen=True)
class ErrorRow:
    """ratio: measured / simulated time."""

    features: RunFeatures
    suite: str
    program: str
    row: str
    ratio: float


@dataclass(frozen=True)
class Confidence:
    """How sure a Result's time is.

    low, high: the true time lies between these multiples of the simulated one with a probability of 90 %;
    None:
    unknown. rows: how many rows this follows from. gpus, programs: theirs. code: what ran. conditions: under
    which the time holds. approximations: what was not modelled or only in part, in this run.
    """

    seconds: float
    low: float | None
    high: float | None
    rows: int
    gpus: tuple[str, ...]
    programs: tuple[str, ...]
    code: str
    conditions: str
    approximations: tuple[str, ...]

    @property
    def is_known(self) -> bool:
        return self.low is not None

    @property
    def sentence(self) -> str:
        """The interval in a sentence, or that it is unknown."""
        if self.low is None or self.high is None:
            return (
                "How far the time may be off is unknown: nothing near was ever compared with a real GPU "
                f"({self.rows} rows are near, {LEAST} are needed)."
            )
        return (
            f"In 9 of 10 such runs the true time is {format_time(self.low * self.seconds)} to "
            f"{format_time(self.high * self.seconds)} ({self.low - 1:+.0%} to {self.high - 1:+.0%}), by the "
            f"errors "
            f"of the {self.rows} nearest compared runs, on {', '.join(self.gpus)}."
        )

    def __str__(self) -> str:
        lines = [self.sentence, f"What ran: {self.code or 'not recorded'}; {self.conditions}."]
        return "\n".join([*lines, *(f"approximated: {text}" for text in self.approximations)])

    def to_json(self) -> dict[str, Any]:
        return {
            "interval": None if self.low is None or self.high is None else [self.low, self.high],
            "rows": self.rows,
            "gpus": list(self.gpus),
            "programs": list(self.programs),
            "code": self.code,
            "conditions": self.conditions,
            "approximations": list(self.approximations),
        }


def confidence(result: Result) -> Confidence:
    """How far the time of a Result may be off, what it approximates, what ran, and under which conditions."""
    chosen = nearest(RunFeatures.of(result), error_rows()) if result.launches else []
    low, high = interval([row.ratio for row in chosen]) if len(chosen) >= LEAST else (None, None)
    of_launches = (text for launch in result.launches for text in launch.warnings)
    return Confidence(
        result.totals.seconds,
        low,
        high,
        len(chosen),
        tuple(dict.fromkeys(row.features.gpu for row in chosen)),
        tuple(dict.fromkeys(row.program for row in chosen)),
        result.provenance.code,
        _conditions(result),
        tuple(dict.fromkeys([*result.warnings, *of_launches])),
    )


def _conditions(result: Result) -> str:
    machine, overrides = result.machine, result.provenance.overrides
    cold = overrides.get("launch.cold_caches")
    if cold is None and machine.name in available():
        cold = load_spec(machine.name).launch.cold_caches
    caches = "cold caches" if cold in (True, "true") else "caches as the launches before left them"
    return (
        f"{machine.core_khz / 1000:,.0f} MHz core, {machine.l2_khz / 1000:,.0f} MHz L2, "
        f"{machine.dram_khz / 1000:,.0f} MHz DRAM command clock; {caches}"
    )


def shares_of_waiting(states: Mapping[str, float]) -> dict[str, float]:
    """Of all waiting, by state."""
    waits = {name: n for name, n in states.items() if name not in _ISSUE and n == n and n > 0}
    total = sum(waits.values())
    return {name: n / total for name, n in waits.items()} if total else {}


def nearest(features: RunFeatures, rows: Iterable[ErrorRow]) -> list[ErrorRow]:
    """The nearest rows that are near enough, nearest first."""
    found = sorted((features.distance(row.features), i, row) for i, row in enumerate(rows))
    return [row for distance, _, row in found[:NEAREST] if distance <= FARTHEST]


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The multiples between which the next ratio lies with the probability COVERAGE, from those of like runs.

    Order statistics: of n exchangeable values, the next one is below the k-th with the probability k / (n +
    1).
    """
    logs = sorted(math.log(ratio) for ratio in ratios)
    n = len(logs)
    outside = (1 - COVERAGE) / 2
    low, high = _at(logs, outside * (n + 1)), _at(logs, (1 - outside) * (n + 1))
    middle = (low + high) / 2
    return math.exp(middle + WIDENING * (low - middle)), math.exp(middle + WIDENING * (high - middle))


def _at(values: Sequence[float], place: float) -> float:
    """The value at a place from 1, between two if it is no whole number; beyond the ends, the end."""
    place = min(max(place, 1.0), float(len(values)))
    i = int(place)
    return values[i - 1] if i == len(values) else values[i - 1] + (place - i) * (values[i] - values[i - 1])


@lru_cache(maxsize=4)
def error_rows(path: Path = ROWS) -> tuple[ErrorRow, ...]:
    """The compared rows, in the order of the file."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            ErrorRow(
                RunFeatures(
                    row["gpu"],
                    int(row["sm_version"]),
                    row["code"],
                    float(row["cycles"]),
                    float(row["instructions"]),
                    {k: float(v) for k, _, v in (part.partition("=") for part in row["waits"].split())},
                ),
                row["suite"],
                row["program"],
                row["row"],
                float(row["ratio"]),
            )
            for row in csv.DictReader(file)
        )


def record_rows(rows: Iterable[ErrorRow], path: Path = ROWS) -> None:
    """Writes rows into the file, in the place of those of the same GPU, code, suite and name."""

    def about(row: ErrorRow) -> tuple[str, ...]:
        return row.features.gpu, row.features.code, row.suite, row.program, row.row

    kept = {about(row): row for row in [*error_rows(path), *rows]}
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for _, row in sorted(kept.items()):
            f = row.features
            most = sorted(f.waits.items(), key=lambda wait: (-wait[1], wait[0]))[:_STATES]
            waits = " ".join(f"{state}={share:.2f}" for state, share in most)
            run = f.gpu, f.sm_version, f.code, row.suite, row.program, row.row
            writer.writerow([*run, round(f.cycles), round(f.instructions, 1), waits, f"{row.ratio:.4f}"])
    error_rows.cache_clear()


def leave_out(rows: Sequence[ErrorRow], group: Callable[[ErrorRow], str]) -> tuple[int, int, int]:
    """How often intervals hold for rows whose group is left out: held, claimed, unknown."""
    held = claimed = unknown = 0
    for row in rows:
        others = [other for other in rows if group(other) != group(row)]
        chosen = nearest(row.features, others)
        if len(chosen) < LEAST:
            unknown += 1
            continue
        low, high = interval([other.ratio for other in chosen])
        claimed += 1
        held += low <= row.ratio <= high
    return held, claimed, unknown
