"""Power over time: a launch's energy by interval of its timeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simt.isa.opcodes import shared_memory
from simt.power.energy import COMPONENTS, Floats, LaunchEnergy
from simt.result import timeline


@dataclass(frozen=True)
class PowerOverTime:
    """start, end: core cycles of each interval. joules: J by component, a row per interval. seconds: their
    lengths."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    seconds: Floats
    joules: dict[str, Floats]

    @property
    def watts(self) -> Floats:
        """Power of each interval."""
        return np.asarray(sum(self.joules.values()) / self.seconds)

    @property
    def peak(self) -> float:
        """The highest power of an interval, in W. An interval shorter than half of the longest does not
        count: the last of a launch may be a few cycles."""
        whole = self.seconds >= self.seconds.max() / 2
        return float(self.watts[whole].max())


def power_over_time(energy: LaunchEnergy, most: int | None = None) -> PowerOverTime | None:
    """Divides the launch's energy among the intervals of its timeline, component by component.

    Instructions count where they were issued; accesses to shared memory with theirs; L1, network and L2 by L1
    and L2 lookups, DRAM by sectors; active SMs by the schedulers' cycles with a resident warp; the rest by
    time. Sums over intervals are those of the launch, or of its simulated part.

    most: merges neighbouring intervals until there are at most that many.

    None without a timeline, or for one of an earlier version.
    """
    launch = energy.launch
    uses = timeline.instruction_activity(launch, most)
    t = launch.timeline
    if uses is None or t is None or launch.machine is None or "stalls" not in t:
        return None
    step = -(-len(t["cycle"]) // len(uses.end))
    groups = np.arange(0, len(t["cycle"]), step)

    def column(values: object) -> Floats:
        return np.add.reduceat(np.array(values, float), groups)

    cycles = np.maximum(1, uses.end - uses.start).astype(float)
    issued = energy.events.instructions.issued
    each = np.divide(1.0, issued, out=np.zeros_like(issued), where=issued > 0)
    shared = np.array([shared_memory(x) for x in launch.pc["opcode"]], bool)
    found: dict[str, Floats] = {}
    for name, rows in energy.pipelines.items():
        found[name] = uses.issued @ (rows * each)
    # Of a launch cut short, the timeline covers what was simulated.
    part = min(1.0, float(uses.issued.sum() / max(1.0, issued.sum())))
    sectors = column([sum(a) + sum(b) for a, b in zip(t["dram_reads"], t["dram_writes"], strict=True)])
    weights = {
        "shared memory": uses.issued @ shared.astype(float),
        "L1": column(t["l1_accesses"]),
        "constant caches": column(t["warp_instructions"]),
        "network": column(t["l2_accesses"]),
        "L2": column(t["l2_accesses"]),
        "DRAM": sectors,
        "active SMs": column(np.array([*t["stalls"].values()], float).sum(axis=0)),
    }
    weights["idle SMs"] = np.maximum(
        0.0, launch.machine.sm_count * launch.machine.sub_cores * cycles - weights["active SMs"]
    )
    whole = energy.components
    for name in COMPONENTS:
        if name in found:
            continue
        spread = weights.get(name, cycles)
        spread = spread if spread.sum() else cycles
        found[name] = part * whole[name] * spread / spread.sum()
    seconds = cycles / (1000 * launch.clock_khz)
    return PowerOverTime(uses.start, uses.end, seconds, {name: found[name] for name in COMPONENTS})
