"""simt's own saved Results as profiles, as if measured on the simulated GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from simt.errors import ProfileError
from simt.profile.profile import COLUMNS, Profile

if TYPE_CHECKING:
    from simt.result import Result


def read_result(path: Path, process: int | None) -> Profile:
    """The launches of a Result: counters under their names, times from cycles and clock.

    The launch id is the launch's position among the kernels of the simulated input, from 0.
    Raises ResultError or ProfileError.
    """
    from simt.result import Result

    result = Result.load(path)
    if process is not None:
        raise ProfileError(f"{path}: a Result has no processes")
    return profile_of(result, str(path))


def profile_of(result: Result, source: str = "result") -> Profile:
    """The same of a Result that is there. source: its name in messages. Raises ProfileError."""
    rows = []
    for launch in result.launches:
        clock = launch.clock_khz
        row: dict[str, object] = {
            "launch": launch.index,
            "name": launch.name,
            **dict(zip(("grid_x", "grid_y", "grid_z"), launch.grid, strict=True)),
            **dict(zip(("block_x", "block_y", "block_z"), launch.block, strict=True)),
            "registers": launch.registers,
            "shared_bytes": launch.shared_bytes,
            "stream": launch.stream - (1 << 64) if launch.stream >= 1 << 63 else launch.stream,
            "start_ns": 1e6 * launch.start_cycle / clock if clock else None,
            "duration_ns": 1e6 * launch.cycles / clock if clock else None,
        }
        row |= {
            name: None if v is None else float(v)
            for name, v in launch.counters.items()
            if name not in COLUMNS
        }
        rows.append(row)
    if not rows:
        raise ProfileError(f"{source}: a Result without launches")
    warnings = list(result.warnings)
    if result.status != "complete":
        warnings.append(
            f"the Result is not complete ({result.status}): {len(result.unfinished)} launches missing"
        )
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Profile(frame, result.machine.name, source, (), tuple(warnings))
