"""Plans for other tools (Accel-Sim launch lists, Nsight Compute filters, tracer ranges), and their
results."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from simt import parameter_checks as check
from simt.errors import PlanError
from simt.files import require_regular
from simt.names import function_name
from simt.profile import Profile, kind_of
from simt.profile.profile import COPY
from simt.sampling.plan import Plan

_KERNEL_FILE = re.compile(r"kernel-(\d+)")


def kernelslist(
    plan: Plan,
    text: str,
    source: str = "kernelslist.g",
    first: int = 0,
    profile: Profile | None = None,
) -> str:
    """The lines of Accel-Sim's launch list that the plan needs: its kernels, and all lines other than
    kernels.

    text: the whole list. A kernel is identified by the number in its file's name, which the tracer counts
    from 1.
    first: id of the profile's launch that the tracer calls 1: 0 if ids count from 0, as in every profile that
        simt reads from a tool; 1 if ids are the tracer's own.
    profile: as read, including all launches: these are then counted as in `ordinals`, and `first` is ignored.
        Required if the profile has copies, which tracers do not count.

    Raises PlanError if a kernel's line has no number, or a chosen launch has no line.
    """
    check.integer("first", first, 0)
    numbers = ordinals(plan, profile)
    if profile is not None:
        first = 0
    launch_of = dict(zip((i - first + 1 for i in numbers), plan.launches["launch"], strict=True))
    kept, found = [], set()
    for number, line in enumerate(text.splitlines(), start=1):
        command = line.strip()
        if not command.startswith("kernel"):
            kept.append(line)
            continue
        match = _KERNEL_FILE.search(command)
        if match is None:
            raise PlanError(
                f"{source}: line {number}: {command[:80]!r} has no kernel number, expected kernel-N.traceg"
            )
        if int(match[1]) in launch_of:
            kept.append(line)
            found.add(int(match[1]))
    absent = sorted(launch_of.keys() - found)
    if absent:
        raise PlanError(
            f"{source}: no kernel-{absent[0]} for launch {launch_of[absent[0]]} of the plan "
            f"({len(absent)} of {len(launch_of)} are missing): is this the list of the whole program?"
        )
    return "\n".join(kept) + "\n"


def write_kernelslist(
    plan: Plan,
    full: str | os.PathLike[str],
    target: str | os.PathLike[str],
    first: int = 0,
    profile: Profile | None = None,
) -> Path:
    """Writes `kernelslist` for the list `full`; traces are found relative to the list, so both share a
    folder.

    Raises PlanError if `full` cannot be read or lacks a launch, or if `target` is in another folder.
    """
    from simt.files import write_text

    source, path = Path(full), Path(target)
    if path.resolve().parent != source.resolve().parent:
        raise PlanError(
            f"{path}: a launch list names its traces relative to itself; write it next to {source}"
        )
    if path.resolve() == source.resolve():
        raise PlanError(f"{path}: is the full list itself")
    try:
        require_regular(source)
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{source}: cannot be read: {error}") from error
    write_text(path, kernelslist(plan, text, os.fspath(full), first, profile))
    return path


def ordinals(plan: Plan, profile: Profile | None = None) -> list[int]:
    """For each chosen launch, the number of kernels that the program launched before it, as counted by Nsight
    Compute and tracers: every kernel, including communication, but no copies.

    profile: as read, including all launches. By default, the plan's own `position`.

    Raises PlanError if the profile lacks a chosen launch.
    """
    ids = plan.launches["launch"].to_numpy()
    if profile is None:
        return [int(i) for i in plan.launches["position"]]
    copies = np.array([kind_of(name) == COPY for name in profile.names])
    kernels = profile.launches["launch"].to_numpy()[~copies[profile.name_codes]]
    at = np.searchsorted(kernels, ids)
    absent = (at >= len(kernels)) | (kernels[np.minimum(at, len(kernels) - 1)] != ids)
    if absent.any():
        raise PlanError(f"{profile.source}: has no kernel launch {ids[absent][0]}, which the plan chose")
    return [int(i) for i in at]


def tracer_ranges(plan: Plan, profile: Profile | None = None) -> str:
    """The chosen launches in the format of Accel-Sim's NVBit tracer: `export DYNAMIC_KERNEL_RANGE="3-7 12"`.

    It counts kernels from 1, and ranges include both ends.
    """
    parts = []
    for begin, count in _runs(ordinals(plan, profile)):
        parts.append(f"{begin + 1}" if count == 1 else f"{begin + 1}-{begin + count}")
    return " ".join(parts)


def ncu_commands(
    plan: Plan,
    program: Sequence[str],
    *,
    metrics: Sequence[str] = (),
    profile: Profile | None = None,
    by: Literal["launch", "name"] = "launch",
    output: str = "plan",
) -> list[str]:
    """Command lines of Nsight Compute that profile the chosen launches; each writes `output`.N.ncu-rep.

    program: the program and its arguments. metrics: for `--metrics`; by default, Nsight Compute's default
    set.
    by: `launch`: a command for each run of consecutive launches, with `--launch-skip` and `--launch-count`.
        `name`: a command for each kernel, with `--kernel-id ::regex:NAME:N|N`, which counts invocations of
        that name; this runs the program fewer times and requires `profile`.

    Raises PlanError for a missing profile or program.
    """
    check.one_of("by", by, ("launch", "name"))
    if isinstance(program, str) or not program:
        raise check.refuse("program", program, "the program and its arguments, in a list")
    filters: list[list[str]]
    if by == "launch":
        filters = [
            ["--launch-skip", str(begin), "--launch-count", str(count)]
            for begin, count in _runs(ordinals(plan, profile))
        ]
    else:
        if profile is None:
            raise PlanError("by='name' counts launches of each name: give the profile")
        filters = [
            [
                "--kernel-name-base",
                "demangled",
                "--rename-kernels",
                "off",
                "--kernel-id",
                f"::regex:{name}:{nr}",
            ]
            for name, nr in _invocations(plan, profile)
        ]
    wanted = ["--metrics", ",".join(metrics)] if metrics else []
    return [
        shlex.join(["ncu", *some, *wanted, "--export", f"{output}.{i}", *program])
        for i, some in enumerate(filters, start=1)
    ]


def to_csv(plan: Plan) -> str:
    """A line per chosen launch: id, name, stratum, draws, weight, profiled time."""
    return plan.launches.write_csv()


def in_order(plan: Plan, measured: Profile) -> Profile:
    """A profile of just the chosen launches, with the plan's ids in place of the tool's.

    Nsight Compute and tracers number the measured launches from 0 or 1. Launches are matched in order; names
    must agree as far as both have the same form.

    Raises PlanError if the numbers of launches or a name differ.
    """
    if len(measured) != len(plan):
        raise PlanError(
            f"{measured.source}: {len(measured)} launches, expected the {len(plan)} of the plan in order"
        )
    for want, got in zip(plan.launches.iter_rows(named=True), measured.launches["name"], strict=True):
        if not same_kernel(want["name"], got):
            raise PlanError(
                f"{measured.source}: launch {want['launch']} should be {want['name']!r}, found {got!r}"
            )
    launches: pl.DataFrame = measured.launches.with_columns(plan.launches["launch"])
    return Profile(launches, measured.gpu, measured.source, measured.left_out, measured.warnings)


def same_kernel(a: str, b: str) -> bool:
    """Whether two tools' names may refer to the same kernel, judging by the function's name."""
    return function_name(a) == function_name(b)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Begin and length of each run of consecutive numbers, which are ascending."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    return runs


def _invocations(plan: Plan, profile: Profile) -> list[tuple[str, str]]:
    """For each chosen name, a regular expression for it and one for its chosen invocations (from 1)."""
    numbered: pl.DataFrame = profile.launches.select(
        "launch", pl.int_range(1, pl.len() + 1).over("name").alias("invocation")
    )
    rows = plan.launches.join(numbered, on="launch", how="left").sort("launch")
    if rows["invocation"].null_count():
        absent: Any = rows.filter(pl.col("invocation").is_null())["launch"][0]
        raise PlanError(f"{profile.source}: has no launch {absent}, which the plan chose")
    filters = []
    for (name,), group in rows.group_by("name", maintain_order=True):
        # A colon would end the name; `.` stands for it, and for characters special to a shell or a regex.
        pattern = "^" + re.sub(r"[^\w ]", ".", str(name)) + "$"
        filters.append((pattern, "|".join(f"^{i}$" for i in group["invocation"])))
    return filters
