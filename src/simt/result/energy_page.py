"""What the page shows of energy and power, of runs with `power`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simt.result.launch import LaunchResult

if TYPE_CHECKING:
    from simt.power import Energy
    from simt.result.result import Result

# Components that share a colour.
GROUPS = {
    "SM pipelines": (
        "front end",
        "register file",
        "integer units",
        "FP32 units",
        "FP16 units",
        "FP64 units",
        "special-function units",
        "tensor cores",
        "load/store units",
        "texture units",
        "control",
    ),
    "on-chip memory": ("shared memory", "L1", "constant caches", "network", "L2"),
    "DRAM": ("DRAM",),
    "SMs, leakage and clock": ("active SMs", "idle SMs"),
    "chip and board": ("chip", "board"),
}


def of_program(result: Result) -> dict[str, Any] | None:
    """Energy of the program by component and class; None for a run without `power`."""
    if result.energies is None or not result.launches:
        return None
    found = result.energy
    peaks = [peak for x in result.launches if (peak := _peak(x)) is not None]
    return {
        **_facts(found),
        "peak": max(peaks, default=None),
        "energies": found.energies.name,
        "groups": {name: list(parts) for name, parts in GROUPS.items()},
        "projected": None if found.projected is None else vars(found.projected),
        "idle": found.idle_seconds,
    }


def power_by_group(x: LaunchResult) -> NDArray[np.float64] | None:
    """W by interval of the timeline and group; None without a timeline, or for a run without `power`."""
    from simt.power import power_over_time

    if x.energies is None or (found := power_over_time(x.energy)) is None:
        return None
    rows = [sum(found.joules[part] for part in parts) / found.seconds for parts in GROUPS.values()]
    return np.stack([np.asarray(row, float) for row in rows], axis=1)


def of_launch(x: LaunchResult, points: int, rows: list[int]) -> dict[str, Any] | None:
    """The same of a launch, with its power over time by group. rows: positions in `pc` of the lines shown."""
    if x.energies is None:
        return None
    from simt.power import power_over_time

    timed = power_over_time(x.energy, points)
    return {
        **_facts(x.energy),
        "lines": [float(f"{x.energy.by_instruction[i]:.4g}") for i in rows],
        "timeline": timed
        and {
            "start": (timed.start - x.start_cycle).tolist(),
            "end": (timed.end - x.start_cycle).tolist(),
            "watts": {
                name: np.round(sum(timed.joules[part] for part in parts) / timed.seconds, 2).tolist()
                for name, parts in GROUPS.items()
            },
        },
    }


def _facts(energy: Energy) -> dict[str, Any]:
    low, high = energy.interval
    classes = sorted(energy.classes.items(), key=lambda row: (-row[1], row[0]))
    return {
        "joules": _rounded(energy.joules),
        "low": _rounded(low),
        "high": _rounded(high),
        "watts": _rounded(energy.watts),
        "seconds": energy.seconds,
        "components": {name: _rounded(j) for name, j in energy.components.items() if j},
        "classes": {name: _rounded(j) for name, j in classes[:12] if j},
    }


def _peak(x: LaunchResult) -> float | None:
    from simt.power import power_over_time

    found = power_over_time(x.energy)
    return None if found is None else _rounded(found.peak)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
