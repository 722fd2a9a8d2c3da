"""Explains why one launch is faster than another by the counters in which they differ most."""

from __future__ import annotations

from dataclasses import dataclass

from simt.names import short_name
from simt.result.launch import LaunchResult
from simt.result.summary import bottleneck

# Counters that explain time, with their labels.
_TOLD = {
    "smsp__inst_executed.sum": "warp instructions",
    "sm__inst_executed.avg.per_cycle_elapsed": "warp instructions per SM and cycle",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": "sectors per global load",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": "sectors per global store",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "sectors loaded",
    "l1tex__t_sector_hit_rate.pct": "L1 hits, %",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "shared-memory bank conflicts",
    "smsp__inst_executed_op_shared_ld.sum": "shared-memory loads",
    "lts__t_sectors.sum": "L2 sectors",
    "dram__bytes_read.sum": "bytes read from DRAM",
    "dram__bytes_write.sum": "bytes written to DRAM",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy, %",
}
_NOTABLE = 1.15  # ratios closer to 1 explain little
_MOST = 6


@dataclass(frozen=True)
class Difference:
    """Two launches side by side.

    rows: (label, value of the first, value of the second, second / first), largest differences first.
    """

    first: LaunchResult
    second: LaunchResult
    rows: tuple[tuple[str, float, float, float], ...]

    @property
    def speedup(self) -> float:
        """Cycles of the first launch divided by those of the second."""
        return self.first.cycles / self.second.cycles

    def __str__(self) -> str:
        a, b = short_name(self.first.name), short_name(self.second.name)
        if a == b:
            a, b = f"{a} ({self.first.id})", f"{b} ({self.second.id})"
        speedup = self.speedup
        verdict = (
            f"{b} is {speedup:.2f} times as fast as {a}"
            if speedup >= 1
            else f"{a} is {1 / speedup:.2f} times as fast as {b}"
        )
        width = max([len(what) for what, *_ in self.rows] + [len("cycles")])
        lines = [
            f"{verdict}.",
            f"  {'':{width}}  {a[:14]:>14}  {b[:14]:>14}",
            f"  {'cycles':{width}}  {self.first.cycles:>14,}  {self.second.cycles:>14,}",
        ]
        lines += [f"  {what:{width}}  {_number(x):>14}  {_number(y):>14}" for what, x, y, _ in self.rows]
        lines += [
            f"  {name} is bound by {bottleneck(launch).kind}."
            for name, launch in ((a, self.first), (b, self.second))
        ]
        return "\n".join(lines)


def difference(first: LaunchResult, second: LaunchResult) -> Difference:
    """Compares two launches, such as two versions of a kernel."""
    rows = []
    for counter, what in _TOLD.items():
        x, y = first.counters.get(counter), second.counters.get(counter)
        if not isinstance(x, (int, float)) or not isinstance(y, (int, float)) or x == y:
            continue
        ratio = (y + 1e-9) / (x + 1e-9)
        if max(ratio, 1 / ratio) >= _NOTABLE:
            rows.append((what, float(x), float(y), ratio))
    rows.sort(key=lambda row: -max(min(row[3], 1e3), min(1 / row[3], 1e3)))
    return Difference(first, second, tuple(rows[:_MOST]))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.2f}"
