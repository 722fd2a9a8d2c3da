"""The code of a launch: its basic blocks, and how often sampled warps execute each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from simt import _engine
    from simt.engine_types import DecodedInstruction


@dataclass(frozen=True, eq=False)
class BlockTable:
    """The basic blocks of a kernel: straight-line code that ends at branches, exits and CTA barriers.

    first, length: static index of each block's first instruction, and its number of instructions. keys: a
        hash of the block's opcodes, independent of the kernel.
    """

    first: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    keys: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class Preview:
    """Warps of some CTAs, executed without timing and without side effects.

    ctas: ordinals of the CTAs. counts: (warps, blocks) executions of each basic block, CTA by CTA. complete:
        whether all ran to their end; CTAs that wait for other CTAs or fail do not.
    """

    ctas: tuple[int, ...]
    counts: npt.NDArray[np.uint32]
    complete: bool


class LaunchCode:
    """The code of a launch, before it is simulated."""

    def __init__(self, source: _engine.InstructionSource, warps_per_cta: int, threads: int = 1) -> None:
        """threads: host threads that execute CTAs; they do not affect the counts."""
        self.source = source
        self._warps_per_cta = warps_per_cta
        self._threads = threads

    @cached_property
    def _blocks(self) -> _engine.BasicBlocks:
        # For a trace, finding branches means reading its records: skipped unless the controller uses blocks.
        return self.source.basic_blocks()

    @cached_property
    def instructions(self) -> list[DecodedInstruction]:
        """The static instructions: pc, opcode, unit, registers as (index, file, width), ..."""
        return self.source.instructions()

    @cached_property
    def blocks(self) -> BlockTable:
        return BlockTable(self._blocks.first, self._blocks.length, self.source.block_keys(self._blocks))

    def preview(self, fraction: float, at_least_ctas: int = 1, at_least_warps: int = 32) -> Preview:
        """Executes a share of the CTAs, spread evenly over the grid, and at least the given minima.

        A program's memory stays as it is. For a trace, its records are read instead.
        """
        wanted = max(
            at_least_ctas,
            -(-at_least_warps // self._warps_per_cta),
            math.ceil(fraction * self.source.cta_count),
        )
        ctas = spread(self.source.cta_count, wanted, self.source.cluster_size)
        counts, complete = self.source.preview(ctas, self._blocks, self._threads)
        return Preview(tuple(ctas), counts, complete)


def spread(count: int, wanted: int, together: int = 1) -> list[int]:
    """At least `wanted` of `count` ordinals, or all if there are fewer: the centres of equal parts, in whole
    groups of `together`."""
    groups = count // together
    chosen = min(groups, -(-wanted // together))
    first = [(2 * i + 1) * groups // (2 * chosen) * together for i in range(chosen)]
    return [ordinal + k for ordinal in first for k in range(together)]
