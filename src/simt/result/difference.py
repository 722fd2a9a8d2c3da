"""Explains why one launch is faster than another: the parts of their times, and the counters that differ
most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from simt.formatting import format_time, text_table
from simt.names import short_name
from simt.pages import notebook
from simt.result.launch import LaunchResult
from simt.result.stack import machine_text, times
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
_MOST_PARTS = 5
_SMALL = 0.01  # of the longer launch's time: parts that differ by less are not shown


@dataclass(frozen=True)
class Difference:
    """Two launches side by side, by time.

    rows: (label, value of the first, value of the second, second / first), largest differences first.
    """

    first: LaunchResult
    second: LaunchResult
    rows: tuple[tuple[str, float, float, float], ...]

    @property
    def speedup(self) -> float:
        """Time of the first launch divided by that of the second; of cycles, where a clock is not known."""
        ratio = self.first.seconds / self.second.seconds if self.second.seconds else math.nan
        return ratio if ratio == ratio else self.first.cycles / self.second.cycles

    @cached_property
    def names(self) -> tuple[str, str]:
        """What the sides are called: the kernels, and what tells them apart if those are the same."""
        a, b = short_name(self.first.name), short_name(self.second.name)
        machines = self.first.machine, self.second.machine
        if machines[0] is not None and machines[1] is not None and machines[0].name != machines[1].name:
            return f"{a} on {machines[0].name}", f"{b} on {machines[1].name}"
        if a != b:
            return a, b
        if self.first.id != self.second.id:
            return f"{a} ({self.first.id})", f"{b} ({self.second.id})"
        return f"A: {a}", f"B: {b}"

    @cached_property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """(part of the time, seconds of the first, seconds of the second): those that differ most, first."""
        a, b = times(self.first), times(self.second)
        rows = [(name, a.get(name, 0.0), b.get(name, 0.0)) for name in dict.fromkeys([*a, *b])]
        least = _SMALL * max(self.first.seconds, self.second.seconds, 0.0)
        shown = [row for row in rows if abs(row[1] - row[2]) >= least]
        return tuple(sorted(shown, key=lambda row: -abs(row[1] - row[2])))

    @property
    def verdict(self) -> str:
        """Which is faster, in a sentence."""
        a, b = self.names
        if self.speedup == 1:
            return f"{a} and {b} take the same time."
        fast, slow, ratio = (b, a, self.speedup) if self.speedup > 1 else (a, b, 1 / self.speedup)
        return f"{fast} is {ratio:.2f} times as fast as {slow}."

    @property
    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows: time, cycles, the parts of the time, counters."""
        sides = self.first, self.second
        rows = [
            ["time", *(format_time(x.seconds) for x in sides)],
            ["cycles", *(f"{x.cycles:,}" for x in sides)],
        ]
        rows += [[f"time: {name}", format_time(x), format_time(y)] for name, x, y in self.parts[:_MOST_PARTS]]
        rows += [[what, _number(x), _number(y)] for what, x, y, _ in self.rows]
        return ["", *self.names], rows

    def __str__(self) -> str:
        header, rows = self.table
        lines = [self.verdict, *("  " + line for line in text_table(header, rows, (0,)))]
        for name, launch in zip(self.names, (self.first, self.second), strict=True):
            machine = "" if launch.machine is None else f", {machine_text(launch.machine)}"
            lines.append(f"  {name}{machine}: bound by {bottleneck(launch).kind}.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return notebook(self.verdict, [(*self.table, (0,))])


def difference(first: LaunchResult, second: LaunchResult) -> Difference:
    """Compares two launches, such as two versions of a kernel, or one kernel on two GPUs."""
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
