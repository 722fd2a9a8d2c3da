"""One self-contained HTML page of a Result: figures computed here, drawn by the script in report.html."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.files import write_text
from simt.names import short_name
from simt.result.counters import Value
from simt.result.display import format_time
from simt.result.files import dump
from simt.result.launch import LaunchResult, Sample
from simt.result.summary import bottleneck, sentences

if TYPE_CHECKING:
    from simt.result.result import Result

TEMPLATE = Path(__file__).with_name("report.html")
STYLE = Path(__file__).with_name("page.css")  # of all pages of simt
STYLE_MARK, MARK = "/*STYLE*/\n", "/*DATA*/null"

# Limits that keep the page of a Result with thousands of launches small enough to open.
MAX_ROWS = 1000  # launches in the table
MAX_DETAILED = 40  # launches with a timeline and PCs: the longest ones
MAX_POINTS = 400  # of a timeline
MAX_PCS = 30

_COLUMNS = {
    "ipc": "sm__inst_executed.avg.per_cycle_elapsed",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1": "l1tex__t_sector_hit_rate.pct",
    "l2": "lts__t_sector_hit_rate.pct",
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
}


def page(result: Result) -> str:
    """The page as text."""
    # No "<" may stand in a script: "</script" ends it, and "<!--<script" makes a browser ignore that end.
    text = dump(_data(result)).replace("<", "\\u003c")
    template = TEMPLATE.read_text(encoding="utf-8")
    return template.replace(STYLE_MARK, STYLE.read_text(encoding="utf-8")).replace(MARK, text)


def write(result: Result, path: Path) -> None:
    """Writes the page. Raises ResultError."""
    write_text(path, page(result))


def _data(result: Result) -> dict[str, Any]:
    longest = sorted(result.launches, key=lambda x: -x.cycles)
    detailed = {x.index for x in longest[:MAX_DETAILED]}
    shown = {x.index for x in longest[:MAX_ROWS]}
    t, p = result.totals, result.provenance
    return {
        "gpu": result.machine.name,
        "input": p.input,
        "status": result.status,
        "totals": {
            "launches": t.launches,
            "cycles": t.cycles,
            "time": format_time(t.seconds),
            "latency": t.launch_latency,
            "instructions": _known(t.warp_instructions),
            **{key: _known(t.counters[name]) for key, name in _COLUMNS.items()},
        },
        "sentences": sentences(result),
        "warnings": list(result.warnings),
        "kernels": _kernels(result.launches),
        "left_out": len(result.launches) - len(shown),
        "launches": [_launch(x, x.index in detailed) for x in result.launches if x.index in shown],
        "provenance": [[key.replace("_", " "), _plain(value)] for key, value in p.to_json().items()],
    }


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items()) or "-"
    return "-" if value is None else str(value)


def _kernels(launches: tuple[LaunchResult, ...]) -> list[dict[str, Any]]:
    """Time by kernel name, longest first."""
    kernels: dict[str, dict[str, Any]] = {}
    for x in launches:
        k = kernels.setdefault(
            x.name, {"name": x.name, "short": short_name(x.name), "launches": 0, "cycles": 0, "latency": 0}
        )
        k["launches"] += 1
        k["cycles"] += x.cycles
        k["latency"] += x.launch_latency
    return sorted(kernels.values(), key=lambda k: -k["cycles"])[:25]


def _launch(x: LaunchResult, detailed: bool) -> dict[str, Any]:
    limit = bottleneck(x)
    return {
        "id": x.id,
        "name": x.name,
        "short": short_name(x.name),
        "grid": " × ".join(map(str, x.grid)),
        "block": " × ".join(map(str, x.block)),
        "registers": x.registers,
        "shared": x.shared_bytes,
        "ctas_per_sm": x.occupancy_limit_ctas,
        "limited_by": x.occupancy_limited_by.replace("_", " "),
        "cycles": x.cycles,
        "latency": x.launch_latency,
        "time": format_time(x.seconds),
        "instructions": _known(x.warp_instructions),
        **{key: _known(x.counters[name]) for key, name in _COLUMNS.items()},
        "sampled": _sampled(x),
        "bound": limit.kind,
        "why": limit.text,
        "states": {reason: _known(n) for reason, n in x.warp_stalls.items()},
        "schedulers": x.stalls,
        "timeline": _timeline(x) if detailed else None,
        "pcs": _pcs(x) if detailed else None,
    }


def _known(value: Value) -> Value:
    """JSON has no NaN: what could not be projected is null, as is what has no denominator."""
    return None if value != value else value


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


def _pcs(x: LaunchResult) -> list[dict[str, Any]] | None:
    if not x.pc:
        return None
    waits = {r: row for r, row in x.pc["stalled"].items() if r != "selected"}
    rows = [
        {
            "pc": f"{x.pc['pc'][i]:04x}",
            "opcode": x.pc["opcode"][i],
            "line": x.pc["source_line"][i],
            "issued": x.pc["issued"][i],
            "interval": x.pc["sample_interval"],
            "stalled": {r: row[i] for r, row in waits.items() if row[i]},
        }
        for i in range(len(x.pc["pc"]))
    ]
    rows.sort(key=lambda row: -sum(row["stalled"].values()))
    return rows[:MAX_PCS]
