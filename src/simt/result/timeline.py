"""A launch's timeline: what the whole GPU did in each interval while the launch ran, as counts and as rates.

DRAM's utilisation and efficiency are AerialVision's `dramutil` and `drameff` (Ariel et al., ISPASS 2010;
visualizer_print in GPGPU-Sim's dram.cc): command cycles in which the data bus moves data, as a share of all
command cycles of the interval, and of those with a request pending. A burst counts in the cycle of its column
command.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simt.engine_types import RawTimeline
    from simt.result.launch import LaunchResult

# Parts of a timeline with a row per interval and bank or instruction in use, in ascending order.
BANKS, INSTRUCTIONS = "dram_banks", "instructions"
ROWS = {
    BANKS: ("interval", "channel", "bank", "bus_cycles", "pending_cycles"),
    INSTRUCTIONS: ("interval", "instruction", "issued", "waiting"),
}
STATES = ("stalls", "warp_stalls")


@dataclass(frozen=True)
class TimelineSample:
    """One interval of the timeline, as rates. Percentages without a denominator are None."""

    start: int  # core cycle
    end: int
    ipc: float  # warp instructions per SM and cycle
    occupancy: float  # percent of the warps that the GPU's SMs can hold
    l1_hit_rate: float | None  # percent
    l2_hit_rate: float | None
    dram_busy: float  # DRAM utilisation in percent, mean over channels
    dram_efficiency: float | None
    stalls: dict[str, float]  # percent of all schedulers' cycles by reason; "selected": one issued
    lanes: float | None  # active threads per warp instruction


@dataclass(frozen=True)
class DramActivity:
    """DRAM by channel or by bank over time, in percent. Each array has a row per interval and a column per
    channel, or per bank: those of channel 0, then those of channel 1, and so on.
    """

    start: NDArray[np.int64]  # of each interval, in core cycles
    end: NDArray[np.int64]
    utilisation: NDArray[np.float64]
    efficiency: NDArray[np.float64]  # NaN where no request was pending


@dataclass(frozen=True)
class InstructionActivity:
    """A launch's instructions over time. Each array has a row per interval and a column per instruction,
    in the order of the launch's `pc`.
    """

    start: NDArray[np.int64]  # of each interval, in core cycles
    end: NDArray[np.int64]
    issued: NDArray[np.int64]  # warp instructions
    waiting: NDArray[np.int64]  # samples that found a warp waiting there, every `sample_interval` cycles


def from_engine(raw: RawTimeline | None, cycle_offset: int) -> dict[str, Any] | None:
    """The timeline of a LaunchResult; None if it has no interval. cycle_offset: added to its cycles."""
    if raw is None or not raw["cycle"]:
        return None
    found = {**raw, "cycle": [cycle + cycle_offset for cycle in raw["cycle"]]}
    return _with_arrays(found)


def to_json(timeline: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if timeline is None:
        return None
    rows = {
        part: {name: column.tolist() for name, column in timeline[part].items()} for part in _parts(timeline)
    }
    return {**timeline, **rows}


def from_json(timeline: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if timeline is None:
        return None
    return _with_arrays({name: value for name, value in timeline.items() if value is not None})


def _with_arrays(timeline: Mapping[str, Any]) -> dict[str, Any]:
    rows = {
        part: {name: array("I", timeline[part][name]) for name in ROWS[part]} for part in _parts(timeline)
    }
    return {**timeline, **rows}


def _parts(timeline: Mapping[str, Any]) -> list[str]:
    return [part for part in ROWS if part in timeline]


def columns(timeline: Mapping[str, Any], part: str) -> dict[str, NDArray[np.int64]]:
    """The columns of a part in ROWS."""
    import numpy as np

    return {name: np.frombuffer(timeline[part][name], np.uint32).astype(np.int64) for name in ROWS[part]}


def starts(launch: LaunchResult) -> list[int]:
    """Core cycle in which each interval begins."""
    t = launch.timeline
    if t is None:
        return []
    return [max(launch.start_cycle, t["cycle"][0] - t["interval"]), *t["cycle"][:-1]]


def samples(launch: LaunchResult) -> list[TimelineSample]:
    """See LaunchResult.samples."""
    t, m = launch.timeline, launch.machine
    if t is None or m is None:
        return []
    found = []
    lanes = t.get("thread_instructions")
    for i, (start, end) in enumerate(zip(starts(launch), t["cycle"], strict=True)):
        cycles = max(1, end - start)
        dram_cycles = cycles * m.dram_khz / m.core_khz
        # A burst counts where it begins, so a value may slightly exceed the length of the interval.
        bus, pending = t["dram_bus_cycles"][i], sum(t["dram_pending_cycles"][i])
        issued = t["warp_instructions"][i]
        found.append(
            TimelineSample(
                start=start,
                end=end,
                ipc=issued / (m.sm_count * cycles),
                occupancy=100 * t["active_warps"][i] / (m.sm_count * m.max_warps * cycles),
                l1_hit_rate=_percent(t["l1_hits"][i], t["l1_accesses"][i]),
                l2_hit_rate=_percent(t["l2_hits"][i], t["l2_accesses"][i]),
                dram_busy=min(100.0, 100 * sum(bus) / (m.dram_channels * dram_cycles)),
                dram_efficiency=_percent(min(sum(bus), pending), pending),
                stalls={
                    reason: 100 * row[i] / (m.sm_count * m.sub_cores * cycles)
                    for reason, row in t.get("stalls", {}).items()
                },
                lanes=lanes[i] / issued if lanes and issued else None,
            )
        )
    return found


def dram_activity(
    launch: LaunchResult, by: Literal["channel", "bank"], most: int | None = None
) -> DramActivity | None:
    """See LaunchResult.dram_activity."""
    import numpy as np

    if by not in ("channel", "bank"):
        raise ValueError(f"by is {by!r}: expected channel or bank")
    t, m = launch.timeline, launch.machine
    if t is None or m is None or (by == "bank" and BANKS not in t):
        return None
    step, start, end = _merged(launch, most)
    if by == "channel":
        bus, pending = (
            np.add.reduceat(np.array(t[name], float), np.arange(0, len(t["cycle"]), step))
            for name in ("dram_bus_cycles", "dram_pending_cycles")
        )
    else:
        column = columns(t, BANKS)
        shape = len(end), m.dram_channels * m.dram_banks
        at = column["interval"] // step * shape[1] + column["channel"] * m.dram_banks + column["bank"]
        bus, pending = (
            np.bincount(at, column[name], math.prod(shape)).reshape(shape)
            for name in ("bus_cycles", "pending_cycles")
        )
    cycles = np.maximum(1, end - start)[:, None] * m.dram_khz / m.core_khz
    efficiency = np.full(bus.shape, np.nan)
    np.divide(100 * bus, pending, out=efficiency, where=pending > 0)
    # A burst counts where it begins, so a value may slightly exceed the length of the interval.
    return DramActivity(start, end, np.minimum(100.0, 100 * bus / cycles), np.minimum(100.0, efficiency))


def instruction_activity(launch: LaunchResult, most: int | None = None) -> InstructionActivity | None:
    """See LaunchResult.instruction_activity."""
    import numpy as np

    t = launch.timeline
    if t is None or INSTRUCTIONS not in t:
        return None
    step, start, end = _merged(launch, most)
    column, shape = columns(t, INSTRUCTIONS), (len(end), len(launch.pc["pc"]))
    at = column["interval"] // step * shape[1] + column["instruction"]
    issued, waiting = (
        np.bincount(at, column[name], math.prod(shape)).astype(np.int64).reshape(shape)
        for name in ("issued", "waiting")
    )
    return InstructionActivity(start, end, issued, waiting)


def _merged(launch: LaunchResult, most: int | None) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """How many neighbouring intervals to merge for at most `most`, and the start and end of the results."""
    import numpy as np

    assert launch.timeline is not None
    ends = launch.timeline["cycle"]
    step = 1 if most is None else -(-len(ends) // most)
    start = np.array(starts(launch), np.int64)[::step]
    return step, start, np.array([*ends[step - 1 :: step], ends[-1]], np.int64)[: len(start)]


def _percent(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None
