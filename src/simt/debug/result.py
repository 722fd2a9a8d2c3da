"""What a comparison found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Value:
    """text: as a number of its type. bits: hexadecimal, empty for predicates and large elements."""

    text: str
    bits: str

    def __str__(self) -> str:
        return f"{self.text} ({self.bits})" if self.bits and self.bits != self.text else self.text


@dataclass(frozen=True)
class Writer:
    """The thread that stored to a place in memory last, and with which instruction."""

    block: Index
    thread: Index
    instruction: str
    ptx_line: int


@dataclass(frozen=True)
class MemoryDifference:
    """An allocation in which two executions differ.

    allocation: its label. parameter: number, from 1, of the kernel's parameter that points to it, 0 for none.
    element: index of the first element that differs; flat: its number in memory. dtype: of the elements, ""
    where no contents are known. ours, reference: its value. ulps: how far apart they are, None where they are
    no finite floats. differing, elements: how many differ, of how many. largest_ulps: of all that differ.
    """

    allocation: str
    address: int
    bytes: int
    parameter: int
    dtype: str
    flat: int
    element: tuple[int, ...]
    ours: Value | None
    reference: Value | None
    ulps: int | None
    differing: int
    elements: int
    largest_ulps: int | None
    writer: Writer | None = None


@dataclass(frozen=True)
class RegisterInput:
    """A register that an instruction reads, with its value in both executions. Where another instruction
    stands in the reference's PTX, each has registers of its own, and the other value is None."""

    register: str
    type: str
    ours: Value | None
    reference: Value | None


@dataclass(frozen=True)
class InstructionDifference:
    """The first instruction of a thread whose result differs.

    count: so many registers had the thread written before. kind: "value"; "path", where the executions go
    different ways: then `ours` and `reference` are None, and the instructions are those that come next.
    instruction, ptx_line: as in our PTX; reference_instruction, reference_line: in the reference's.
    replaced, replacement: where the two have other PTX there, the instructions that stand for each other.
    inputs: what the instruction reads. threads: how many threads of the launch differ anywhere (of those
    looked at).
    """

    kind: str
    block: Index
    thread: Index
    count: int
    instruction: str
    ptx_line: int
    reference_instruction: str
    reference_line: int
    replaced: tuple[str, ...]
    replacement: tuple[str, ...]
    source_file: str
    source_line: int
    source_text: str
    register: str
    type: str
    ours: Value | None
    reference: Value | None
    ulps: int | None
    inputs: tuple[RegisterInput, ...]
    threads: int


@dataclass(frozen=True)
class LaunchDifference:
    """The first launch that differs.

    launch: from 1. kind: "memory", what it leaves in memory differs; "inputs", the memory that it begins with
    does, so the programs' host code differs; "launch", it is another launch; "fault", one execution ends with
    a fault; "missing", only one program makes it.
    memory: allocations that differ, in the order of addresses. instruction: None where it was not found or
    not asked for; `note` says why.
    """

    launch: int
    kernel: str
    grid: Index
    block: Index
    kind: str
    message: str
    memory: tuple[MemoryDifference, ...] = ()
    instruction: InstructionDifference | None = None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """The result of `simt.debug.compare`. launches: how many were compared, with the one that differs."""

    program: str
    reference: str
    launches: int
    difference: LaunchDifference | None

    @property
    def same(self) -> bool:
        return self.difference is None

    def to_json(self) -> dict[str, Any]:
        """Plain values; names as here."""
        return {**asdict(self), "same": self.same}
