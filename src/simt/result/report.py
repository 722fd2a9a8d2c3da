"""One self-contained HTML page of a Result: figures computed here, drawn by the scripts in pages/result/."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simt.files import write_text
from simt.formatting import format_time
from simt.pages import render
from simt.result import energy_page
from simt.result.counters import Value
from simt.result.launch import LaunchResult
from simt.result.launch_page import details
from simt.result.roofline import point, roofs
from simt.result.summary import bottleneck, sentences

if TYPE_CHECKING:
    from simt.explain import Explanation
    from simt.result.result import Result

# Launches with a timeline, lines and maps: the longest of each kernel, then the longest of all.
MAX_DETAILED = 60
MAX_BYTES = 5_000_000  # of the page: beyond, fewer launches are shown in full
MAX_POINTS = 60  # kernels in the roofline: the longest
MAX_TRANSFERS = 20_000  # the longest

_LINKS = ("host_to_device", "device_to_host", "device", "peer_to_device", "device_to_peer")

_COLUMNS = {
    "ipc": "sm__inst_executed.avg.per_cycle_elapsed",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1": "l1tex__t_sector_hit_rate.pct",
    "l2": "lts__t_sector_hit_rate.pct",
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
}


def page(result: Result, explanation: Explanation | None = None) -> str:
    """The page as text. explanation: of one of its launches, with what removing causes gains; by default that
    of the longest, without."""
    if explanation is None and result.launches:
        explanation = result.explain(causes=())
    title = f"{program_name(result)} on {result.machine.name} - simt"
    detailed = min(MAX_DETAILED, max(1, len(result.launches)))
    while True:
        text = render("result.html", title=title, data=_data(result, explanation, detailed))
        if detailed == 1 or len(text.encode()) <= MAX_BYTES:
            return text
        detailed //= 2


def write(result: Result, path: Path, explanation: Explanation | None = None) -> None:
    """Writes the page. explanation: as for `page`. Raises ResultError."""
    write_text(path, page(result, explanation))


def program_name(result: Result) -> str:
    """What ran, in a few words: the file's name; of a trace's list of kernels that of its folder."""
    path = Path(result.provenance.input)
    name = path.parent.name if path.name.startswith("kernelslist") and path.parent.name else path.name
    return name.encode("utf-8", "replace").decode() or "simt"


def _data(result: Result, explanation: Explanation | None, detailed: int) -> dict[str, Any]:
    t, p = result.totals, result.provenance
    kernels = _kernels(result)
    numbers = {kernel["name"]: i for i, kernel in enumerate(kernels)}
    positions = _detailed(result.launches, detailed)
    size = min(MAX_DETAILED, len(result.launches))
    listings: list[dict[str, Any]] = []
    return {
        "program": program_name(result),
        "gpu": result.machine.name,
        "input": p.input,
        "status": result.status,
        "totals": {
            "launches": t.launches,
            "cycles": t.cycles,
            "time": format_time(t.seconds),
            "instructions": _known(t.warp_instructions),
            **{key: _rounded(t.counters[name]) for key, name in _COLUMNS.items()},
        },
        "khz": result.machine.core_khz,
        "sentences": sentences(result),
        "confidence": _confidence(result),
        "explanation": None if explanation is None else _explanation(explanation),
        "warnings": list(result.warnings),
        "kernels": kernels,
        "launches": _launches(result, numbers),
        "transfers": _transfers(result),
        "banks": result.machine.dram_banks,
        "details": {str(i): details(result.launches[i], listings, size) for i in positions},
        "listings": listings,
        "roofline": _roofline(result, numbers),
        "energy": energy_page.of_program(result),
        "provenance": [[key.replace("_", " "), _plain(value)] for key, value in p.to_json().items()],
    }


def _confidence(result: Result) -> list[list[str]]:
    """How sure the time is, as terms and what they are here; nothing without launches."""
    if not result.launches:
        return []
    found = result.confidence
    return [
        ["time", found.sentence],
        ["ran", found.code or "not recorded"],
        ["conditions", found.conditions],
        ["modelled in part", "; ".join(found.in_part) or "-"],
        ["not modelled", "; ".join(found.warnings) or "-"],
        ["compared runs", ", ".join(found.programs) or "-"],
    ]


def _explanation(found: Explanation) -> dict[str, Any]:
    """Why a launch takes its time: rows of bars, and sentences."""
    return {
        "launch": found.launch.id,
        "sentences": found.sentences,
        "gains": [
            [g.cause.name, _rounded(g.saved), _rounded(g.speedup), " and ".join(g.lines)] for g in found.gains
        ],
        "bounds": [[b.resource, _rounded(b.share), round(b.cycles)] for b in found.bounds],
        "chains": [[_rounded(c.share), " ← ".join(map(str, c.links))] for c in found.chains],
        "notes": list(found.notes),
    }


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items()) or "-"
    return "-" if value is None else str(value)


def _kernels(result: Result) -> list[dict[str, Any]]:
    """Time by kernel name, longest first. Cycles that several launches share are divided among them."""
    labels = result.labels(48)
    kernels: dict[str, dict[str, Any]] = {}
    for x, cycles in zip(result.launches, result.shares, strict=True):
        k = kernels.setdefault(
            x.name, {"name": x.name, "short": labels[x.name], "launches": 0, "cycles": 0.0, "latency": 0.0}
        )
        k["launches"] += 1
        k["cycles"] += cycles
        k["latency"] += x.launch_latency * (cycles / x.cycles if x.cycles else 0)
    for k in kernels.values():
        k["cycles"], k["latency"] = round(k["cycles"]), round(k["latency"])
    return sorted(kernels.values(), key=lambda k: -k["cycles"])


def _detailed(launches: Sequence[LaunchResult], most: int) -> list[int]:
    """Positions of the launches that are shown in full."""
    longest = sorted(range(len(launches)), key=lambda i: -launches[i].cycles)
    first: dict[str, int] = {}
    for i in longest:
        first.setdefault(launches[i].name, i)
    return sorted(list(dict.fromkeys([*first.values(), *longest]))[:most])


def _launches(result: Result, numbers: dict[str, int]) -> dict[str, list[Any]]:
    """A column per fact, a value per launch: so thousands of them stay small."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for x in result.launches:
        facts = {
            "id": x.id,
            "kernel": numbers[x.name],
            "stream": x.stream,
            "start": x.start_cycle,
            "cycles": x.cycles,
            "latency": x.launch_latency,
            "grid": " × ".join(map(str, x.grid)),
            "block": " × ".join(map(str, x.block)),
            "sampled": int(x.sampled is not None and x.sampled.decision != "full"),
            "instructions": _known(x.warp_instructions),
            "bound": bottleneck(x).kind,
            **{key: _rounded(x.counters[name]) for key, name in _COLUMNS.items()},
        }
        for name, value in facts.items():
            columns[name].append(value)
    return columns


def _transfers(result: Result) -> dict[str, Any]:
    """Columns as of launches: the longest transfers, in the order in which they ended."""
    longest = sorted(range(len(result.transfers)), key=lambda i: -result.transfers[i].cycles)[:MAX_TRANSFERS]
    shown = [result.transfers[i] for i in sorted(longest)]
    return {
        "left_out": len(result.transfers) - len(shown),
        "link": [_LINKS.index(x.link) for x in shown],
        "stream": [x.stream for x in shown],
        "nbytes": [x.nbytes for x in shown],
        "start": [x.start_cycle for x in shown],
        "cycles": [x.cycles for x in shown],
    }


def _roofline(result: Result, numbers: dict[str, int]) -> dict[str, Any]:
    launches: dict[str, list[LaunchResult]] = defaultdict(list)
    for x in result.launches:
        launches[x.name].append(x)
    points = []
    for name in sorted(launches, key=lambda name: numbers[name])[:MAX_POINTS]:
        if (found := point(launches[name])) is not None and found.flops:
            points.append({"kernel": numbers[name], **vars(found)})
    return {"roofs": [vars(roof) for roof in roofs(result.machine)], "points": points}


def _known(value: Value) -> Value:
    """JSON has no NaN: what could not be projected is null, as is what has no denominator."""
    return None if value != value else value


def _rounded(value: Value) -> Value:
    return None if value is None or value != value else float(f"{value:.4g}")
