"""What the page shows of one launch: states, timeline, lines with their stalls, maps of SMs and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simt.result import energy_page
from simt.result.launch import LaunchResult
from simt.result.listing import Line, instructions, source_lines
from simt.result.summary import bottleneck
from simt.result.timeline import TimelineSample

MAX_POINTS = 400  # of a timeline
MAX_LINES = 3000  # instructions: those at which warps wait longest
MAX_CELLS = 48_000  # of a heat map
MAX_MAPPED_LINES = 40  # of source, over time: those at which warps wait longest
MAX_ROWS = 256  # of a heat map: of more banks, those of the busiest channels
_LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # of a heat map's cells


def details(x: LaunchResult, listings: list[dict[str, Any]], launches: int = 1) -> dict[str, Any]:
    """Everything about it. Texts of its instructions are added to `listings`, once for all launches alike.

    launches: how many the page shows in full; of more, each is coarser, so that the page stays small.
    """
    shown = _shown(x, _share(MAX_LINES, launches, 300))
    return {
        "registers": x.registers,
        "shared": x.shared_bytes,
        "ctas_per_sm": x.occupancy_limit_ctas,
        "limited_by": x.occupancy_limited_by.replace("_", " "),
        "issue": _rounded(x.counters["smsp__issue_active.avg.pct_of_peak_sustained_active"]),
        "sampled": _sampled(x),
        "why": bottleneck(x).text,
        "parts": [
            [part.name, _rounded(100 * part.share), part.meaning] for part in x.stack if part.share >= 0.002
        ],
        "states": {reason: None if n != n else n for reason, n in x.warp_stalls.items()},
        "schedulers": {reason: sum(row) for reason, row in x.stalls.items()},
        "timeline": _timeline(x, _share(MAX_POINTS, launches, 100)),
        "dram": _heat_maps(x, _share(MAX_CELLS, launches, 6_000)),
        "lines": _lines(x, listings, shown),
        "line_map": _line_map(x, _share(MAX_CELLS, launches, 6_000) // 2),
        "spread": x.spread,
        "energy": energy_page.of_launch(
            x, _share(MAX_POINTS, launches, 100), [line.instructions[0] for line in shown]
        ),
    }


def _share(most: int, launches: int, least: int) -> int:
    """The limit of one launch, if `launches` together may have that of eight."""
    return max(least, min(most, 8 * most // launches))


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value else float(f"{value:.4g}")


def _sampled(x: LaunchResult) -> str | None:
    """How the values of a launch came about that was not simulated whole."""
    s = x.sampled
    if s is None or s.decision == "full":
        return None
    how = {"stop": "projected", "skip": "projected", "predict": "predicted"}[s.decision]
    text = (
        f"Total {how} by {s.method}, from {s.cycles:,} of its cycles and {s.ctas:,} of {s.total_ctas:,} CTAs "
        f"simulated in detail"
    )
    return text + (f" ({s.reason})" if s.reason else "")


def _timeline(x: LaunchResult, points: int) -> dict[str, Any] | None:
    samples = x.samples()
    if not samples:
        return None
    step = -(-len(samples) // points)
    groups = [samples[i : i + step] for i in range(0, len(samples), step)]
    return {
        "start": [g[0].start - x.start_cycle for g in groups],
        "end": [g[-1].end - x.start_cycle for g in groups],
        "ipc": _means(groups, "ipc", 4),
        "occupancy": _means(groups, "occupancy"),
        "l1": _means(groups, "l1_hit_rate"),
        "l2": _means(groups, "l2_hit_rate"),
        "dram": _means(groups, "dram_busy"),
        "efficiency": _means(groups, "dram_efficiency"),
        "lanes": _means(groups, "lanes"),
        "stalls": {
            reason: row
            for reason in samples[0].stalls
            if any(row := [round(sum(s.stalls[reason] for s in g) / len(g), 1) for g in groups])
        },
    }


def _heat_maps(x: LaunchResult, cells: int) -> list[dict[str, Any]]:
    """DRAM's utilisation and efficiency over time, by channel and by bank."""
    found = []
    for by in ("channel", "bank"):
        whole = x.dram_activity(by, 1)
        if whole is None or x.machine is None or not whole.utilisation.size:
            continue
        rows = np.arange(whole.utilisation.shape[1])
        if len(rows) > MAX_ROWS:
            by_channel = whole.utilisation[0].reshape(x.machine.dram_channels, -1)
            busiest = np.argsort(-by_channel.sum(axis=1), kind="stable")[: MAX_ROWS // by_channel.shape[1]]
            rows = rows.reshape(by_channel.shape)[np.sort(busiest)].ravel()
        a = x.dram_activity(by, max(1, min(MAX_POINTS, cells // len(rows))))
        assert a is not None
        peak = float(a.utilisation[:, rows].max())
        most = next(most for most in (5, 10, 20, 50, 100) if peak <= most)
        found.append(
            {
                "by": by,
                "rows": rows.tolist(),
                "left_out": whole.utilisation.shape[1] - len(rows),
                "start": (a.start - x.start_cycle).tolist(),
                "end": (a.end - x.start_cycle).tolist(),
                "utilisation": {"most": most, "cells": _cells(a.utilisation[:, rows], most)},
                "efficiency": {"most": 100, "cells": _cells(a.efficiency[:, rows], 100)},
            }
        )
    return found


def _line_map(x: LaunchResult, cells: int) -> dict[str, Any] | None:
    """Source lines over time, or instructions if lines are not known: warp instructions per cycle, and warps
    that wait there. Of many, those at which warps wait longest."""
    lines = source_lines(x)
    by = "line" if lines else "instruction"
    shown = lines or instructions(x)
    hot = sorted(range(len(shown)), key=lambda i: (-shown[i].waiting, -shown[i].issued))[:MAX_MAPPED_LINES]
    shown = [shown[i] for i in sorted(hot)]
    if not shown or (a := x.instruction_activity(max(1, min(MAX_POINTS, cells // len(shown))))) is None:
        return None
    cycles = np.maximum(1, a.end - a.start)[:, None]
    found: dict[str, Any] = {
        "by": by,
        "interval": x.pc["sample_interval"],
        "left_out": len(lines or x.pc["pc"]) - len(shown),
        "rows": [
            [str(line.place[-1]) if by == "line" else f"{line.place[0]:04x}", line.text] for line in shown
        ],
        "start": (a.start - x.start_cycle).tolist(),
        "end": (a.end - x.start_cycle).tolist(),
    }
    for name, counts in (("waiting", a.waiting * x.pc["sample_interval"]), ("issued", a.issued)):
        rates = np.stack([counts[:, line.instructions].sum(axis=1) for line in shown], axis=1) / cycles
        most = float(f"{max(rates.max(), 1e-3):.3g}")
        found[name] = {"most": most, "cells": _cells(np.minimum(rates, most), most)}
    return found


def _cells(values: NDArray[np.float64], most: float) -> str:
    """A character per cell, row after row of the map: its level from 0 to `most`, or a full stop for NaN."""
    levels = np.nan_to_num(values.T * (len(_LEVELS) - 1) / most, nan=len(_LEVELS)).round().astype(int)
    return "".join((_LEVELS + ".")[level] for level in levels.ravel())


def _means(groups: list[list[TimelineSample]], name: str, digits: int = 2) -> list[float | None]:
    found: list[float | None] = []
    for group in groups:
        values = [value for value in (getattr(s, name) for s in group) if value is not None]
        found.append(round(sum(values) / len(values), digits) if values else None)
    return found


def _shown(x: LaunchResult, most: int) -> list[Line]:
    """The instructions shown: of more, those at which warps wait longest."""
    lines = instructions(x)
    hot = sorted(range(len(lines)), key=lambda i: (-lines[i].waiting, -lines[i].issued))[:most]
    return [lines[i] for i in sorted(hot)]


def _lines(x: LaunchResult, listings: list[dict[str, Any]], lines: list[Line]) -> dict[str, Any] | None:
    """Counts per instruction, and in `listings` what is the same for all launches of the kernel."""
    if not lines:
        return None
    at = [line.instructions[0] for line in lines]

    def column(name: str) -> list[Any]:
        row = x.pc.get(name)
        return [row[i] for i in at] if row else []

    listing = {
        "pc": [f"{line.place[0]:04x}" for line in lines],
        "text": [line.text for line in lines],
        "ptx": column("ptx"),
        "file": column("source_file"),
        "line": column("source_line"),
        "source": column("source_text"),
    }
    if listing not in listings:
        listings.append(listing)
    reasons = {reason for line in lines for reason in line.stalled}
    return {
        "listing": listings.index(listing),
        "left_out": len(x.pc["pc"]) - len(lines),
        "interval": x.pc["sample_interval"],
        "issued": [line.issued for line in lines],
        "threads": [line.threads for line in lines] if "threads" in x.pc else None,
        "stalled": {r: [line.stalled.get(r, 0) for line in lines] for r in sorted(reasons)},
    }
