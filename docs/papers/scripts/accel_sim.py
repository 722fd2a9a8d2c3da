"""Accel-Sim (Khairy et al., ISCA 2020): its tables and figures on simt. See papers.py for the arguments.

Machine code is what `simt validate programs --gpu qv100 --code sass --record` has recorded of rows that are
not sampled, else that of pka.py's full simulations, else what docs/records/whole-programs.md has of an
earlier model. Configurations are those of a checkout of GPGPU-Sim (SIMT_GPGPUSIM).
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import ROOT, WORK, Item, NotMeasured, Paper, Part, Rows, Section, Steps, main, percent, table
from pka import PKA
from recipes import measured_values, rows, simulate, sources

from simt.errors import SpecError
from simt.plots import SERIES
from simt.spec.gpgpusim import from_gpgpusim
from simt.validate.published import published_path
from simt.validate.recipes import Row, read_table
from simt.validate.row_errors import error_rows
from simt.validate.whole_programs import Setting, compared_launches, run_rows, timed_launches

LIMIT = 900.0
"""Seconds of the wall clock for a program."""
LONGEST = 2e5
"""Cycles on silicon of the longest program that is also simulated as PTX."""
LONGEST_SAMPLED = 4e6
"""Cycles on silicon of the longest program that is simulated with its launches sampled."""
LONGER = ("mergeSort_k1", "mergeSort_k2", "binomialOptions_k1", "cudaTensorCoreGemm_k1")
"""Kernels with counters that take minutes."""
RECORD, RECORDED = ROOT / "docs" / "records" / "whole-programs.md", "1283be00"
"""Cycles of an earlier model, and the commit that recorded them."""
NEW = "recorded"
_RECORDED = re.compile(r"^\| [\w.-]+ \| `([^`]+)` \| [\d,]+ \| ([\d,]+) \| [+-]", re.MULTILINE)
TABLES = {"GPGPU-Sim 3.x": "gpgpu-sim", "Accel-Sim, PTX": "ptx", "Accel-Sim": "sass"}
"""What the paper's table VIII says."""
SIMT = ("simt, PTX", "simt")
HITS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"
SHARED = "smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum"
BY_SHARED = "accesses to shared memory"
"""The sum of these two, which AccelWattch's table has."""
PLAIN = "hits without those on a sector that is being loaded"


WITHOUT_RECIPE = "no recipe"


def published(name: str) -> dict[tuple[str, str], float]:
    """Cycles by suite and program."""
    return {
        (row["suite"], row["program"]): float(row["cycles"])
        for _, row in read_table(published_path(Path(f"accel-sim-isca20-{name}")))
    }


def measure_programs(steps: Steps) -> pl.DataFrame:
    """Every row of the table that has a recipe."""
    launches = PKA.frame("launches")
    simulated = dict(launches.group_by("program").agg(pl.sum("cycles")).iter_rows())
    recorded = {
        name: float(cycles.replace(",", "")) for name, cycles in _RECORDED.findall(RECORD.read_text())
    }
    tables = {label: published(name) for label, name in TABLES.items()}
    whole = [x for x in error_rows() if x.features.gpu == "qv100" and not x.sampling]
    now = {(x.features.code, x.suite, x.row): x.ratio for x in whole}
    found: Rows = []
    for row in rows():
        recipe = row.recipe
        key = (recipe.where["suite"][0], recipe.where["program"][0])
        ratios = {code: now.get((code, recipe.suite, row.name)) for code in ("ptx", "sass")}
        ways = {
            NEW: ratios["sass"] and row.measured / ratios["sass"],
            "": simulated.get(recipe.program),
            RECORDED: recorded.get(recipe.program),
        }
        way = next((way for way, cycles in ways.items() if cycles), "")

        def make(row: Any = row) -> Rows:
            run = simulate(row, "qv100", LIMIT, code="ptx")
            if run.result is None:
                raise NotMeasured(run.why)
            return [{"cycles": sum(launch.cycles for launch in timed_launches(run.result, row.recipe))}]

        ptx: Rows = []
        if ratios["ptx"]:
            ptx = [{"cycles": row.measured / ratios["ptx"]}]
        elif row.measured <= LONGEST and recipe.suite != "microbenchmarks":
            ptx = steps.rows(f"{recipe.program}, PTX", make)
        found.append(
            {
                "suite": recipe.suite,
                "program": recipe.program,
                "use": recipe.use,
                "unclear": recipe.not_counted,
                "silicon": row.measured,
                **{label: of.get(key) for label, of in tables.items()},
                "simt, PTX": float(ptx[0]["cycles"]) if ptx else None,
                "simt": float(ways[way]) if ways[way] else None,
                "from": way,
            }
        )
    with_recipe = {(row.recipe.where["suite"][0], row.recipe.where["program"][0]) for row in rows()}
    for key, cycles in published("silicon").items():
        if key not in with_recipe:
            published_cycles = {label: of.get(key) for label, of in tables.items()}
            about = {"suite": key[0], "program": key[1], "unclear": WITHOUT_RECIPE, "silicon": cycles}
            found.append({**about, **published_cycles})
    return pl.DataFrame(found, infer_schema_length=None)


def off(value: float | None, silicon: float) -> str:
    return "" if value is None else f"{100 * (value / silicon - 1):+.0f} %"


def agreement(frame: pl.DataFrame, column: str) -> list[object]:
    """Rows, mean absolute error and correlation of the rows that count."""
    mine = frame.filter((pl.col("unclear") == "") & pl.col(column).is_not_null())
    ratio = (mine[column] / mine["silicon"] - 1).abs()
    r = np.corrcoef(mine[column], mine["silicon"])[0, 1] if len(mine) > 2 else float("nan")
    return [len(mine), percent(ratio.mean()), f"{r:.3f}"]


def correlation(
    frame: pl.DataFrame, x: str, columns: dict[str, tuple[str, str]], labels: tuple[str, str]
) -> Figure:
    figure, axes = plt.subplots(figsize=(5.2, 4.4))
    low, high = float(frame[x].min()) / 1.5, float(frame[x].max()) * 1.5  # type: ignore[arg-type]
    axes.plot([low, high], [low, high], color="grey", lw=0.6)
    for column, (marker, colour) in columns.items():
        for certain in (False, True):
            mine = frame.filter((pl.col("unclear") == "") == certain)
            style: dict[str, Any] = {"alpha": 1.0, "label": column} if certain else {"alpha": 0.3}
            values = mine[column].cast(pl.Float64)
            axes.plot(mine[x], values, marker, color=SERIES[colour], ms=4, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.legend(fontsize=8)
    figure.tight_layout()
    return figure


def show_programs(section: Section, frame: pl.DataFrame) -> str:
    columns = [*TABLES, *SIMT]
    lines = []
    for row in frame.sort("suite", "program").iter_rows(named=True):
        cells = [off(row[column], row["silicon"]) for column in columns]
        cells[-1] += f" ({row['from']})" if row["from"] == RECORDED else ""
        lines.append(
            [
                row["suite"],
                f"`{row['program']}`",
                f"{row['silicon']:,.0f}",
                *cells,
                row["unclear"] if row["unclear"] == WITHOUT_RECIPE else "no" if row["unclear"] else "yes",
            ]
        )
    with_recipe = frame.filter(pl.col("unclear") != WITHOUT_RECIPE)
    listed = len(published("silicon"))
    now = frame.filter((pl.col("from") != RECORDED) & pl.col("simt").is_not_null())
    both = frame.filter(pl.col("simt").is_not_null() & pl.col("simt, PTX").is_not_null())
    summary = [[column, *agreement(frame, column)] for column in columns]
    summary.append(["simt, without those of an earlier model", *agreement(now, "simt")])
    summary += [[f"{column}, the same rows", *agreement(now, column)] for column in TABLES]
    return (
        f"All {listed} rows of the table. {listed - len(frame) + len(with_recipe)} have a recipe, some in "
        "two sizes, as their input is not known; why the others have none is in [the "
        "record](../records/whole-programs.md#accel-sims-v100-table). *simt* is machine code: "
        f"{len(frame.filter(pl.col('from') == NEW))} rows are those that `simt validate programs --gpu qv100 "
        "--code sass --record` wrote, others are of [PKA's page](pka.md#launches), at its commit; rows with "
        "a commit in brackets are [recorded](../records/whole-programs.md) ones of an earlier model. A row "
        "that is not certain does not count: Accel-Sim's list has several inputs for it, or it launches "
        "another number of kernels.\n\n"
        + table(["suite", "program", "cycles on silicon", *columns, "certain?"], lines)
        + "\nOver the rows that are certain:\n\n"
        + table(["", "rows", "mean error", "r"], summary)
        + "\nThe paper, over 80 programs: GPGPU-Sim 3.x 94 %, Accel-Sim in PTX mode 34 %, Accel-Sim 15 %. "
        "Which rows nobody "
        "had seen while the model was made is in the [record](../records/whole-programs.md).\n\n"
        + section.plot(
            "figure-4",
            "Cycles on silicon and simulated; faint: rows that are not certain",
            lambda: correlation(
                frame,
                "silicon",
                {"GPGPU-Sim 3.x": ("x", "orange"), "Accel-Sim": ("+", "aqua"), "simt": ("o", "blue")},
                ("cycles on a V100", "simulated cycles"),
            ),
        )
        + (
            section.plot(
                "figure-5",
                "PTX against machine code; faint: rows that are not certain",
                lambda: correlation(
                    both,
                    "silicon",
                    {"simt, PTX": ("x", "orange"), "simt": ("o", "blue")},
                    ("cycles on a V100", "simulated cycles"),
                ),
            )
            if len(both)
            else ""
        )
    )


def measure_sampled(steps: Steps) -> pl.DataFrame:
    """Longer programs that are certain, their launches sampled, as PTX and as machine code."""
    found: Rows = []
    for row in rows():
        recipe = row.recipe
        if not LONGEST < row.measured <= LONGEST_SAMPLED or recipe.not_counted:
            continue
        for code in ("ptx", "sass") if recipe.suite != "microbenchmarks" else ():

            def make(row: Any = row, code: str = code) -> Rows:
                setting = Setting(WORK / "sampled", sources(), code, LIMIT, controller="systematic")
                (outcome,) = run_rows([row], setting, lambda _: None)
                if outcome.status != "done":
                    why = f"not finished after {LIMIT:.0f} s" if outcome.status == "limit" else outcome.status
                    raise NotMeasured(why.splitlines()[0])
                return [
                    {
                        "suite": row.recipe.suite,
                        "program": row.recipe.program,
                        "code": code,
                        "silicon": row.measured,
                        "simt": outcome.simulated,
                        "half_width": None if math.isnan(outcome.half_width) else outcome.half_width,
                    }
                ]

            found += steps.rows(f"{recipe.program}, {code}", make)
    return pl.DataFrame(found, infer_schema_length=None)


def show_sampled(section: Section, frame: pl.DataFrame) -> str:
    lines, errors = [], dict[str, list[float]]()
    for (suite, program), mine in frame.group_by("suite", "program", maintain_order=True):
        cells = []
        for code in ("ptx", "sass"):
            for row in mine.filter(code=code).iter_rows(named=True):
                width = "no interval" if row["half_width"] is None else f"± {100 * row['half_width']:.1f} %"
                cells += [f"{off(row['simt'], row['silicon'])}, {width}"]
                errors.setdefault(code, []).append(abs(row["simt"] / row["silicon"] - 1))
            if not len(mine.filter(code=code)):
                cells.append("")
        lines.append([suite, f"`{program}`", f"{mine['silicon'][0]:,.0f}", *cells])
    means = [
        f"{name} {percent(float(np.mean(errors[code])))} of {len(errors[code])}"
        for code, name in (("ptx", "PTX"), ("sass", "machine code"))
        if code in errors
    ]
    return (
        f"Programs of {LONGEST:,.0f} to {LONGEST_SAMPLED:,.0f} cycles on silicon whose row is certain, with "
        "[systematic sampling](../control/systematic.md) of each launch (`simt validate programs --sample "
        "systematic`): error of the cycles, and the half width of the 95 % interval that sampling states. "
        "Launches of few waves are simulated whole, and have an interval of 0. Mean error: "
        + "; ".join(means)
        + ".\n\n"
        + table(["suite", "program", "cycles on silicon", "simt, PTX", "simt"], lines)
    )


def measure_counters(steps: Steps) -> pl.DataFrame:
    return counters_of(steps, [row for row in rows("v100-counters") if row.recipe.program not in LONGER])


def measure_longer(steps: Steps) -> pl.DataFrame:
    return counters_of(steps, [row for row in rows("v100-counters") if row.recipe.program in LONGER])


def show_longer(section: Section, frame: pl.DataFrame) -> str:
    lines = [
        [
            f"`{row['program']}`",
            f"`{row['counter']}`" if "__" in row["counter"] else row["counter"],
            f"{row['silicon']:,.0f}",
            f"{row['simt']:,.0f}",
        ]
        for row in frame.iter_rows(named=True)
    ]
    return "The same of the four longest of these kernels, one by one.\n\n" + table(
        ["kernel", "counter", "V100", "simt"], lines
    )


def counters_of(steps: Steps, kernels: Sequence[Row]) -> pl.DataFrame:
    """Kernels of CUDA's samples whose counters on a V100 are published."""
    found: Rows = []
    of_shared = {
        of["Kernel"]: float(of["SHRD_ACC"]) for _, of in read_table(measured_values() / "v100-counters.csv")
    }
    for row in kernels:

        def make(row: Any = row) -> Rows:
            run = simulate(row, "qv100", LIMIT)
            if run.result is None:
                raise NotMeasured(run.why)
            launches = compared_launches(timed_launches(run.result, row.recipe), row.recipe)
            about = {"program": row.recipe.program}
            rows_ = [
                {
                    **about,
                    "counter": "cycles",
                    "silicon": row.measured,
                    "simt": float(np.mean([launch.cycles for launch in launches])),
                }
            ]
            for name, value in row.counters.items():
                rows_.append(
                    {
                        **about,
                        "counter": name,
                        "silicon": value,
                        "simt": float(np.mean([launch.counters[name] or 0 for launch in launches])),
                    }
                )
            shared = np.mean([sum(launch.counters[name] or 0 for name in SHARED) for launch in launches])
            rows_.append(
                {
                    **about,
                    "counter": BY_SHARED,
                    "silicon": of_shared[row.recipe.where["Kernel"][0]],
                    "simt": float(shared),
                }
            )
            plain = np.mean([launch.l1.get("global_read", {}).get("hit", 0) for launch in launches])
            return [
                *rows_,
                {**about, "counter": PLAIN, "silicon": row.counters.get(HITS, 0.0), "simt": float(plain)},
            ]

        found += steps.rows(row.recipe.program, make)
    return pl.DataFrame(
        found, schema={"program": pl.String, "counter": pl.String, "silicon": pl.Float64, "simt": pl.Float64}
    )


def nrmse(silicon: Sequence[float], simulated: Sequence[float]) -> float | None:
    """Root of the mean squared error, relative to the mean of the measured values, as the paper has it."""
    mean = float(np.mean(silicon))
    return float(np.sqrt(np.mean((np.array(simulated) - np.array(silicon)) ** 2))) / mean if mean else None


def broken(name: str, width: int = 34) -> str:
    """A name of several words or parts, on lines of at most this width."""
    lines = [""]
    for part in re.findall(r"[^_ ]*[_ ]*", name):
        if len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def show_counters(section: Section, frame: pl.DataFrame) -> str:
    lines = []
    for counter in frame["counter"].unique(maintain_order=True):
        mine = frame.filter(counter=counter)
        error = nrmse(mine["silicon"].to_list(), mine["simt"].to_list())
        r = (
            np.corrcoef(mine["silicon"], mine["simt"])[0, 1]
            if mine["silicon"].std() and mine["simt"].std()
            else None
        )
        lines.append(
            [
                f"`{counter}`" if "__" in counter else counter,
                len(mine),
                "" if error is None else f"{error:.2f}",
                "" if r is None else f"{r:.2f}",
            ]
        )

    def draw() -> Figure:
        shown = [
            c
            for c in frame["counter"].unique(maintain_order=True)
            if frame.filter(counter=c)["silicon"].sum()
        ]
        columns = 4
        figure, plots = plt.subplots(
            -(-len(shown) // columns), columns, figsize=(11, 2.7 * -(-len(shown) // columns)), squeeze=False
        )
        for axes in plots.ravel()[len(shown) :]:
            axes.remove()
        for axes, counter in zip(plots.ravel(), shown, strict=False):
            mine = frame.filter(counter=counter)
            high = max(mine["silicon"].max(), mine["simt"].max()) * 1.3  # type: ignore[type-var]
            axes.plot([1, high], [1, high], color="grey", lw=0.6)
            axes.plot(mine["silicon"], mine["simt"], "o", color=SERIES["blue"], ms=4)
            axes.set_xscale("symlog")
            axes.set_yscale("symlog")
            unit = {"cycles": "cycles", BY_SHARED: "warp instructions"}.get(counter, "sectors")
            axes.set_title(f"{broken(counter)}\n({unit})", fontsize=7)
            axes.tick_params(labelsize=6)
        figure.supxlabel("on a V100", fontsize=8)
        figure.supylabel("simulated", fontsize=8)
        figure.tight_layout()
        return figure

    return (
        "Kernels of CUDA's samples with published counters of a V100 (Accel-Sim's repository, "
        "AccelWattch). NRMSE is the "
        "paper's: root of the mean squared error over the mean. Accesses to shared memory are the sum of `"
        + "` and `".join(SHARED)
        + "`. The last row is the other way of counting "
        "hits in the L1: "
        "simt's counter takes a load that finds its sector's tag present while it is being loaded for a "
        "hit, as Accel-Sim "
        "does with `HIT_RESERVED`.\n\n"
        + table(["counter", "kernels", "NRMSE", "r"], lines)
        + "\nThe paper, Accel-Sim: L1 requests 0.00, L1 hit ratio 0.76, L2 reads 0.03, L2 read hits 0.47, "
        "DRAM reads 0.92.\n\n" + section.plot("counters", "Counters of the V100 and simulated", draw)
    )


def measure_configurations(steps: Steps) -> pl.DataFrame:
    """Every configuration of a checkout of GPGPU-Sim."""

    def make() -> Rows:
        folder = (
            Path(os.environ.get("SIMT_GPGPUSIM", ROOT.parent / "src" / "gpgpu-sim_distribution")) / "configs"
        )
        found: Rows = []
        for file in sorted(folder.glob("*/*/gpgpusim.config")):
            trace = file.with_name("trace.config")
            row: dict[str, Any] = {
                "folder": file.parent.parent.name,
                "name": file.parent.name,
                "why": "",
                "sms": 0,
            }
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    row["sms"] = from_gpgpusim(file, trace if trace.exists() else None).sm.count
                except SpecError as error:
                    row["why"] = str(error).replace(f"{file}: ", "").replace(f"{file}:", "line ")
            found.append({**row, "warnings": len(caught)})
        if not found:
            raise NotMeasured(
                f"{folder}: no configurations; SIMT_GPGPUSIM names a checkout of "
                "accel-sim/gpgpu-sim_distribution"
            )
        return found

    return pl.DataFrame(steps.rows("configurations", make), infer_schema_length=None)


def show_configurations(section: Section, frame: pl.DataFrame) -> str:
    lines = [
        [
            f"`{row['folder']}/{row['name']}`",
            f"imported, {row['sms']} SMs, {row['warnings']} warnings"
            if row["sms"]
            else f"refused: {row['why']}",
        ]
        for row in frame.iter_rows(named=True)
    ]
    return (
        "`simt gpus import gpgpusim.config trace.config` ([add a GPU](../add-a-gpu.md)) on the "
        "configurations of "
        "accel-sim/gpgpu-sim_distribution. What the engine cannot express is refused, by the option's "
        "name; the rest is "
        "imported, and options without an equivalent are warnings. Of a GTX 1080 Ti there is no "
        "configuration, but of a GTX "
        "1080. Why the older ones are refused: DRAM that moves 64 bytes a burst, where simt's sectors "
        "have 32; SMs without "
        "an L1; a set index of an older form for caches of 64 sets.\n\n"
        + table(["configuration", "outcome"], lines)
    )


ACCEL_SIM = Paper(
    name="accel-sim",
    title="Accel-Sim, table by table",
    about="""
Khairy et al., "Accel-Sim: An Extensible Simulation Framework for Validated GPU Modeling", ISCA 2020. How
programs are compared is described in [whole programs](../whole-programs.md), and simt against Accel-Sim
itself, trace by trace, in [accuracy](../records/accuracy.md) and [speed](../records/speed.md).
""",
    items=(
        Item(
            "Table I",
            "simulators, their accuracy and speed",
            "[accuracy](../records/accuracy.md), [speed](../records/speed.md)",
        ),
        Item(
            "Figures 1, 2; Table II",
            "the flow, the model, the instructions",
            "`ARCHITECTURE.md`, [the timing model](../model/README.md)",
        ),
        Item(
            "Figure 3",
            "a microbenchmark of the L1",
            "[microbenchmarks](../microbenchmarks.md): `simt bench run`",
        ),
        Item("Table III", "workloads", "those that have a recipe", "programs"),
        Item(
            "Tables IV, VI",
            "four generations; GPGPU-Sim 3.x against Accel-Sim",
            "`simt gpus compare titan titanx`; `simt gpus show qv100-accelsim --sources`",
        ),
        Item("Table V, Volta", "error of a generation", "all programs", "programs"),
        Item(
            "Table V, Turing",
            "error of a generation",
            "other programs on an RTX 2060: [whole programs](../records/whole-programs.md#results)",
        ),
        Item(
            "Table V, Kepler and Pascal",
            "error of a generation",
            "published microbenchmarks: `simt gpus errors titan`, "
            "`simt gpus errors titanx`. **No table of whole kernels on either card was found**, so their "
            "error on programs "
            "is unknown",
        ),
        Item(
            "Table VII; Figures 4b to 4i",
            "instructions, IPC, occupancy and counters of the memory",
            "those counters of the L1, L2 and DRAM that are published, of CUDA's samples; of the paper's own "
            "kernels none are",
            "counters",
        ),
        Item(
            "Table VIII; Figure 4a",
            "cycles, program by program",
            "the same, with GPGPU-Sim's and Accel-Sim's figures",
            "programs",
        ),
        Item(
            "Figure 5",
            "PTX against machine code",
            "the same, shorter programs; [longer ones are sampled](#sampled); more in [machine code and "
            "PTX](../machine-code-and-ptx.md)",
            "programs",
        ),
        Item(
            "Figure 6",
            "DeepBench",
            "cannot be had: machine code of cuDNN and cuBLAS, without traces or sources",
        ),
        Item("Figure 7", "bandwidth of caches and memory", "`simt gpus errors qv100`, `simt bench run`"),
        Item(
            "Figure 8",
            "reservation failures of the L1",
            "[case study](../case-studies.md#l1-reservation-failures)",
        ),
        Item("Figure 9", "FR-FCFS against FCFS", "[case study](../case-studies.md#dram-scheduling)"),
        Item(
            "Configurations",
            "a model of any GPU from files",
            "GPGPU-Sim's own, imported or refused",
            "configurations",
        ),
        Item(
            "New execution units",
            "from the configuration alone",
            "the same, for traces and for PTX instructions of one's own: [execution units of your "
            "own](../special-units.md)",
        ),
    ),
    parts=(
        Part("programs", "The V100, program by program", measure_programs, show_programs, 8),
        Part("sampled", "Longer programs, sampled", measure_sampled, show_sampled, 12),
        Part("counters", "Counters", measure_counters, show_counters, 5),
        Part("longer", "Counters of longer kernels", measure_longer, show_longer, 8),
        Part("configurations", "Configurations of GPGPU-Sim", measure_configurations, show_configurations),
    ),
)

if __name__ == "__main__":
    main(ACCEL_SIM)
