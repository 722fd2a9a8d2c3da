"""Columns that samplers look for in a profile, whatever the tool, its version or the chip called them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from simt.errors import PlanError
from simt.names import listed
from simt.profile import Profile

Floats = npt.NDArray[np.float64]
Unit = Literal["thread", "warp"]

# By Nsight Compute of today first, by that of 2018 last.
WARP_INSTRUCTIONS = (
    "smsp__inst_executed.sum",
    "sm__inst_executed.sum",
    "smsp__sass_inst_executed.sum",
    "smsp__inst_executed_sum",
)
THREAD_INSTRUCTIONS = (
    "smsp__thread_inst_executed.sum",
    "smsp__sass_thread_inst_executed.sum",
    "smsp__thread_inst_executed_pred_on.sum",
)
LANES = (
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    "smsp__thread_inst_executed_per_inst_executed",
)
# What the fit of a method is judged by: cycles as in the papers, else time.
TIMES = ("gpc__cycles_elapsed.avg", "gpc__cycles_elapsed.max", "gpu__time_duration.sum", "duration_ns")

_GRID, _BLOCK = ("grid_x", "grid_y", "grid_z"), ("block_x", "block_y", "block_z")
# Nsight Compute's launch metrics, from the columns that every profile has.
_LAUNCH: dict[str, tuple[str, ...]] = {
    "launch__grid_size": _GRID,
    "launch__block_size": _BLOCK,
    "launch__thread_count": (*_GRID, *_BLOCK),
    "launch__registers_per_thread": ("registers",),
    "launch__shared_mem_per_block": ("shared_bytes",),
}


def available(profile: Profile, names: Sequence[str]) -> str | None:
    """The first of `names` that the profile has, directly or by the launch's dimensions, for any launch."""
    for name in names:
        if profile.has(name):
            if profile.launches[name].null_count() < len(profile):
                return name
        elif name in _LAUNCH and all(profile.has(part) for part in _LAUNCH[name]):
            return name
    return None


def read(profile: Profile, name: str) -> Floats:
    """A column, or one of Nsight Compute's `launch__` metrics worked out from the launch's dimensions.

    Raises ProfileError where there is no such column.
    """
    if not profile.has(name) and name in _LAUNCH and all(profile.has(part) for part in _LAUNCH[name]):
        return profile.product(*_LAUNCH[name])
    return profile.column(name)


def complete(profile: Profile, name: str, values: Floats, method: str) -> Floats:
    """`values` if every launch has a finite one of 0 or more. Else a PlanError that names the first."""
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise PlanError(
            f"{profile.source}: {len(bad)} of {len(values)} launches have no usable `{name}`, the first is "
            f"launch {profile.launches['launch'][int(bad[0])]} with {values[bad[0]]:g}; {method} needs a "
            f"number of 0 or more for each"
        )
    return values


def instructions(profile: Profile, unit: Unit, method: str) -> tuple[str, Floats]:
    """Instructions of each launch in thread or warp instructions, and where they come from.

    Thread instructions are those that Nsight Compute counts, else warp instructions times the mean number of
    active lanes (as PKA's artifact converts them). Raises PlanError where the profile cannot tell.
    """
    if unit == "thread":
        counted = available(profile, THREAD_INSTRUCTIONS)
        if counted:
            return counted, complete(profile, counted, read(profile, counted), method)
    warps = available(profile, WARP_INSTRUCTIONS)
    lanes = available(profile, LANES) if unit == "thread" else None
    if warps is None or (unit == "thread" and lanes is None):
        wanted = WARP_INSTRUCTIONS[0]
        if unit == "thread":
            wanted = f"{THREAD_INSTRUCTIONS[0]}`, or `{wanted}` and `{LANES[0]}"
        raise PlanError(
            f"{profile.source}: {method} needs {unit} instructions: `{wanted}`. The profile's counters are "
            f"{listed(profile.counters)}. Nsight Compute measures them with --metrics"
        )
    values = complete(profile, warps, read(profile, warps), method)
    if lanes is None:
        return warps, values
    return f"{warps} × {lanes}", values * complete(profile, lanes, read(profile, lanes), method)


def times(profile: Profile, method: str) -> tuple[str, Floats]:
    """Cycles or time of each launch, and the column. Raises PlanError where the profile has neither."""
    for name in TIMES:
        if profile.has(name):
            values = profile.column(name)
            if (np.isfinite(values) & (values >= 0)).all():
                return name, values
    raise PlanError(
        f"{profile.source}: {method} needs the cycles or the time of every launch: one of {', '.join(TIMES)}"
    )
