"""One self-contained HTML page of two Results side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simt.files import write_text
from simt.formatting import format_time
from simt.pages import Bars, Cell, Table, render
from simt.result.compare import KernelPair, ResultComparison, more, ratio_text, side
from simt.result.counters import Value
from simt.result.launch import LaunchResult
from simt.result.report import program_name
from simt.result.result import Result, Totals
from simt.result.stack import machine_text
from simt.result.summary import bottleneck

MOST_KERNELS = 25  # shown with their counters and stalls
MOST_LAUNCHES = 2000

# Counters compared for each kernel, with their labels.
_COUNTERS = {
    "smsp__inst_executed.sum": "warp instructions",
    "sm__inst_executed.avg.per_cycle_elapsed": "IPC per SM",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue slots used, %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy, %",
    "l1tex__t_sector_hit_rate.pct": "L1 hits, %",
    "lts__t_sector_hit_rate.pct": "L2 hits, %",
    "lts__t_sectors.sum": "L2 sectors",
    "dram__bytes_read.sum": "bytes read from DRAM",
    "dram__bytes_write.sum": "bytes written to DRAM",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "DRAM bus busy, %",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "shared-memory bank conflicts",
    "simt__register_bank_conflicts.sum": "register bank conflicts",
}


def page(comparison: ResultComparison) -> str:
    """The page as text."""
    first, second = comparison.first, comparison.second
    names = [
        f"{letter}: {program_name(result)} on {machine_text(result.machine)}"
        for letter, result in (("A", first), ("B", second))
    ]
    totals = first.totals, second.totals
    longer = f" The first {MOST_LAUNCHES:,}." if len(comparison.launches) > MOST_LAUNCHES else ""
    return render(
        "comparison.html",
        title=names[0],
        about=f"compared with {names[1]}",
        source=f"{first.provenance.input} and {second.provenance.input}",
        tiles=[
            (format_time(totals[0].seconds), "time of A"),
            (format_time(totals[1].seconds), "time of B"),
            (ratio_text(comparison.ratio), "time of B / A"),
            (f"{totals[0].cycles:,}", "cycles of A"),
            (f"{totals[1].cycles:,}", "cycles of B"),
            (f"{len(comparison.launches):,}", "launches that both have"),
        ],
        kernel_table=_kernel_table(comparison),
        kernels=[_kernel(comparison, k) for k in comparison.kernels[:MOST_KERNELS] if k.first and k.second],
        launches_note=f"The n-th launch of a kernel in A beside its n-th launch in B.{longer}",
        launch_table=_launch_table(comparison),
        unmatched=[
            (f"Only in {name}", _only(comparison, launches))
            for name, launches in zip("AB", comparison.unmatched, strict=True)
            if launches
        ],
        provenance=_provenance(first, second),
    )


def write(first: Result, second: Result, path: Path) -> ResultComparison:
    """Writes the page and returns the comparison that it shows. Raises ResultError."""
    comparison = ResultComparison(first, second)
    write_text(path, page(comparison))
    return comparison


def _kernel_table(comparison: ResultComparison) -> Table:
    header = [
        "kernel",
        "launches A",
        "launches B",
        "time A",
        "time B",
        "B / A",
        "cycles A",
        "cycles B",
        "bound in A",
        "bound in B",
    ]
    rows: list[list[Cell]] = []
    for k in comparison.kernels:
        cycles = [(f"{n:,.0f}", n) for n in k.cycles]
        counts = [(f"{len(xs):,}", float(len(xs))) for xs in (k.first, k.second)]
        rows.append(
            [
                (comparison.labels[k.name], None),
                *counts,
                *((format_time(t) if t else "-", t) for t in k.seconds),
                (ratio_text(k.ratio), k.ratio or 0.0),
                *cycles,
                (_bound(k.first), None),
                (_bound(k.second), None),
            ]
        )
    return Table(header, rows)


def _bound(launches: Sequence[LaunchResult]) -> str:
    """By what its longest launch is bound."""
    return bottleneck(max(launches, key=lambda x: x.cycles)).kind if launches else "-"


def _kernel(comparison: ResultComparison, k: KernelPair) -> tuple[str, str, Table, Bars, Table]:
    """A kernel's section: title, note, in which parts of the time it differs, what its warps were doing, its
    counters."""
    rows: list[list[Cell]] = []
    for counter, what in _COUNTERS.items():
        a, b = (totals.counters[counter] for totals in k.totals)
        ratio = b / a if a and b and a == a and b == b else None
        rows.append([(what, None), _cell(a), _cell(b), (ratio_text(ratio), ratio or 0.0)])
    parts: list[list[Cell]] = [
        [(name, None), *((format_time(t), t) for t in (x, y)), (more(x, y), y - x)] for name, x, y in k.parts
    ]
    note = (
        f"{format_time(k.seconds[0])} ({k.cycles[0]:,.0f} cycles) in A, {format_time(k.seconds[1])} "
        f"({k.cycles[1]:,.0f} cycles) in B: {ratio_text(k.ratio)} times the time. "
        "First, the parts in which the time of its longest launch differs; then what warps were doing, in "
        "warp-cycles per instruction."
    )
    return (
        comparison.labels[k.name],
        note,
        Table(["part of the time", "A", "B", "B - A"], parts),
        _stalls(k.totals),
        Table(["counter", "A", "B", "B / A"], rows),
    )


def _cell(value: Value) -> Cell:
    if value is None or value != value:
        return ("-", 0.0)
    return (f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}", float(value))


def _stalls(totals: tuple[Totals, Totals]) -> Bars:
    """The warp states of both per executed instruction."""
    profiles = []
    for t in totals:
        n = max(1, t.warp_instructions)
        profiles.append({reason: cycles / n for reason, cycles in t.warp_stalls.items() if cycles > 0})
    order = sorted(
        {r for profile in profiles for r in profile}, key=lambda r: -max(p.get(r, 0) for p in profiles)
    )
    return Bars(
        [
            (name, [(reason, profile.get(reason, 0.0)) for reason in order], f"{sum(profile.values()):,.1f}")
            for name, profile in zip("AB", profiles, strict=True)
        ]
    )


def _launch_table(comparison: ResultComparison) -> Table:
    header = [
        "kernel",
        "id A",
        "id B",
        "grid A",
        "grid B",
        "time A",
        "time B",
        "B / A",
        "cycles A",
        "cycles B",
        "bound in A",
        "bound in B",
    ]
    rows: list[list[Cell]] = []
    for pair in comparison.launches[:MOST_LAUNCHES]:
        a, b = pair.first, pair.second
        grids = ["x".join(map(str, x.grid)) for x in (a, b)]
        rows.append(
            [
                (comparison.labels[a.name], None),
                (str(a.id), float(a.id)),
                (str(b.id), float(b.id)),
                (grids[0], None),
                (grids[1], None),
                *((format_time(x.seconds), x.seconds) for x in (a, b)),
                (ratio_text(pair.ratio), pair.ratio or 0.0),
                (f"{a.cycles:,}", float(a.cycles)),
                (f"{b.cycles:,}", float(b.cycles)),
                (bottleneck(a).kind, None),
                (bottleneck(b).kind, None),
            ]
        )
    return Table(header, rows)


def _only(comparison: ResultComparison, launches: Sequence[LaunchResult]) -> Table:
    rows: list[list[Cell]] = [
        [
            (comparison.labels[x.name], None),
            (str(x.id), float(x.id)),
            (f"{x.cycles:,}", float(x.cycles)),
            (bottleneck(x).kind, None),
        ]
        for x in launches[:MOST_LAUNCHES]
    ]
    return Table(["kernel", "id", "cycles", "bound by"], rows)


def _provenance(first: Result, second: Result) -> dict[str, str]:
    values = {}
    for name, result in (("A", first), ("B", second)):
        p = result.provenance
        values[name] = f"{side(result)}, {p.method}, simt {p.version}"
    return values
