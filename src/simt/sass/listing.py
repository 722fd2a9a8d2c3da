"""Machine code as rows of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simt.sass.disassembler import Instruction

HEADER = ("address", "waits:read:write:yield:stall", "instruction")


def listing_rows(instructions: Iterable[Instruction]) -> Iterator[tuple[str, str, str]]:
    """Address, control bits and text of each instruction; reused operands are marked by nvdisasm itself."""
    for each in instructions:
        yield f"{each.address:04x}", str(each.control), each.text
