"""The PTX instruction table of the engine (engine/instructions/): one row an instruction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from simt import _engine

__all__ = ["PtxRow", "ptx_row", "ptx_table"]


@dataclass(frozen=True)
class PtxRow:
    """What is known of a PTX instruction; engine/instructions/facts.hpp says what the words mean.

    name: the opcode, and behind dots the modifiers that tell it from other rows of the opcode; empty for what
    the table does not have. executable: False for PTX that is only read. forms, later_forms: see
    simt.cuda.coverage. typed: a lane accesses as many bytes of memory as the mnemonic's type and vector say.
    copies: the result is the source's bits. movable: the scheduler may move it. machine_opcodes: those that
    the row names as data; rules written as functions name others.
    """

    name: str
    opcode: str
    executable: bool
    forms: str
    later_forms: str
    memory: str
    space: str
    typed: bool
    control: str
    result: str
    copies: bool
    movable: bool
    machine_opcodes: tuple[str, ...]

    @property
    def reads_memory(self) -> bool:
        """Whether its result comes from memory."""
        return self.memory in ("load", "atomic")

    @property
    def ends_block(self) -> bool:
        return self.control not in ("next", "call")


@cache
def ptx_table() -> dict[str, PtxRow]:
    """All rows, by name."""
    found = {}
    for row in _engine.instruction_table():
        fields: dict[str, Any] = {**row, "machine_opcodes": tuple(row["machine_opcodes"])}
        found[row["name"]] = PtxRow(**fields)
    return found


_UNKNOWN = PtxRow("", "", False, "", "", "none", "none", False, "next", "inputs", False, False, ())


def ptx_row(name: str) -> PtxRow:
    """The row of that name, as an instruction's `row` in PtxModule.dump() gives it."""
    return ptx_table().get(name, _UNKNOWN)
