"""Estimated time of a rarely executed basic block (Photon, MICRO'23, section 4.1, rare basic blocks)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from simt.engine_types import DecodedInstruction

Place = tuple[int, int]
"""A 32-bit register: its file and number."""

# Core cycles from issue to retirement by kind of instruction, until there are measurements: roughly those of
# an
# arithmetic instruction, and of hits in the nearest cache, on a V100 (Jia et al., "Dissecting the NVIDIA
# Volta
# GPU Architecture via Microbenchmarking", 2018).
_ARITHMETIC = 4.0
_INITIAL = {
    ("load", "global"): 28.0,
    ("load", "generic"): 28.0,
    ("load", "local"): 28.0,
    ("load", "texture"): 28.0,
    ("load", "shared"): 19.0,
    ("load", "constant"): 27.0,
    ("atomic", "global"): 36.0,
    ("atomic", "generic"): 36.0,
    ("atomic", "shared"): 19.0,
}


@dataclass(frozen=True)
class BlockInstruction:
    """An instruction as the interval model sees it.

    opcode: key of its latency. initial: latency in core cycles until one is measured. reads, writes:
        registers.
    """

    opcode: str
    initial: float
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]

    @staticmethod
    def of(static: DecodedInstruction) -> BlockInstruction:
        """From an instruction of `LaunchCode.instructions`."""

        def places(registers: Sequence[tuple[int, int, int]]) -> tuple[Place, ...]:
            # Register 255 is the zero register.
            return tuple(
                (file, index + k) for index, file, width in registers if index != 255 for k in range(width)
            )

        what = (static["operation"].name.lower(), static["space"].name.lower())
        return BlockInstruction(
            static["opcode"],
            _INITIAL.get(what, _ARITHMETIC),
            places(static["sources"]),
            places(static["destinations"]),
        )


def mean_by_opcode(
    instructions: Sequence[BlockInstruction], latencies: npt.NDArray[np.float64]
) -> dict[str, float]:
    """The online latency table: for each opcode, the mean of its measured latencies.

    latencies: by instruction in core cycles, NaN if there was no measurement; or empty.
    """
    measured: dict[str, list[float]] = {}
    for instruction, latency in zip(instructions, latencies.tolist(), strict=False):
        if not math.isnan(latency):
            measured.setdefault(instruction.opcode, []).append(latency)
    return {opcode: sum(values) / len(values) for opcode, values in measured.items()}


def block_cycles(
    instructions: Sequence[BlockInstruction], latency: Mapping[str, float], issue_interval: float = 1.0
) -> float:
    """Cycles from the issue of a block's first instruction to that of the next block's first one.

    Instructions issue in order, `issue_interval` cycles apart, and not before the registers that they read
    and overwrite are available. latency: measured cycles from issue to retirement, by opcode. The next block
    issues right after the last instruction, without waiting for its latency.
    """
    ready: dict[Place, float] = {}
    issue = -issue_interval
    for instruction in instructions:
        issue += issue_interval
        for place in (*instruction.reads, *instruction.writes):
            issue = max(issue, ready.get(place, 0.0))
        for place in instruction.writes:
            ready[place] = issue + latency.get(instruction.opcode, instruction.initial)
    return issue + issue_interval
