"""Launches executed without timing as a profile: counts are exact, times are expected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import ProfileError
from simt.profile.order import LaunchOrder
from simt.profile.profile import COLUMNS, Profile

if TYPE_CHECKING:
    from simt import _engine
    from simt.spec import Spec

VECTOR = tuple(f"simt__block_vector_{i:02}" for i in range(16))
"""Columns of the projected basic-block vector."""
_SECTOR_BYTES = 32
_LANES = 32  # of the warps that are executed and counted
_LOADS, _STORES, _ATOMICS = ("Load", "AsyncCopy"), ("Store",), ("Atomic", "Reduction")
# Counter: operations and memory spaces of the instructions counted; names as of Nsight Compute.
_EXECUTED: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "smsp__inst_executed_op_global_ld.sum": (_LOADS, ("Global", "Generic")),
    "smsp__inst_executed_op_global_st.sum": (_STORES, ("Global", "Generic")),
    "smsp__inst_executed_op_global_atom.sum": (_ATOMICS, ("Global", "Generic")),
    "smsp__inst_executed_op_local_ld.sum": (_LOADS, ("Local",)),
    "smsp__inst_executed_op_local_st.sum": (_STORES, ("Local",)),
    "smsp__inst_executed_op_shared_ld.sum": (_LOADS, ("Shared",)),
    "smsp__inst_executed_op_shared_st.sum": (_STORES, ("Shared",)),
}
_UNITS = (
    *("Int", "Fp32", "Fp64", "Sfu", "Tensor", "Branch", "Texture", "Uniform", "Memory", "Tma"),
    *("Conversion", "Multiply", "Compare"),
)


@dataclass(frozen=True)
class LaunchFacts:
    """What is known of a launch before it is executed."""

    id: int
    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int
    annotation: str


class Executed:
    """Launches that are executed without timing, for a profile.

    spec: the GPU on which times are expected. source: the program, for messages.
    """

    def __init__(self, spec: Spec, source: str = "executed program") -> None:
        self.source = source
        self._spec = spec
        self._rows: list[dict[str, Any]] = []
        self._codes: dict[tuple[int, int], _Code] = {}
        self.order = LaunchOrder()
        """Told of the program's work, as far as it is followed."""

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, image: object, kernel: int, source: _engine.InstructionSource) -> _engine.LaunchProfiler:
        """What executes a launch, part by part. image, kernel: the program, and the number of its kernel."""
        from simt import _engine

        if (id(image), kernel) not in self._codes:
            self._codes[id(image), kernel] = _Code(image, source)
        return _engine.LaunchProfiler(source, self._codes[id(image), kernel].blocks)

    def end(self, image: object, kernel: int, facts: LaunchFacts, done: _engine.LaunchProfiler) -> None:
        """Adds a launch that has been executed."""
        code = self._codes[id(image), kernel]
        warp, thread = done.warp_instructions, done.thread_instructions
        written, read = (n * _SECTOR_BYTES for n in (done.sectors_written, done.sectors_read))
        asked = done.l2_sectors * _SECTOR_BYTES
        row: dict[str, Any] = {
            "launch": facts.id - 1,
            "name": facts.name,
            **dict(zip(("grid_x", "grid_y", "grid_z"), facts.grid, strict=True)),
            **dict(zip(("block_x", "block_y", "block_z"), facts.block, strict=True)),
            "registers": facts.registers,
            "shared_bytes": facts.shared_bytes,
            "annotation": facts.annotation or None,
            "duration_ns": self._expected_ns(facts, warp, asked, read + written),
            "smsp__inst_executed.sum": warp,
            "smsp__thread_inst_executed_pred_on.sum": thread,
            "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": thread / warp if warp else 0.0,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": done.load_sectors,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": done.store_sectors,
            "simt__l2_requested_bytes": asked,
            "simt__footprint_read_bytes": read,
            "simt__footprint_written_bytes": written,
        }
        self._rows.append(row | code.counts(done.executions.astype(np.float64)))
        self.order.launched(facts.id - 1)

    def submitted(self, number: int, stream: int, after: Iterable[int]) -> None:
        """Work of the program, in a stream, after other work."""
        self.order.submitted(number, stream if self._spec.launch.max_concurrent_kernels > 1 else 0, after)

    def launches(self, number: int) -> None:
        """The next launch is this work."""
        self.order.begins(number)

    def _expected_ns(
        self, facts: LaunchFacts, warp_instructions: int, l2_bytes: int, dram_bytes: int
    ) -> float:
        """The longest of four bounds, and the launch's overhead: issue, with an instruction per scheduler
        and cycle (Williams et al., "Roofline", CACM 2009, with instructions in place of operations); the
        instructions of a warp, each after the one before it; a sector per L2 slice and cycle; and DRAM's peak
        for what is read and written once."""
        spec = self._spec
        ctas, threads = math.prod(facts.grid), math.prod(facts.block)
        warps = max(1, ctas * -(-threads // spec.sm.warp_size))
        per_core_cycle = spec.clock.l2_mhz / spec.clock.core_mhz
        issued = warp_instructions / (spec.sm.warp_size / _LANES)  # warps of 64 lanes: two execute as one
        cycles = max(
            issued / (min(ctas, spec.sm.count) * spec.sm.sub_cores),
            issued / warps * spec.sm.units.int.latency,
            l2_bytes / (spec.address_map.slices * _SECTOR_BYTES * per_core_cycle),
            dram_bytes / spec.dram_bytes_per_cycle,
        )
        overhead = spec.launch.kernel_latency + spec.launch.cta_latency * ctas
        return spec.launch.overhead + 1e3 * (cycles + overhead) / spec.clock.core_mhz

    def profile(self) -> Profile:
        """The launches so far, in launch order. Raises ProfileError if there are none."""
        if not self._rows:
            raise ProfileError(f"{self.source}: no kernel was launched")
        frame = pl.DataFrame(self._rows, infer_schema_length=None)
        places = self.order.resolved()
        if len(places) == len(frame):
            streams, after = zip(*(places[launch] for launch in frame["launch"]), strict=True)
            frame = frame.with_columns(
                pl.Series("stream", streams, COLUMNS["stream"]), pl.Series("after", after, COLUMNS["after"])
            )
        return Profile(
            frame,
            self._spec.name,
            self.source,
            expected=True,
        )


class _Code:
    """The code of a kernel, and which of its instructions each counter counts."""

    def __init__(self, image: object, source: _engine.InstructionSource) -> None:
        self._image = image  # kept, since it is known by its id
        self.blocks = source.basic_blocks()
        self._lengths = self.blocks.length.astype(np.int64)
        self._keys = source.block_keys(self.blocks)
        code = source.instructions()
        self._counted = {
            name: np.array([x["operation"].name in of and x["space"].name in spaces for x in code], bool)
            for name, (of, spaces) in _EXECUTED.items()
        } | {
            f"simt__inst_executed_{unit.lower()}.sum": np.array([x["unit"].name == unit for x in code], bool)
            for unit in _UNITS
        }

    def counts(self, executions: npt.NDArray[np.float64]) -> dict[str, float]:
        """Counters from how often each block was executed."""
        each = np.repeat(executions, self._lengths)  # blocks cover the code, in order
        found = {name: float(each[counted].sum()) for name, counted in self._counted.items()}
        vector = _projected(executions * self._lengths, self._keys)
        return found | dict(zip(VECTOR, vector.tolist(), strict=True))


def _projected(shares: npt.NDArray[np.float64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """A basic-block vector of sum 1, projected to few dimensions (Sherwood et al., "Automatically
    Characterizing Large Scale Program Behavior", ASPLOS 2002). A block's direction depends on its opcodes
    alone, by multiplicative hashing."""
    odd = np.array([0x9E3779B97F4A7C15 * (2 * i + 1) % (1 << 64) | 1 for i in range(len(VECTOR))], np.uint64)
    directions = ((keys[:, None] * odd) >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1
    total = shares.sum()
    found: npt.NDArray[np.float64] = shares @ directions / (total if total else 1.0)
    return found
