"""The format of a launch's details, and what must hold among their columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from simt.result.timeline import BANKS, INSTRUCTIONS, ROWS, STATES
from simt.written import Amount, Count, Positive, Small

CounterRow = dict[str, Amount | None]
Stalls = dict[str, list[Count]]


class PcRecord(msgspec.Struct):
    pc: list[Annotated[int, Meta(ge=0, le=2**63 - 1)]]
    opcode: list[str]
    source_line: list[Count]
    issued: list[Count]
    sample_interval: Positive
    stalled: Stalls
    threads: Annotated[
        list[Count] | None,
        Meta(description="Thread instructions, as issued counts warp instructions."),
    ] = None
    text: Annotated[list[str] | None, Meta(description="The instruction as machine code is written.")] = None
    ptx: Annotated[
        list[str] | None, Meta(description="Of a program: the PTX statement that it stands for.")
    ] = None
    source_file: Annotated[
        list[str] | None,
        Meta(description="Of a program: the source file; an empty text where it is not known."),
    ] = None
    source_text: Annotated[list[str] | None, Meta(description="Of a program: the line of source.")] = None
    reads: Annotated[list[Small] | None, Meta(description="32-bit registers that a lane reads.")] = None
    writes: Annotated[list[Small] | None, Meta(description="32-bit registers that a lane writes.")] = None

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
        return "" if same_length(len(self.pc), columns) else "columns of pc have different lengths"


Word = Annotated[int, Meta(ge=0, lt=2**32)]


class BankRows(msgspec.Struct, forbid_unknown_fields=True):
    interval: list[Word]
    channel: list[Word]
    bank: list[Word]
    bus_cycles: list[Word]
    pending_cycles: list[Word]


class InstructionRows(msgspec.Struct, forbid_unknown_fields=True):
    interval: list[Word]
    instruction: list[Word]
    issued: list[Word]
    waiting: list[Word]


class TimelineRecord(msgspec.Struct):
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
    stalls: Annotated[
        dict[str, list[Count]] | None,
        Meta(description="Cycles of all schedulers by reason; selected: one issued."),
    ] = None
    warp_stalls: Annotated[dict[str, list[Count]] | None, Meta(description="Warp-cycles by state.")] = None
    dram_banks: Annotated[
        BankRows | None,
        Meta(description="A row per interval (its position) and DRAM bank that was in use."),
    ] = None
    instructions: Annotated[
        InstructionRows | None,
        Meta(
            description="A row per interval and instruction in use, both by position; waiting: samples that "
            "found a warp waiting there."
        ),
    ] = None

    def names(self) -> tuple[str, ...]:
        names = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return (*names, *(f"{name}.{state}" for name in STATES for state in getattr(self, name) or ()))

    def check(self, machine: Any, instructions: int) -> str:
        others = ("interval", "cycle", *STATES, *ROWS)
        known = [getattr(self, name) for name in self.__struct_fields__ if name not in others]
        known = [column for column in known if column is not None]
        known += [row for name in STATES for row in (getattr(self, name) or {}).values()]
        if not self.cycle or not same_length(len(self.cycle), known):
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
        if not same_length(len(rows.interval), [getattr(rows, name) for name in ROWS[part]]):
            return f"columns of {part} have different lengths"
        counts = {"interval": len(self.cycle), **places}
        for name, most in counts.items():
            if max(getattr(rows, name), default=0) >= most > 0 or (most == 0 and rows.interval):
                return f"{part} has a row with {name} {max(getattr(rows, name))}, expected less than {most}"
        found = zip(*(getattr(rows, name) for name in counts), strict=True)
        if any(a >= b for a, b in pairwise(found)):
            return f"rows of {part} are not in ascending order"
        return ""


def same_length(length: int, columns: Sequence[Sequence[Any]]) -> bool:
    return all(len(column) == length for column in columns)
