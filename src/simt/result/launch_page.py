"""What the page shows of one launch: states, timeline, lines with their stalls, maps of SMs and slices."""

from __future__ import annotations

from typing import Any

from simt.result.launch import LaunchResult
from simt.result.listing import instructions
from simt.result.summary import bottleneck
from simt.result.timeline import Sample

MAX_POINTS = 400  # of a timeline
MAX_LINES = 3000  # instructions: those at which warps wait longest


def details(x: LaunchResult, listings: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything about it. Texts of its instructions are added to `listings`, once for all launches alike."""
    return {
        "registers": x.registers,
        "shared": x.shared_bytes,
        "ctas_per_sm": x.occupancy_limit_ctas,
        "limited_by": x.occupancy_limited_by.replace("_", " "),
        "issue": _rounded(x.counters["smsp__issue_active.avg.pct_of_peak_sustained_active"]),
        "sampled": _sampled(x),
        "why": bottleneck(x).text,
        "states": {reason: None if n != n else n for reason, n in x.warp_stalls.items()},
        "schedulers": {reason: sum(row) for reason, row in x.stalls.items()},
        "timeline": _timeline(x),
        "lines": _lines(x, listings),
        "spread": x.spread,
    }


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


def _timeline(x: LaunchResult) -> dict[str, Any] | None:
    samples = x.samples()
    if not samples:
        return None
    step = -(-len(samples) // MAX_POINTS)
    groups = [samples[i : i + step] for i in range(0, len(samples), step)]
    channels = len(samples[0].channels)
    return {
        "start": [g[0].start - x.start_cycle for g in groups],
        "end": [g[-1].end - x.start_cycle for g in groups],
        "ipc": _means(groups, "ipc", 4),
        "occupancy": _means(groups, "occupancy"),
        "l1": _means(groups, "l1_hit_rate"),
        "l2": _means(groups, "l2_hit_rate"),
        "dram": _means(groups, "dram_busy"),
        "efficiency": _means(groups, "dram_efficiency"),
        "channels": [
            [round(sum(s.channels[c] for s in g) / len(g), 1) for c in range(channels)] for g in groups
        ],
    }


def _means(groups: list[list[Sample]], name: str, digits: int = 2) -> list[float | None]:
    found: list[float | None] = []
    for group in groups:
        values = [value for value in (getattr(s, name) for s in group) if value is not None]
        found.append(round(sum(values) / len(values), digits) if values else None)
    return found


def _lines(x: LaunchResult, listings: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Counts per instruction, and in `listings` what is the same for all launches of the kernel."""
    lines = instructions(x)
    if not lines:
        return None
    hot = sorted(range(len(lines)), key=lambda i: (-lines[i].waiting, -lines[i].issued))[:MAX_LINES]
    lines = [lines[i] for i in sorted(hot)]
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
