"""How far a Result's time may be off: by the errors of the nearest rows that were compared with real GPUs.

A row is a run of a program whose time on a real GPU is published; `row_errors.csv` has its simulated cycles,
instructions, what its warps waited for, and how its measured time relates to the simulated one. Near are rows
with launches of about the same length and size that wait for the same things; those of the same GPU, of its
generation and of the same code are nearer. The interval holds the middle 90 % of the nearest rows' ratios,
widened, and more so without a row of the same GPU. Where there are too few near rows, nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simt.errors import SimtError
from simt.formatting import format_time, plural
from simt.result import Result
from simt.spec import Spec, load_spec
from simt.spec.files import available
from simt.validate.row_errors import ErrorRow, RunFeatures, error_rows

COVERAGE = 0.9
NEAREST = 24  # rows that an interval is made of, at most
LEAST = 12  # and at least
FARTHEST = 1.6  # distance beyond which a row says nothing
WIDENING = 1.15  # of the interval in logarithms: the nearest rows are not drawn from those to come
WITHOUT_OWN = 1.25  # further widening where no near row is of the same GPU
COMPARED_MODEL = "read_ports"  # the core's, of the rows' GPUs
_OTHER_GPU = 0.3  # of the same generation
_OTHER_GENERATION = 0.6
_OTHER_CODE = 0.3  # PTX or machine code

_PARTLY_MODELLED = {
    ("TEX", "TLD", "TLD4", "TMML", "TXD", "SULD", "SUST", "SURED", "SUATOM"): (
        "textures and surfaces: the rate at which texels are filtered, and texels in the next row or level"
    ),
    ("SYNCS",): "mbarriers: their phases and expected bytes take no time of their own",
    ("UCGABAR_ARV", "UCGABAR_WAIT"): "barriers of clusters take no time of their own",
}
"""What is modelled in part, by opcodes: docs/model/load-store.md, docs/functional/textures.md."""
_OF_A_REAL_GPU = ("clock.", "launch.cold_caches", "sm_version", "host_link.")
"""Overrides with which a specification is still that of the GPU: conditions."""


@dataclass(frozen=True)
class Confidence:
    """How sure a Result's time is.

    low, high: the true time lies between these multiples of the simulated one with a probability of 90 %;
    None: unknown. rows: how many rows this follows from. gpus, programs: theirs. code: what ran. conditions:
    under which the time holds. in_part: what the run used that is modelled in part, or assumed. warnings: the
    Result's, of what was not modelled.
    """

    seconds: float
    low: float | None
    high: float | None
    rows: int
    gpus: tuple[str, ...]
    programs: tuple[str, ...]
    code: str
    conditions: str
    in_part: tuple[str, ...]
    warnings: tuple[str, ...]
    unknown: str = ""

    @property
    def is_known(self) -> bool:
        return self.low is not None

    @property
    def sentence(self) -> str:
        """The interval in a sentence, or that it is unknown."""
        if self.low is None or self.high is None:
            return f"How far the time may be off is unknown: {self.unknown}."
        return (
            f"In 9 of 10 such runs the true time is {format_time(self.low * self.seconds)} to "
            f"{format_time(self.high * self.seconds)} ({self.low - 1:+.0%} to {self.high - 1:+.0%}), by the "
            f"errors of the {self.rows} nearest compared runs, on {', '.join(self.gpus)}."
        )

    @property
    def lines(self) -> list[str]:
        """In sentences: the interval; what ran, under which conditions; what the run used that is modelled in
        part, beside the Result's warnings."""
        said = [self.sentence, f"What ran: {self.code or 'not recorded'}; {self.conditions}."]
        return said + ([f"Modelled in part: {'; '.join(self.in_part)}."] if self.in_part else [])

    @property
    def approximations(self) -> tuple[str, ...]:
        """Everything that was not modelled, or only in part, in this run."""
        return tuple(dict.fromkeys([*self.in_part, *self.warnings]))

    def __str__(self) -> str:
        return "\n".join([*self.lines, *(f"approximated: {text}" for text in self.warnings)])

    def to_json(self) -> dict[str, Any]:
        return {
            "interval": None if self.low is None or self.high is None else [self.low, self.high],
            "unknown": self.unknown or None,
            "rows": self.rows,
            "gpus": list(self.gpus),
            "programs": list(self.programs),
            "code": self.code,
            "conditions": self.conditions,
            "approximations": list(self.approximations),
        }


def confidence(result: Result) -> Confidence:
    """How far the time of a Result may be off, what it approximates, what ran, and under which conditions."""
    spec = _spec_of(result)
    features = _features(result, spec)
    chosen, unknown = _compared_runs(result, spec, features)
    low, high = (None, None) if unknown else interval(chosen, features.gpu)
    opcodes: set[str] = set()
    warnings = dict.fromkeys(result.warnings)
    for launch in result.launches:  # once: many launches are read from a file
        opcodes.update(opcode.partition(".")[0] for opcode in launch.pc.get("opcode", ()))
        warnings.update(dict.fromkeys(launch.warnings))
    return Confidence(
        result.totals.seconds,
        low,
        high,
        len(chosen),
        tuple(dict.fromkeys(row.features.gpu for row in chosen)),
        tuple(dict.fromkeys(row.program for row in chosen)),
        result.provenance.code,
        _conditions(result, spec),
        tuple(_in_part(opcodes, spec)),
        tuple(warnings),
        unknown,
    )


def _features(result: Result, spec: Spec | None) -> RunFeatures:
    """Its features; without the name of a GPU that is not the shipped one of that name."""
    found = RunFeatures.of(result)
    return found if spec is not None and _is_shipped(spec, result) else replace(found, gpu="")


def _compared_runs(
    result: Result, spec: Spec | None, features: RunFeatures
) -> tuple[Sequence[ErrorRow], str]:
    """The nearest compared runs; why they say nothing, if so."""
    if not result.launches:
        return (), "no launch has finished"
    changed = [
        f"{key}={value}"
        for key, value in result.provenance.overrides.items()
        if not key.startswith(_OF_A_REAL_GPU)
    ]
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        return (), f"no real GPU is this one ({', '.join(changed[:3])}{more})"
    if spec is not None and (spec.sm.warp_size != 32 or spec.sm.register_file.model != COMPARED_MODEL):
        return (), f"no GPU was ever compared with a model like that of {spec.name}"
    rows = error_rows()
    compared = [row.features.sm_version for row in rows]
    if not min(compared) <= features.sm_version <= max(compared):
        return (
            (),
            f"no GPU of sm_{features.sm_version}, or of ones before and after it, was ever compared",
        )
    chosen = nearest(features, rows)
    return chosen, why_not_enough(chosen, features.gpu)


def _is_shipped(spec: Spec, result: Result) -> bool:
    return spec.name in available() and load_spec(spec.name, result.provenance.overrides).hash == spec.hash


def _spec_of(result: Result) -> Spec | None:
    """The specification that it was simulated with, if it is here."""
    p = result.provenance
    try:
        spec = load_spec(p.gpu, p.overrides)
    except SimtError:
        return None
    return spec if spec.hash == p.spec_hash else None


def _conditions(result: Result, spec: Spec | None) -> str:
    machine = result.machine
    cold = spec.launch.cold_caches if spec else result.provenance.overrides.get("launch.cold_caches")
    caches = {None: "caches as the specification says", False: "caches as the launches before left them"}
    return (
        f"{machine.core_khz / 1000:,.0f} MHz core, {machine.l2_khz / 1000:,.0f} MHz L2, "
        f"{machine.dram_khz / 1000:,.0f} MHz DRAM command clock; {caches.get(cold, 'cold caches')}"
    )


def _in_part(opcodes: set[str], spec: Spec | None) -> Iterator[str]:
    for used, text in _PARTLY_MODELLED.items():
        if not opcodes.isdisjoint(used):
            yield text
    if spec is not None:
        assumed = sum(source.startswith("assumed") for source in spec.sources.values())
        if assumed:
            yield (
                f"{assumed} of the {len(spec.sources)} values of {spec.name} are assumed (`simt gpus show "
                f"{spec.name} --sources`)"
            )


def distance(a: RunFeatures, b: RunFeatures) -> float:
    """In units of a factor of ten in length, or of all waiting for something else."""
    lengths = math.log10((a.cycles + 1) / (b.cycles + 1))
    sizes = math.log10((a.instructions + 1) / (b.instructions + 1)) / 2
    states = {*a.waits, *b.waits}
    differ = sum(abs(a.waits.get(s, 0.0) - b.waits.get(s, 0.0)) for s in states) / 2
    other = _OTHER_CODE if a.code != b.code else 0.0
    if a.sm_version != b.sm_version:
        other += _OTHER_GENERATION
    elif a.gpu != b.gpu:
        other += _OTHER_GPU
    return math.hypot(lengths, sizes, differ) + other


def nearest(features: RunFeatures, rows: Iterable[ErrorRow]) -> list[ErrorRow]:
    """The nearest rows that are near enough, nearest first."""
    found = sorted((distance(features, row.features), i, row) for i, row in enumerate(rows))
    return [row for far, _, row in found[:NEAREST] if far <= FARTHEST]


def why_not_enough(rows: Sequence[ErrorRow], gpu: str) -> str:
    """Why these nearest rows make no interval for a run on a GPU; empty if they do."""
    if len(rows) < LEAST:
        return (
            f"nothing near was ever compared with a real GPU ({plural(len(rows), 'run')} near, {LEAST} are "
            "needed)"
        )
    gpus = {row.features.gpu for row in rows}
    if gpu not in gpus and len(gpus) < 2:
        return f"near runs were compared on {rows[0].features.gpu} only, which says nothing of other GPUs"
    return ""


def interval(rows: Sequence[ErrorRow], gpu: str) -> tuple[float, float]:
    """The multiples between which the next ratio lies with the probability COVERAGE, from those of like runs.

    Order statistics: of n exchangeable values, the next one is below the k-th with the probability k / (n +
    1). gpu: that of the next run; without a row of its own the interval is wider.
    """
    wider = WIDENING * (1.0 if any(row.features.gpu == gpu for row in rows) else WITHOUT_OWN)
    logs = sorted(math.log(row.ratio) for row in rows)
    n = len(logs)
    outside = (1 - COVERAGE) / 2
    low, high = _at(logs, outside * (n + 1)), _at(logs, (1 - outside) * (n + 1))
    middle = (low + high) / 2
    return math.exp(middle + wider * (low - middle)), math.exp(middle + wider * (high - middle))


def _at(values: Sequence[float], place: float) -> float:
    """The value at a place from 1, between two if it is no whole number; beyond the ends, the end."""
    place = min(max(place, 1.0), float(len(values)))
    i = int(place)
    return values[i - 1] if i == len(values) else values[i - 1] + (place - i) * (values[i] - values[i - 1])


def leave_out(rows: Sequence[ErrorRow], group: Callable[[ErrorRow], str]) -> tuple[int, int, int]:
    """How often intervals hold for rows whose group is left out: held, claimed, unknown."""
    held = claimed = unknown = 0
    for row in rows:
        others = [other for other in rows if group(other) != group(row)]
        chosen = nearest(row.features, others)
        if why_not_enough(chosen, row.features.gpu):
            unknown += 1
            continue
        low, high = interval(chosen, row.features.gpu)
        claimed += 1
        held += low <= row.ratio <= high
    return held, claimed, unknown
