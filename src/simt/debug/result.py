"""The result of a comparison."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

Index = tuple[int, int, int]


@dataclass(frozen=True)
class ComparedValue:
    """A value of memory or a register.

    text: as a number of its type.
    bits: hexadecimal; empty for predicates and large elements.
    """

    text: str
    bits: str

    def __str__(self) -> str:
        return f"{self.text} ({self.bits})" if self.bits and self.bits != self.text else self.text


@dataclass(frozen=True)
class Writer:
    """The thread and instruction that last stored to a location."""

    block: Index
    thread: Index
    instruction: str
    ptx_line: int


@dataclass(frozen=True)
class MemoryDifference:
    """An allocation in which two executions differ.

    allocation: its label.
    parameter: number, from 1, of the kernel's parameter that points to it; 0 for none.
    element: index of the first element that differs.
    flat: its position in memory.
    dtype: type of the elements; "" if no contents are known.
    ours, reference: its values.
    ulps: the distance between them; None unless both are finite floats.
    differing, elements: the number of elements that differ, and of all.
    largest_ulps: the largest distance of all that differ.
    """

    allocation: str
    address: int
    bytes: int
    parameter: int
    dtype: str
    flat: int
    element: tuple[int, ...]
    ours: ComparedValue | None
    reference: ComparedValue | None
    ulps: int | None
    differing: int
    elements: int
    largest_ulps: int | None
    writer: Writer | None = None


@dataclass(frozen=True)
class RegisterInput:
    """A register that an instruction reads, with its value in both executions.

    If the reference's PTX has a different instruction there, each has registers of its own, and the other
    value is None.
    """

    register: str
    type: str
    ours: ComparedValue | None
    reference: ComparedValue | None


@dataclass(frozen=True)
class InstructionDifference:
    """The first instruction of a thread whose result differs.

    count: the number of registers that the thread had written before.
    kind: "value"; or "path" if the executions take different paths: then `ours` and `reference` are None, and
        the instructions are those that come next.
    instruction, ptx_line: in our PTX.
    reference_instruction, reference_line: in the reference's PTX.
    replaced, replacement: if the PTX differs there, the instructions that correspond to each other.
    inputs: the registers that the instruction reads.
    threads: the number of threads of the launch that differ anywhere (of those examined).
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
    ours: ComparedValue | None
    reference: ComparedValue | None
    ulps: int | None
    inputs: tuple[RegisterInput, ...]
    threads: int


@dataclass(frozen=True)
class LaunchDifference:
    """The first launch that differs.

    launch: from 1.
    kind: "memory" if memory differs after it; "inputs" if memory differs before it, so that the programs'
        host code differs; "launch" if it is a different launch; "fault" if one execution ends with a fault;
        "missing" if only one program makes it.
    memory: allocations that differ, in address order.
    instruction: None if it was not found or not requested; `note` says why.
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
class ExecutionComparison:
    """The result of `simt.debug.compare`.

    launches: the number of launches compared, including the one that differs.
    """

    program: str
    reference: str
    launches: int
    difference: LaunchDifference | None

    @property
    def same(self) -> bool:
        return self.difference is None

    def to_json(self) -> dict[str, Any]:
        """Plain values under the same names."""
        return {**asdict(self), "same": self.same}
