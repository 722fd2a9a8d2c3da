"""Time of a basic block that was hardly ever executed (Photon, MICRO'23, section 4.1, rare basic blocks)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Place = tuple[str, int]
"""A register: its file and number."""


@dataclass(frozen=True)
class BlockInstruction:
    """An instruction as the interval model sees it: opcode and the 32-bit registers it reads and writes."""

    opcode: str
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]


def block_cycles(
    instructions: Sequence[BlockInstruction], latency: Mapping[str, float], issue_interval: float = 1.0
) -> float:
    """Cycles from the issue of a block's first instruction to that of the next block's first one.

    Instructions issue in order, `issue_interval` cycles apart, and not before what they read and overwrite is
    there; latency: cycles from issue to retirement, by opcode. What comes next issues after the last
    instruction, whose latency alone is not waited for.
    """
    ready: dict[Place, float] = {}
    issue = -issue_interval
    for instruction in instructions:
        issue += issue_interval
        for place in (*instruction.reads, *instruction.writes):
            issue = max(issue, ready.get(place, 0.0))
        for place in instruction.writes:
            ready[place] = issue + latency[instruction.opcode]
    return issue + issue_interval
