"""Extrapolation of the counters of a partly simulated launch, by the blocks that are missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simt.result import LaunchResult

from ..code import BlockTable
from ..controller import LaunchView
from ..projection import Projection

if TYPE_CHECKING:
    from simt.engine_types import DecodedInstruction

_GLOBAL = ("global", "generic", "texture")
_REQUESTS = {
    "memory": ("global_load_requests", "global_store_requests", "atomic_requests"),
    "loads": ("global_load_requests",),
    "stores": ("global_store_requests",),
    "shared": ("shared_loads", "shared_stores"),
    "local": ("local_requests",),
    "atomics": ("atomic_requests",),
}


def kinds_of_work(
    instructions: Sequence[DecodedInstruction], blocks: BlockTable
) -> dict[str, npt.NDArray[np.float64]]:
    """Warp instructions of each kind of work in one execution of each block."""
    kinds = {
        kind: np.zeros(len(blocks))
        for kind in ("instructions", "memory", "loads", "stores", "shared", "local", "atomics")
    }
    for b, (first, length) in enumerate(zip(blocks.first.tolist(), blocks.length.tolist(), strict=True)):
        for i in instructions[first : first + length]:
            operation, space = i["operation"].name.lower(), i["space"].name.lower()
            kinds["instructions"][b] += 1
            kinds["shared"][b] += space == "shared"
            kinds["local"][b] += space == "local"
            if space in _GLOBAL:
                kinds["memory"][b] += 1
                kinds["loads"][b] += operation in ("load", "async_copy", "bulk_load")
                kinds["stores"][b] += operation in ("store", "bulk_store")
                kinds["atomics"][b] += operation in ("atomic", "reduction")
    return kinds


def kind_of_counter(name: str) -> str:
    """The kind of work that a counter is proportional to."""
    if name.startswith("shared_"):
        return "shared"
    if name.startswith("global_load"):
        return "loads"
    if name.startswith("global_store"):
        return "stores"
    if name.startswith("local_"):
        return "local"
    if name.startswith("atomic_"):
        return "atomics"
    if name.startswith(("l1", "l2", "dram_", "network_")):
        return "memory"
    if name == "sm_active_cycles" or name.startswith("stalls."):
        return "cycles"
    return "instructions"


def requests_by_kind(counted: Mapping[str, int]) -> dict[str, int]:
    """Warp instructions of some kinds that have been issued: those with an active lane make one request."""
    return {kind: sum(counted.get(name, 0) for name in names) for kind, names in _REQUESTS.items()}


def extrapolate(
    counted: Mapping[str, int],
    simulated: Mapping[str, float],
    total: Mapping[str, float],
    cycles: int,
    simulated_cycles: int,
    exact: Mapping[str, float],
) -> Projection:
    """Totals from the counts in the simulated part.

    simulated, total: work of each kind (see `kinds_of_work`) in the simulated part and in the whole launch.
        cycles: of the whole launch. simulated_cycles: until the end of the simulated part. exact: known
        totals.
    """
    factors = {
        kind: total[kind] / simulated[kind] if simulated[kind] else (math.nan if total[kind] else 1.0)
        for kind in total
    }
    factors["cycles"] = cycles / simulated_cycles if simulated_cycles else math.nan
    counters: dict[str, float] = {}
    projected, unprojected = {"cycles": "predicted"}, {}
    for name, value in counted.items():
        kind = kind_of_counter(name)
        if name in exact:
            counters[name] = exact[name]
            projected[name] = "exact: known of the launch"
        elif math.isfinite(factors[kind]):
            counters[name] = value * factors[kind]
            projected[name] = f"extrapolated by block type: {kind} * {factors[kind]:.4g}"
        else:
            counters[name] = math.nan
            unprojected[name] = "the simulated part contains no work of its kind"
    return Projection(cycles, counters, projected, unprojected)


def exact_totals(launch: LaunchView) -> dict[str, float]:
    """Counters of the whole launch whose exact values are known."""
    known: dict[str, float] = {
        "ctas": launch.cta_count,
        "ctas_finished": launch.cta_count,
        "warps": launch.cta_count * launch.warps_per_cta,
    }
    if launch.warp_instructions is not None:
        known["warp_instructions"] = known["finished_instructions"] = launch.warp_instructions
    if launch.thread_instructions is not None:
        known["thread_instructions"] = launch.thread_instructions
    return known


def totals(result: LaunchResult) -> dict[str, float]:
    """A launch's counters, named as in Interval.counters."""
    totals: dict[str, float] = dict(result.engine)
    for level, table in (("l1", result.l1), ("l2", result.l2)):
        for kind, row in table.items():
            totals |= {f"{level}.{kind}.{outcome}": n for outcome, n in row.items()}
    totals |= {f"stalls.{reason}": sum(row) for reason, row in result.stalls.items()}
    totals |= {f"warp_stalls.{reason}": n for reason, n in result.warp_stalls.items()}
    return totals
