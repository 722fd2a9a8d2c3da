"""A folder of profiles: one for each GPU or process of a program, such as `rank0.json`, `rank1.json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from simt.errors import ProfileError
from simt.names import listed
from simt.profile.profile import LeftOut, Profile

# The first kind of which there are files is read; a folder often has other tables beside them.
_KINDS = (
    "*.json", "*.json.gz", "*.json.zst", "*.sqlite", "*.db", "*kernel_trace.csv", "*counter_collection.csv",
    "*.csv", "*.csv.gz", "*.nsys-rep", "*.ncu-rep",
)  # fmt: skip


def profiles_in(folder: Path) -> list[Path]:
    """The profiles directly in a folder, of one kind, in the order of the numbers in their names."""
    for kind in _KINDS:
        found = [path for path in folder.glob(kind) if path.is_file() and not path.name.startswith(".")]
        if found:
            return sorted(found, key=lambda path: _numbered(path.name))
    return []


def _numbered(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts `rank2` before `rank10`."""
    parts = re.findall(r"\d{1,18}|\D+|\d+", name)
    return [(0, int(p), "") if p.isdecimal() and len(p) < 19 else (1, 0, p) for p in parts]


def read_folder(folder: Path, paths: Sequence[Path], read: Callable[[Path], Profile]) -> Profile:
    """The launches of several profiles, one profile after another, as a program on several GPUs.

    Launches are numbered through, and so are devices: those of the first profile come first. Times are
    relative to the first launch of each profile, as clocks of different files need not agree.

    Raises ProfileError as `read` does, or if the profiles cannot be one.
    """
    profiles = [read(path) for path in paths]
    frames: list[pl.DataFrame] = []
    launches = devices = 0
    for profile in profiles:
        frame = profile.launches.with_columns(
            pl.col("name").cast(pl.String), pl.int_range(launches, launches + len(profile)).alias("launch")
        )
        frame = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
        if "position" in frame.columns:
            frame = frame.drop("position")
        own = profile.launches["device"] if profile.has("device") else pl.Series([0] * len(profile))
        there = own.fill_null(-1).unique().sort().to_list() or [0]
        number = {device: devices + i for i, device in enumerate(there)}
        frame = frame.with_columns(
            own.fill_null(-1).replace_strict(number, return_dtype=pl.Int32).alias("device")
        )
        frames.append(frame)
        launches += len(profile)
        devices += len(there)
    try:
        frame = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise ProfileError(f"{folder}: its profiles have columns of different kinds: {error}") from error
    gpus = sorted({profile.gpu for profile in profiles if profile.gpu is not None})
    warnings = list(dict.fromkeys(line for profile in profiles for line in profile.warnings))
    if len(gpus) > 1:
        warnings.append(f"several kinds of GPU: {', '.join(gpus)}")
    warnings.append(
        f"{len(paths)} profiles ({listed([path.name for path in paths], 4)}) are read one after another; the "
        f"column `device` tells their {devices} GPUs apart"
    )
    ns = float(frame["duration_ns"].sum()) if "duration_ns" in frame.columns else float("nan")
    return Profile(
        frame,
        gpus[0] if len(gpus) == 1 else None,
        str(folder),
        _left_out(profiles, ns),
        tuple(warnings),
        any(profile.expected for profile in profiles),
    )


def _left_out(profiles: Sequence[Profile], kept_ns: float) -> tuple[LeftOut, ...]:
    entries = [entry for profile in profiles for entry in profile.left_out]
    total = kept_ns + sum(entry.duration_ns for entry in entries)
    summed: dict[str, LeftOut] = {}
    for entry in entries:
        before = summed.get(entry.kind, LeftOut(entry.kind, 0, 0.0, 0.0))
        ns = before.duration_ns + entry.duration_ns
        share = ns / total if total else 0.0
        summed[entry.kind] = LeftOut(entry.kind, before.launches + entry.launches, ns, share)
    return tuple(summed.values())
