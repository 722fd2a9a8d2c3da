"""Launches of a kernel that execute alike, as far as a profile of executed launches shows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simt.profile import Profile
from simt.profile.executed import VECTOR
from simt.sampling.columns import LANES, WARP_INSTRUCTIONS, Floats, complete, read
from simt.sampling.features import identical

_DISTANCE = 0.1
_AMOUNTS = (  # per warp instruction
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "simt__l2_requested_bytes",
    "simt__footprint_read_bytes",
    "simt__footprint_written_bytes",
)
_SECTOR_BYTES = 32


def alike(profile: Profile) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Group of each launch, and the groups' names. Launches of one kernel are in one group if they are near
    its first launch in what does not depend on their size: the projected basic-block vector, active lanes,
    and accesses per instruction.

    Raises ProfileError without these columns, PlanError if a launch has no value.
    """
    points = _points(profile)
    names: list[str] = []
    of_name = profile.name_codes
    same = identical([of_name, *points.T])
    group = np.full(len(same), -1, np.int64)
    for code, name in enumerate(profile.names):
        left = np.flatnonzero(of_name[same.first] == code)
        number = 0
        while len(left):
            near = np.abs(points[same.first[left]] - points[same.first[left[0]]]).max(axis=1) <= _DISTANCE
            group[left[near]] = len(names)
            left = left[~near]
            number += 1
            names.append(name if number == 1 else f"{name} ({number})")
    return group[same.code], names


def _points(profile: Profile) -> Floats:
    """[launches, features], each of which differs by about 1 between very different launches."""
    instructions = np.maximum(_column(profile, WARP_INSTRUCTIONS[0]), 1.0)
    columns = [_column(profile, name, signed=True) for name in VECTOR]
    columns.append(_column(profile, LANES[1]) / 32)
    for name in _AMOUNTS:
        amount = _column(profile, name) / instructions
        columns.append(np.log2(1 + amount / (_SECTOR_BYTES if name.startswith("simt__") else 1)))
    return np.stack(columns, axis=1)


def _column(profile: Profile, name: str, signed: bool = False) -> Floats:
    values = read(profile, name)
    complete(profile, name, np.abs(values) if signed else values, 'group="features"')
    return values
