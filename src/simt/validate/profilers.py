"""What a profiler does to the launches whose cycles it counts, as values of a specification.

They are conditions of a measurement, and no GPU's, so that no specification has them.
"""

from __future__ import annotations

from typing import Any, Literal

Profiler = Literal["nsight-compute", "nvprof"]

_NSIGHT_STARTS = {75: 1200, 80: 2150, 86: 1700}
"""Core cycles of a launch in which no SM is active, by compute capability. [R] outputs of Nsight Compute,
whose sources published/nsight-compute-outputs.csv names: Elapsed Cycles less SM Active Cycles where all SMs
are active or one is. 1,186 to 1,254 on Turing at 585 and 1,030 MHz, 2,158 to 2,222 on an A100 at 765 and
1,120, 1,706 to 1,741 on GA104 and GA106."""
_NVPROF_START = 5000
"""Core cycles: [P] Accel-Sim's microbenchmark of a V100; assumed for all GPUs."""


def conditions(profiler: Profiler, sm_version: int) -> dict[str, Any]:
    """Values by their path in the specification, for a GPU of this compute capability (80 for 8.0).

    Nsight Compute empties the caches before each launch. nvprof counts cycles in one pass and empties
    nothing: a launch finds in the L2 what earlier ones left there, but not what the host has copied. Where
    it is not known in how many cycles a launch starts, it is as the specification has it.
    """
    if profiler == "nvprof":
        return {"l2.copies_fill": False} | _start(_NVPROF_START)
    start = _NSIGHT_STARTS.get(sm_version)
    return {"launch.cold_caches": True} | (_start(start) if start else {})


def _start(cycles: int) -> dict[str, Any]:
    return {"launch.kernel_latency": cycles, "launch.overhead": 0}
