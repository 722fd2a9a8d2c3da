"""A Result as text: the compact table of its launches, a line per launch, a fragment for notebooks."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from simt.formatting import format_time, plural, text_table
from simt.names import short_name
from simt.pages import notebook
from simt.result.counters import Value
from simt.result.launch import LaunchResult
from simt.result.listing import LEFT as LINE_LEFT
from simt.result.stack import machine_text
from simt.result.summary import bottleneck, sentences

if TYPE_CHECKING:
    from simt.result.result import Result


LEFT = (1, 2, 11)  # columns of the compact table that are text


def launch_rows(result: Result, limit: int) -> tuple[list[str], list[list[str]]]:
    """The compact table: header, rows of at most `limit` launches (the longest), and one of all others."""
    header = [
        "id",
        "kernel",
        "grid",
        "cycles",
        "time",
        "warp inst",
        "IPC/SM",
        "occ",
        "L1 hit",
        "L2 hit",
        "DRAM",
        "bound by",
    ]
    chosen = result.launches
    if len(chosen) > limit:
        longest = heapq.nlargest(limit, chosen, key=lambda x: x.cycles)
        chosen = tuple(sorted(longest, key=lambda x: x.index))
    rows, labels = [], result.labels(32)
    for x in chosen:
        c = x.counters
        rows.append(
            [
                str(x.id),
                labels[x.name],
                "x".join(map(str, x.grid)),
                cycles_text(x),
                format_time(x.seconds),
                _number(x.warp_instructions, "{:,}"),
                _number(_ipc(x), "{:.2f}"),
                _number(c["sm__warps_active.avg.pct_of_peak_sustained_active"], "{:.0f}%"),
                _number(c["l1tex__t_sector_hit_rate.pct"], "{:.0f}%"),
                _number(c["lts__t_sector_hit_rate.pct"], "{:.0f}%"),
                _number(c["dram__throughput.avg.pct_of_peak_sustained_elapsed"], "{:.0f}%"),
                bottleneck(x).kind,
            ]
        )
    if others := len(result.launches) - len(rows):
        shown = frozenset(x.index for x in chosen)
        cycles, instructions = 0.0, 0
        for x, own in zip(result.launches, result.shares, strict=True):
            if x.index not in shown:
                cycles += own
                instructions += x.warp_instructions
        row = dict.fromkeys(header, "") | {
            "kernel": f"{others:,} others",
            "cycles": f"{cycles:,.0f}",
            "time": format_time(cycles / (1000 * result.machine.core_khz)),
            "warp inst": _number(instructions, "{:,}"),
        }
        rows.append(list(row.values()))
    return header, rows


def _number(value: Value, form: str) -> str:
    return "-" if value is None or value != value else form.format(value)


def cycles_text(launch: LaunchResult) -> str:
    """Its cycles; with ~ before them where they are projected or predicted."""
    sampled = launch.sampled is not None and launch.sampled.decision != "full"
    return f"{'~' * sampled}{launch.cycles:,}"


def launch_text(x: LaunchResult) -> str:
    """A launch in a line: what it was, how long it took, and why."""
    grid, block = ("x".join(map(str, sizes)) for sizes in (x.grid, x.block))
    waits = {r: n for r, n in x.warp_stalls.items() if r not in ("selected", "not_selected") and n == n}
    facts = [f"{cycles_text(x)} cycles", f"IPC {_number(_ipc(x), '{:.2f}')} per SM"]
    if total := sum(waits.values()):
        reason = max(waits, key=lambda r: waits[r])
        facts.append(f"{waits[reason] / total:.0%} of waiting is {reason}")
    facts.append(f"bound by {bottleneck(x).kind}")
    return f"LaunchResult({x.id}: {short_name(x.name)}[{grid}, {block}]: {', '.join(facts)})"


def launch_html(x: LaunchResult) -> str:
    """A launch as HTML for a notebook: facts, the parts of its time, the lines at which its warps wait."""
    grid, block = ("x".join(map(str, sizes)) for sizes in (x.grid, x.block))
    machine = "" if x.machine is None else f" on {machine_text(x.machine)}"
    title = (
        f"{short_name(x.name)}[{grid}, {block}]{machine}: {format_time(x.seconds)} ({cycles_text(x)} cycles)"
    )
    parts = [[part.name, f"{part.share:.1%}", part.meaning] for part in x.stack if part.share >= 0.005]
    lines = x.lines()
    tables: list[tuple[list[str], list[list[str]], tuple[int, ...]]] = []
    if parts:
        tables.append((["part", "of the time", "waiting for"], parts, (0, 2)))
    if lines:
        tables.append((*lines.table(8), LINE_LEFT))
    return notebook(title, tables, [f"Bound by {bottleneck(x).kind}: {bottleneck(x).text}."])


def _ipc(x: LaunchResult) -> Value:
    return x.counters["sm__inst_executed.avg.per_cycle_elapsed"]


def text(result: Result) -> str:
    """The Result as a few lines of plain text."""
    t = result.totals
    lines = [
        f"Result: {plural(t.launches, 'launch')} on {result.machine.name}, {t.cycles:,} cycles "
        f"({format_time(t.seconds)}), "
        f"{t.warp_instructions:,} warp instructions"
        + ("" if result.status == "complete" else f", {result.status}")
    ]
    header, rows = launch_rows(result, limit=10)
    lines += ["  " + line for line in text_table(header, rows, LEFT)]
    lines += [*sentences(result), *result.confidence.lines]
    lines += [f"warning: {warning}" for warning in result.warnings]
    return "\n".join(lines)


def notebook_page(result: Result) -> str:
    """The Result as HTML for a notebook."""
    t = result.totals
    title = (
        f"{plural(t.launches, 'launch')} on {result.machine.name}: {t.cycles:,} cycles "
        f"({format_time(t.seconds)}), {t.warp_instructions:,} warp instructions"
    )
    tables = [(*launch_rows(result, limit=20), LEFT)]
    notes = [" ".join(sentences(result)), " ".join(result.confidence.lines)]
    return notebook(title, tables, notes, result.warnings)
