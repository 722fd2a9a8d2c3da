"""Checks a saved Result before it is used: types, ranges, lengths.

The limits are far beyond what simulations produce; they keep sums and plots finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from simt.errors import ResultError
from simt.result.timeline import BANKS, INSTRUCTIONS, ROWS, STATES

Count = Annotated[int, Meta(ge=0, le=2**53)]
Positive = Annotated[int, Meta(ge=1, le=2**53)]
Small = Annotated[int, Meta(ge=0, le=2**32)]
Number = Count | Annotated[float, Meta(ge=0, le=1e30)]
Signed = Annotated[int, Meta(ge=-(2**53), le=2**53)] | Annotated[float, Meta(ge=-1e30, le=1e30)]
Extent = Annotated[int, Meta(ge=1, le=2**31)]
Row = dict[str, Number | None]
Stalls = dict[str, list[Count]]
ENGINE = (  # required by sentences and tables
    "warp_instructions",
    "thread_instructions",
    "sm_active_cycles",
    "active_warp_cycles",
    "dram_bus_cycles",
    "dram_pending_cycles",
    "dram_reads",
    "dram_writes",
    "dram_activates",
    "shared_wavefronts",
    "shared_bank_conflicts",
)
_PLACES = frozenset({"launch_index", "launch_id", "unit", "number"})  # columns of the table itself
Status = Literal["complete", "max_cycles", "timeout", "interrupted", "deadlock", "failed"]


class _Machine(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    sm_count: Annotated[int, Meta(ge=1, le=10**6)]
    sub_cores: Annotated[int, Meta(ge=1, le=10**4)]
    issue_width: Annotated[int, Meta(ge=1, le=10**4)]
    max_warps: Annotated[int, Meta(ge=1, le=10**6)]
    l2_slices: Annotated[int, Meta(ge=1, le=10**6)]
    dram_channels: Annotated[int, Meta(ge=1, le=10**6)]
    core_khz: Annotated[int, Meta(ge=1, le=10**9)]
    l2_khz: Annotated[int, Meta(ge=1, le=10**9)]
    dram_khz: Annotated[int, Meta(ge=1, le=10**9)]
    fp32_flops_per_cycle: Number = 0
    tensor_flops_per_cycle: Number = 0
    dram_bytes_per_cycle: Number = 0
    dram_banks: Annotated[int, Meta(ge=0, le=10**4)] = 0
    dram_refresh_cycles: Small = 0


class _Provenance(msgspec.Struct, forbid_unknown_fields=True):
    input: str
    input_hash: str
    gpu: str
    spec_hash: str
    overrides: dict[str, Any]
    version: str
    method: str
    kernels: str | None
    max_cycles: Positive | None
    timeline: Positive | None
    resumed_after: Count
    threads: Positive
    wall_seconds: Number
    created: str
    full_wall_seconds: Number | None = None
    identity: str = ""


class _Sampled(msgspec.Struct, forbid_unknown_fields=True):
    method: str
    decision: Literal["full", "stop", "skip", "predict"]
    reason: str
    at_cycle: Count | None
    cycles: Count
    ctas: Count
    warp_instructions: Count
    thread_instructions: Count
    total_ctas: Count
    projected: dict[str, str] = {}
    unprojected: dict[str, str] = {}
    rates: dict[str, Signed | None] = {}
    half_widths: dict[str, Signed | None] = {}


class _Pc(msgspec.Struct):
    pc: list[Annotated[int, Meta(ge=0, le=2**63 - 1)]]
    opcode: list[str]
    source_line: list[Count]
    issued: list[Count]
    sample_interval: Positive
    stalled: Stalls
    threads: list[Count] | None = None
    text: list[str] | None = None
    ptx: list[str] | None = None
    source_file: list[str] | None = None
    source_text: list[str] | None = None
    reads: list[Small] | None = None
    writes: list[Small] | None = None

    def check(self) -> str:
        later = (
            self.threads,
            self.text,
            self.ptx,
            self.source_file,
            self.source_text,
            self.reads,
            self.writes,
        )
        columns: list[Any] = [self.opcode, self.source_line, self.issued, *self.stalled.values()]
        columns += [column for column in later if column is not None]
        return "" if _same_length(len(self.pc), columns) else "columns of pc have different lengths"


Word = Annotated[int, Meta(ge=0, lt=2**32)]


class _Banks(msgspec.Struct, forbid_unknown_fields=True):
    interval: list[Word]
    channel: list[Word]
    bank: list[Word]
    bus_cycles: list[Word]
    pending_cycles: list[Word]


class _Instructions(msgspec.Struct, forbid_unknown_fields=True):
    interval: list[Word]
    instruction: list[Word]
    issued: list[Word]
    waiting: list[Word]


class _Timeline(msgspec.Struct):
    interval: Positive
    cycle: list[Count]
    warp_instructions: list[Count]
    active_warps: list[Count]
    l1_accesses: list[Count]
    l1_hits: list[Count]
    l2_accesses: list[Count]
    l2_hits: list[Count]
    dram_reads: list[list[Count]]
    dram_writes: list[list[Count]]
    dram_bus_cycles: list[list[Count]]
    dram_pending_cycles: list[list[Count]]
    thread_instructions: list[Count] | None = None
    ctas: list[Count] | None = None
    ctas_finished: list[Count] | None = None
    finished_instructions: list[Count] | None = None
    stalls: dict[str, list[Count]] | None = None
    warp_stalls: dict[str, list[Count]] | None = None
    dram_banks: _Banks | None = None
    instructions: _Instructions | None = None

    def names(self) -> tuple[str, ...]:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return (*names, *(f"{name}.{state}" for name in STATES for state in getattr(self, name) or ()))

    def check(self, machine: _Machine, instructions: int) -> str:
        others = ("interval", "cycle", *STATES, *ROWS)
        known = [getattr(self, name) for name in self.__struct_fields__ if name not in others]
        known = [column for column in known if column is not None]
        known += [row for name in STATES for row in (getattr(self, name) or {}).values()]
        if not self.cycle or not _same_length(len(self.cycle), known):
            return "columns of timeline have different lengths, or none"
        widths = {len(row) for column in known for row in column if isinstance(row, list)}
        if len(widths) > 1:
            return "rows of timeline have different numbers of channels"
        if any(a > b for a, b in zip(self.cycle, self.cycle[1:], strict=False)):
            return "cycles of timeline decrease"
        channels = {"channel": machine.dram_channels, "bank": machine.dram_banks}
        return self._check_rows(BANKS, channels) or self._check_rows(
            INSTRUCTIONS, {"instruction": instructions}
        )

    def _check_rows(self, part: str, places: dict[str, int]) -> str:
        """places: the columns that, after the interval, say what a row is of, and how many there are."""
        rows = getattr(self, part)
        if rows is None:
            return ""
        if not _same_length(len(rows.interval), [getattr(rows, name) for name in ROWS[part]]):
            return f"columns of {part} have different lengths"
        counts = {"interval": len(self.cycle), **places}
        for name, most in counts.items():
            if max(getattr(rows, name), default=0) >= most > 0 or (most == 0 and rows.interval):
                return f"{part} has a row with {name} {max(getattr(rows, name))}, expected less than {most}"
        found = zip(*(getattr(rows, name) for name in counts), strict=True)
        if any(a >= b for a, b in pairwise(found)):
            return f"rows of {part} are not in ascending order"
        return ""


class _Launch(msgspec.Struct):
    index: Count
    id: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    name: str
    stream: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    launch_latency: Count
    start_cycle: Count
    end_cycle: Count
    clock_khz: Annotated[int, Meta(ge=0, le=10**9)]
    grid: tuple[Extent, Extent, Extent]
    block: tuple[Extent, Extent, Extent]
    shared_bytes: Count
    registers: Small
    sm_version: Small
    occupancy_limit_ctas: Count
    occupancy_limited_by: str
    l1_bytes: Count
    shared_carve_out_bytes: Count
    engine: Row
    l1: dict[str, Row]
    l2: dict[str, Row]
    stalls: Stalls
    warp_stalls: Row
    warnings: list[str]
    annotation: str = ""
    sampled: _Sampled | None = None
    pc: dict[str, Any] = {}
    timeline: _Timeline | None = None
    spread: dict[Literal["sm", "l2_slice"], dict[str, list[Count]]] = {}

    def check(self, machine: _Machine) -> str:
        if missing := [name for name in ENGINE if name not in self.engine]:
            return f"engine has no {missing[0]}"
        if None in (self.engine["warp_instructions"], self.engine["thread_instructions"]):
            return "engine does not say how many instructions were executed"
        if self.end_cycle < self.start_cycle:
            return f"ends in cycle {self.end_cycle}, before it starts in {self.start_cycle}"
        for unit, columns in self.spread.items():
            length = max(map(len, columns.values()), default=0)
            if not length or not _same_length(length, list(columns.values())):
                return f"columns of spread {unit} have different lengths, or none"
            if _PLACES & columns.keys():
                return f"spread {unit} has a column {min(_PLACES & columns.keys())}"
        if problem := self.timeline.check(machine, len(self.pc.get("pc", ()))) if self.timeline else "":
            return problem
        return msgspec.convert(self.pc, _Pc).check() if self.pc else ""


class _Verification(msgspec.Struct):
    launches: list[Any]
    candidates: Count
    error: Signed
    mean_error: Number
    worst_error: Number
    half_width: Number | None


class _AgainstFull(msgspec.Struct):
    total_error: Signed | None
    mean_error: Number
    worst_error: Number


class _PlanEnergy(msgspec.Struct):
    total: Number
    relative: Number | None


class _Plan(msgspec.Struct):
    population: Count
    cycles: Number
    launches: Count
    method: str
    sampling_error: Number
    confidence: Number
    cut_short_share: Number
    projection_error: Number | None
    combined_error: Number | None
    energy: _PlanEnergy | None = None


class _Sampling(msgspec.Struct):
    launches: Count
    cut_short: Count
    simulated_warp_instructions: Count
    warp_instructions: Count | None
    speedup: Number | None
    verification: _Verification | None = None
    against_full: _AgainstFull | None = None
    plan: _Plan | None = None


class _Transfers(msgspec.Struct, forbid_unknown_fields=True):
    link: list[Literal["host_to_device", "device_to_host", "device"]]
    stream: list[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None]
    nbytes: list[Count]
    start_cycle: list[Count]
    end_cycle: list[Count]

    def check(self) -> str:
        if not _same_length(len(self.link), [self.stream, self.nbytes, self.start_cycle, self.end_cycle]):
            return "columns of transfers have different lengths"
        if any(a > b for a, b in zip(self.start_cycle, self.end_cycle, strict=True)):
            return "a transfer ends before it starts"
        return ""


class _Whole(msgspec.Struct):
    status: Status
    launches: list[_Launch]
    unfinished: list[Count]
    warnings: list[str]
    machine: _Machine
    provenance: _Provenance
    sampling: _Sampling | None = None
    transfers: _Transfers | None = None


def check(data: Any) -> None:
    """Raises ResultError if the JSON object of a Result (simt.result/1) is not one that simt can have
    written.
    """
    found = _converted(data, _Whole)
    if len({x.timeline.names() for x in found.launches if x.timeline is not None}) > 1:
        raise ResultError("broken Result: the timelines of its launches have different columns")
    if problem := found.transfers.check() if found.transfers else "":
        raise ResultError(f"broken Result: {problem}")
    seen = set()
    for launch in found.launches:
        if launch.index in seen:
            raise ResultError(f"broken Result: two launches have the index {launch.index}")
        seen.add(launch.index)
        try:
            problem = launch.check(found.machine)
        except msgspec.ValidationError as error:
            problem = f"pc: {error}"
        if problem:
            raise ResultError(f"broken Result: launch {launch.id}: {problem}")


def _converted(data: Any, kind: type[_Whole]) -> _Whole:
    try:
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ResultError(f"broken Result: {error}") from error


def _same_length(length: int, columns: Sequence[Sequence[Any]]) -> bool:
    return all(len(column) == length for column in columns)
