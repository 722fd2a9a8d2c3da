"""Correlates simulated with measured values, kernel by kernel and counter by counter.

The method and the pairs of counters follow Accel-Sim (ISCA'20, section II-D), and so do the measures (section
V): mean absolute error if the measured value is never zero, NRMSE if it can be, and Pearson's correlation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from simt.errors import ProfileError
from simt.files import not_found
from simt.names import function_name, listed
from simt.profile import Profile, read_profile
from simt.profile.csv_table import find_header, numbers, read_text
from simt.profile.profile import COLUMNS
from simt.profile.source import ProfileSource
from simt.result import Result

CYCLES = "gpc__cycles_elapsed.max"
TIME = "gpu__time_duration.sum"
ENERGY, POWER = "simt__energy.sum", "simt__power.avg"
PAIR_COLUMNS = {
    "suite": pl.String,
    "program": pl.String,
    "launch": pl.UInt64,  # of the simulated profile; null for a sum over a program's launches
    "name": pl.String,  # the kernel, or the program
    "counter": pl.String,
    "simulated": pl.Float64,
    "measured": pl.Float64,  # mean over the measured runs
    "measured_low": pl.Float64,  # minimum and maximum of them
    "measured_high": pl.Float64,
    "stall": pl.String,  # what the simulated kernel's warps waited for most
}
# Counters under another name that mean the same thing, in the order in which they are looked for.
ALIASES: dict[str, tuple[str, ...]] = {
    CYCLES: ("gpc__cycles_elapsed.avg", "sm__cycles_elapsed.max", "sm__cycles_elapsed.avg"),
    "smsp__inst_executed.sum": ("sm__inst_executed.sum", "smsp__inst_issued.sum", "sm__inst_issued.sum"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum.sum",),
    "lts__t_sectors_srcunit_tex_op_read.sum": ("lts__t_sectors_op_read.sum",),
    "lts__t_sectors_srcunit_tex_op_write.sum": ("lts__t_sectors_op_write.sum",),
    "lts__t_sectors_srcunit_tex_op_read.sum.per_second": ("lts__t_sectors_op_read.sum.per_second",),
    "sm__warps_active.avg.pct_of_peak_sustained_active": (
        "sm__warps_active.avg.pct_of_peak_sustained_elapsed",
    ),
    # Columns of nvidia-smi and NVML's users, and of published tables.
    POWER: (
        "power.draw.instant [W]",
        "power.draw.average [W]",
        "power.draw [W]",
        "power.draw",
        "power_w",
        "watts",
    ),
    ENERGY: ("energy_j", "joules"),
}
# About the launch, equal by construction once launches are paired.
_GIVEN = ("launch__",)
_SM_CYCLES = "elapsed_cycles_sm"  # nvprof's event: cycles summed over SMs
_STALL = "smsp__average_warps_issue_stalled_", "simt__average_warps_issue_stalled_"


@dataclass(frozen=True)
class MeasuredProgram:
    """The simulated and the measured values of one program.

    measured: one profile per run; several runs give a mean and a range.
    sms: SMs of the measured GPU, for events that are sums over SMs.
    """

    name: str
    simulated: Profile
    measured: tuple[Profile, ...]
    suite: str = ""
    sms: int | None = None


@dataclass(frozen=True)
class Correlation:
    """Pairs of simulated and measured values.

    kernels, programs: columns PAIR_COLUMNS; one row per launch and counter, and one per program and counter.
    unpaired: launches on one side only, one line for each program that has any.
    """

    kernels: pl.DataFrame
    programs: pl.DataFrame
    unpaired: tuple[str, ...] = ()

    @property
    def counters(self) -> list[str]:
        """Counters that both sides have, cycles first."""
        names: list[str] = self.kernels["counter"].unique(maintain_order=True).to_list()
        return names

    def only(self, counters: Sequence[str]) -> Correlation:
        """The pairs of these counters only. Raises ProfileError for one that is not on both sides."""
        for name in counters:
            if name not in self.counters:
                raise ProfileError(f"no {name} on both sides; there are {listed(self.counters)}")
        keep = pl.col("counter").is_in(list(counters))
        return Correlation(self.kernels.filter(keep), self.programs.filter(keep), self.unpaired)

    def agreement(self, level: str = "kernels", by_suite: bool = False) -> pl.DataFrame:
        """How well the two sides agree: one row per counter (and suite).

        level: "kernels" or "programs".

        The columns, over the n pairs of simulated s and measured m, are

        - mae: mean of |s - m| / m over the pairs with m > 0 (Accel-Sim, ISCA'20, section V);
        - nrmse: root of the mean of (s - m)^2, divided by the mean of m; defined even if some m are zero;
        - pearson, spearman: correlation of the values, and of their ranks; null for fewer than three pairs or
          if one side is constant;
        - bias: geometric mean of s / m over the pairs with both above 0, minus 1;
        - median, p90: the absolute error that half and 90 % of the pairs do not exceed; worst: the largest;
        - within_10, within_20, within_25: share of the pairs with an absolute error of at most 10, 20, 25 %.
        """
        pairs = self.kernels if level == "kernels" else self.programs
        keys = ["suite", "counter"] if by_suite else ["counter"]
        rows = []
        for key, group in pairs.group_by(keys, maintain_order=True):
            s, m = group["simulated"].to_numpy(), group["measured"].to_numpy()
            rows.append({**dict(zip(keys, key, strict=True)), **measures(s, m)})
        schema = dict.fromkeys(keys, pl.String) | MEASURES
        return pl.DataFrame(rows, schema=schema)

    def outliers(self, counter: str = CYCLES, most: int = 10) -> pl.DataFrame:
        """The kernels with the largest absolute error, largest first."""
        return (
            self.kernels.filter((pl.col("counter") == counter) & (pl.col("measured") > 0))
            .with_columns(error=pl.col("simulated") / pl.col("measured") - 1)
            .sort(pl.col("error").abs(), descending=True, maintain_order=True)
            .head(most)
        )

    def against(self, before: Correlation, counter: str = CYCLES) -> pl.DataFrame:
        """The same kernels under two versions of the model: error before and now, largest change first.

        Raises ProfileError if they have no kernel in common.
        """
        keys = ["suite", "program", "launch", "name"]

        def errors(of: Correlation, name: str) -> pl.DataFrame:
            rows = of.kernels.filter((pl.col("counter") == counter) & (pl.col("measured") > 0))
            error = (pl.col("simulated") / pl.col("measured") - 1).alias(name)
            return rows.select(*keys, error)

        both = errors(self, "now").join(errors(before, "before"), on=keys, maintain_order="left")
        if not len(both):
            raise ProfileError(f"the two versions have no kernel with {counter} in common")
        change = pl.col("now").abs() - pl.col("before").abs()
        return both.select(*keys, "before", "now", change.alias("change")).sort(
            pl.col("change").abs(), descending=True, maintain_order=True
        )


MEASURES = {
    "n": pl.Int64,
    "mae": pl.Float64,
    "nrmse": pl.Float64,
    "pearson": pl.Float64,
    "spearman": pl.Float64,
    "bias": pl.Float64,
    "median": pl.Float64,
    "p90": pl.Float64,
    "worst": pl.Float64,
    "within_10": pl.Float64,
    "within_20": pl.Float64,
    "within_25": pl.Float64,
}


def measures(s: npt.NDArray[np.float64], m: npt.NDArray[np.float64]) -> dict[str, float | int | None]:
    """The measures of `Correlation.agreement` for simulated `s` and measured `m`."""
    positive = m > 0
    error = np.abs(s[positive] - m[positive]) / m[positive]
    both = positive & (s > 0)
    some = len(error) > 0
    mean = float(m.mean()) if len(m) else 0.0
    return {
        "n": len(m),
        "mae": float(error.mean()) if some else None,
        "nrmse": float(np.sqrt(((s - m) ** 2).mean()) / mean) if mean > 0 else None,
        "pearson": _pearson(s, m),
        "spearman": _pearson(pl.Series(s).rank().to_numpy(), pl.Series(m).rank().to_numpy()),
        "bias": float(np.exp(np.log(s[both] / m[both]).mean()) - 1) if both.any() else None,
        "median": float(np.median(error)) if some else None,
        "p90": float(np.quantile(error, 0.9)) if some else None,
        "worst": float(error.max()) if some else None,
        "within_10": float((error <= 0.10).mean()) if some else None,
        "within_20": float((error <= 0.20).mean()) if some else None,
        "within_25": float((error <= 0.25).mean()) if some else None,
    }


def _pearson(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float | None:
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def correlate(programs: Iterable[MeasuredProgram], clock_mhz: float | None = None) -> Correlation:
    """Pairs the launches of each program, and every counter that both sides have.

    A simulated and a measured launch form a pair if they are the same occurrence of the same function with
    the same grid and CTA size, as far as both sides know these.

    clock_mhz: the core clock during the measurement, to convert times to cycles; by default the simulated
        one.

    Raises ProfileError if a program has no pair, or if no counter is on both sides.
    """
    kernels, totals, unpaired = [], [], []
    for program in programs:
        rows, left = _pair(program, clock_mhz)
        kernels.append(rows)
        unpaired += left
        additive = rows.filter(pl.col("counter").str.ends_with(".sum") | pl.col("counter").is_in([CYCLES]))
        totals.append(
            additive.group_by("suite", "program", "counter", maintain_order=True).agg(
                pl.lit(None, pl.UInt64).alias("launch"),
                pl.lit(program.name).alias("name"),
                pl.col("simulated", "measured", "measured_low", "measured_high").sum(),
                pl.lit(None, pl.String).alias("stall"),
            )
        )
    if not kernels:
        raise ProfileError("no program to correlate")
    pairs = pl.concat(kernels)
    first = pl.when(pl.col("counter") == CYCLES).then(0).when(pl.col("counter") == TIME).then(1).otherwise(2)
    pairs = pairs.sort(first, maintain_order=True)
    return Correlation(pairs, pl.concat(totals).select(PAIR_COLUMNS.keys()), tuple(unpaired))


def _keys(profile: Profile, sizes: Sequence[str]) -> list[tuple[object, ...]]:
    """For each launch: function, sizes, and the number of earlier launches with the same ones."""
    short = {name: function_name(name) for name in profile.names}
    frame = profile.launches
    rows = zip(*[frame[c].cast(pl.String).to_list() for c in ("name", *sizes)], strict=True)
    seen: dict[tuple[object, ...], int] = {}
    keys = []
    for name, *size in rows:
        key = (short[name], *size)
        seen[key] = seen.get(key, -1) + 1
        keys.append((*key, seen[key]))
    return keys


def _pair(program: MeasuredProgram, clock_mhz: float | None) -> tuple[pl.DataFrame, list[str]]:
    simulated = program.simulated
    if not program.measured:
        raise ProfileError(f"{program.name}: nothing was measured")
    known = [c for c in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")]
    sizes = [c for c in known if all(p.has(c) for p in (simulated, *program.measured))]
    ours = _keys(simulated, sizes)
    at = {key: row for row, key in enumerate(ours)}
    found: dict[str, dict[int, list[float]]] = {}
    unpaired, paired = [], set()
    for run in program.measured:
        theirs = _keys(run, sizes)
        rows = [(at[key], row) for row, key in enumerate(theirs) if key in at]
        paired |= {row for row, _ in rows}
        if not rows:
            raise ProfileError(
                f"{run.source}: no launch pairs with {simulated.source}: measured "
                f"{listed(sorted({str(k[0]) for k in theirs}), 4)}; simulated "
                f"{listed(sorted({str(k[0]) for k in ours}), 4)}"
            )
        if len(rows) < len(theirs):
            unpaired.append(
                f"{program.name}: {len(theirs) - len(rows):,} of {len(theirs):,} measured launches were not "
                f"simulated ({run.source})"
            )
        for counter in _simulated_counters(simulated):
            values = _measured(counter, run, simulated, program.sms, clock_mhz)
            if values is None:
                continue
            for row, theirs_row in rows:
                if not math.isnan(values[theirs_row]):
                    found.setdefault(counter, {}).setdefault(row, []).append(float(values[theirs_row]))
    if len(paired) < len(ours):
        unpaired.append(
            f"{program.name}: {len(ours) - len(paired):,} of {len(ours):,} simulated launches were not "
            f"measured"
        )
    stalls = _stalls(simulated)
    names = simulated.launches["name"].cast(pl.String).to_list()
    ids = simulated.launches["launch"].to_list()
    out = []
    for counter, by_row in found.items():
        values = _column(simulated, counter)
        for row, measured in sorted(by_row.items()):
            if math.isnan(values[row]):
                continue
            out.append(
                (program.suite, program.name, ids[row], names[row], counter, float(values[row]),
                 math.fsum(measured) / len(measured), min(measured), max(measured), stalls[row])
            )  # fmt: skip
    if not out:
        raise ProfileError(
            f"{program.name}: no counter on both sides: simulated "
            f"{listed(_simulated_counters(simulated), 6)}; measured "
            f"{listed(program.measured[0].counters, 6)}"
        )
    return pl.DataFrame(out, schema=PAIR_COLUMNS, orient="row"), unpaired


def _simulated_counters(profile: Profile) -> list[str]:
    names = [name for name in profile.counters if not name.startswith(_GIVEN)]
    if profile.has("duration_ns") and TIME not in names:
        names.insert(0, TIME)
    return names


def _column(profile: Profile, counter: str) -> npt.NDArray[np.float64]:
    if counter == TIME and not profile.has(TIME):
        counter = "duration_ns"
    return profile.column(counter)


def _measured(
    counter: str, run: Profile, simulated: Profile, sms: int | None, clock_mhz: float | None
) -> npt.NDArray[np.float64] | None:
    """The measured values of a simulated counter; None if there are none."""
    for name in (counter, *ALIASES.get(counter, ())):
        if run.has(name) and name not in COLUMNS:
            return run.column(name)
    if counter == TIME and run.has("duration_ns"):
        return run.column("duration_ns")
    if counter == CYCLES:
        if run.has(_SM_CYCLES) and sms:
            return run.column(_SM_CYCLES) / sms
        if run.has("duration_ns"):
            clock = clock_mhz or _clock(simulated)
            return run.column("duration_ns") * clock / 1e3 if clock else None
    return None


def _clock(simulated: Profile) -> float | None:
    """MHz, from simulated cycles and times."""
    if not (simulated.has(CYCLES) and simulated.has("duration_ns")):
        return None
    cycles, ns = simulated.column(CYCLES), simulated.column("duration_ns")
    total = float(np.nansum(ns))
    return 1e3 * float(np.nansum(cycles)) / total if total else None


def _stalls(profile: Profile) -> list[str | None]:
    """For each launch, the main stall reason of its warps and that reason's share of all stalls."""
    names = [name for name in profile.counters if name.startswith(_STALL) and "selected" not in name]
    if not names:
        return [None] * len(profile)
    values = np.nan_to_num(np.array([profile.column(name) for name in names]))
    short = [name.split("_stalled_")[1].split("_per_")[0] for name in names]
    totals, largest = values.sum(axis=0), values.argmax(axis=0)
    return [
        f"{short[k]} {100 * values[k, i] / totals[i]:.0f} %" if totals[i] > 0 else None
        for i, k in enumerate(largest)
    ]


def read_programs(path: str | os.PathLike[str]) -> dict[tuple[str, str], Profile] | None:
    """Reads a table of whole programs, such as a published one, as a Profile of one row by (suite, program).

    The CSV has a column `program`, optionally `suite`, and counters; `cycles` stands for
    gpc__cycles_elapsed.max. Returns None if the file is not such a table. Raises ProfileError for a cell that
    is not a number.
    """
    source = ProfileSource(path)
    header = find_header(source, lambda names: "program" in names)
    if header is None:
        return None
    frame = read_text(source, header).rename({"cycles": CYCLES}, strict=False)
    suites = frame["suite"] if "suite" in frame.columns else pl.Series([""] * len(frame))
    about = ("program", "suite")
    columns = [numbers(frame[name], source.name) for name in frame.columns if name not in about]
    values = pl.DataFrame([column for column in columns if column.null_count() < len(column)])
    if not len(values):
        raise ProfileError(f"{source.name}: a table of programs without a number")
    found: dict[tuple[str, str], Profile] = {}
    for row, (suite, program) in enumerate(zip(suites, frame["program"], strict=True)):
        if not program:
            raise ProfileError(f"{source.name}: row {row + 1}: no program")
        if (suite or "", program) in found:
            raise ProfileError(f"{source.name}: row {row + 1}: {program!r} occurs twice")
        table = values[row].with_columns(launch=pl.lit(0), name=pl.lit(program))
        found[suite or "", program] = Profile(table, None, source.name)
    return found


def read_power_log(path: Path, program: str) -> Profile | None:
    """The mean power of a program in a log of `nvidia-smi --query-gpu=power.draw,utilization.gpu --format=csv
    --loop-ms=20`: of the samples in which the GPU was in use, if the log has its utilisation. Returns None if
    the file is no such log. Raises ProfileError.
    """
    source = ProfileSource(path)
    header = find_header(source, lambda names: any(name.startswith("power.draw") for name in names))
    if header is None:
        return None
    frame = read_text(source, header)
    if "program" in frame.columns or "Kernel Name" in frame.columns:
        return None

    def column(prefix: str) -> pl.Series | None:
        names = [name for name in frame.columns if name.startswith(prefix)]
        text = frame[names[0]].str.strip_chars(" W%") if names else None
        return None if text is None else text.cast(pl.Float64, strict=False)

    watts, used = column("power.draw"), column("utilization.gpu")
    assert watts is not None
    if used is not None and (used > 0).any():
        watts = watts.filter(used > 0)
    mean = watts.mean()
    if not isinstance(mean, float):
        raise ProfileError(f"{source.name}: no power in {frame.columns[0]}: expected numbers of watts")
    row = pl.DataFrame({"launch": [0], "name": [program], POWER: [mean]})
    return Profile(row, None, source.name)


def _whole(profile: Profile, name: str) -> Profile:
    """A program as one launch: the sums of its additive counters, and its average power."""
    additive = [c for c in profile.counters if c.endswith(".sum") or c == CYCLES]
    if profile.has("duration_ns"):
        additive.append("duration_ns")
    sums = profile.launches.select(pl.col(additive).sum())
    if profile.has(ENERGY) and profile.has("duration_ns"):
        sums = sums.with_columns((1e9 * pl.col(ENERGY) / pl.col("duration_ns")).alias(POWER))
    return Profile(sums.with_columns(launch=pl.lit(0), name=pl.lit(name)), profile.gpu, profile.source)


def find_programs(
    results: str | os.PathLike[str], measured: str | os.PathLike[str], sms: int | None = None
) -> list[MeasuredProgram]:
    """The programs of two files, or of two folders in which they have the same names.

    Either side may also be a table of whole programs (`read_programs`), such as a published one.

    A folder of Results holds one saved Result (folder or `.json`) or other profile per program. The folder of
    measurements holds, for each program, one profile, or a folder with one profile per run. An intermediate
    folder is a suite. A log of nvidia-smi gives the power of the whole program (`read_power_log`).

    Raises ProfileError if there is nothing to pair, ResultError for a damaged Result.
    """
    ours, theirs = Path(results), Path(measured)
    for path in (ours, theirs):
        if why := not_found(path, "a file or a directory"):
            raise ProfileError(f"{path}: {why}")
    published = read_programs(theirs) if theirs.is_file() else None
    simulated = read_programs(ours) if ours.is_file() else None
    if published is not None:
        if simulated is None:
            simulated = {
                (suite, _name(path)): _whole(read_profile(path).kernels(), _name(path))
                for suite, path in _results(ours)
            }
        both = [key for key in simulated if key in published]
        if not both:
            raise ProfileError(
                f"{theirs}: contains none of the simulated programs: measured "
                f"{listed([name for _, name in published], 6)}; simulated "
                f"{listed([name for _, name in simulated], 6)}"
            )
        return [MeasuredProgram(key[1], simulated[key], (published[key],), key[0], sms) for key in both]
    if _is_profile(ours):
        runs = [theirs] if not theirs.is_dir() or _is_profile(theirs) else _runs(theirs)
        return _programs(ours.stem, "", ours, runs, sms)
    programs = [
        program
        for suite, path in _results(ours)
        for program in _matching(path, suite, theirs / suite if suite else theirs, sms)
    ]
    if not programs:
        have = sorted(p.name for p in theirs.iterdir()) if theirs.is_dir() else [theirs.name]
        raise ProfileError(
            f"{ours}: no Result has a measurement of the same name in {theirs}, which has {listed(have, 6)}"
        )
    return programs


def _results(folder: Path) -> list[tuple[str, Path]]:
    """Suite and path of each Result in a folder; the path itself if it is a Result."""
    if _is_profile(folder):
        return [("", folder)]
    found = []
    for path in sorted(folder.iterdir()):
        if _is_profile(path):
            found.append(("", path))
        elif path.is_dir():
            found += [(path.name, inner) for inner in sorted(path.iterdir()) if _is_profile(inner)]
    return found


def _is_profile(path: Path) -> bool:
    return path.is_file() or (path / "result.json").is_file()


def _name(path: Path) -> str:
    """A program's name: the file name without its suffixes."""
    return path.name if path.is_dir() else path.name.split(".")[0]


def _runs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _is_profile(path))


def _matching(result: Path, suite: str, measured: Path, sms: int | None) -> list[MeasuredProgram]:
    if not measured.is_dir():
        return []
    name = _name(result)
    found = [path for path in sorted(measured.iterdir()) if _name(path) == name]
    runs = [run for path in found for run in ([path] if _is_profile(path) else _runs(path))]
    return _programs(name, suite, result, runs, sms)


def _programs(
    name: str, suite: str, result: Path, runs: Sequence[Path], sms: int | None
) -> list[MeasuredProgram]:
    """The program with its profiles, and as a whole with its power logs, as far as there are any."""
    simulated = read_profile(result)
    logs = {run: read_power_log(run, name) for run in runs if run.is_file()}
    powers = tuple(log for log in logs.values() if log is not None)
    profiles = tuple(read_profile(run).kernels() for run in runs if logs.get(run) is None)
    found = [MeasuredProgram(name, _whole(simulated.kernels(), name), powers, suite, sms)] if powers else []
    if not profiles:
        return found
    if sms is None and any(p.has(_SM_CYCLES) for p in profiles):
        sms = Result.load(result).machine.sm_count
    return [MeasuredProgram(name, simulated.kernels(), profiles, suite, sms), *found]
