"""What each of PKA's methods and competitors says of the programs, on each GPU. Part of pka.py."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import Rows, Section, Steps, percent, table, times
from pka_programs import AMPERE, HALF, TURING, VOLTA, profile_in
from recipes import rows

from simt.plots import SERIES
from simt.sampling import PKS, FirstN, Plan, Sampler, SingleIteration, TBPoint
from simt.spec import load_spec

SAMPLERS: dict[str, Sampler] = {
    "PKS": PKS(seed=4),
    "TBPoint": TBPoint(),
    "first 1 billion": FirstN(1e9),
    "first 10 million": FirstN(1e7),
    "one iteration": SingleIteration(),
}
METHODS = {
    "PKS": ("PKS", ""),
    "PKP, paper": ("", "paper"),
    "PKP, artifact": ("", "artifact"),
    "PKP, simt": ("", "simt"),
    "PKA, artifact": ("PKS", "artifact"),
    "PKA, simt": ("PKS", "simt"),
    "TBPoint": ("TBPoint", "tbpoint"),
    "first 1 billion": ("first 1 billion", ""),
    "first 10 million": ("first 10 million", ""),
    "one iteration": ("one iteration", ""),
}
"""Which launches, and how much of each: a sampler and a controller."""


def plan_rows(plan: Plan | None, frame: pl.DataFrame, controller: str) -> dict[str, float]:
    """Cycles and DRAM's busy time that a method says, and what it simulates. plan: None: all launches."""
    at = np.arange(len(frame)) if plan is None else plan.launches["launch"].to_numpy()
    weights = np.ones(len(frame)) if plan is None else plan.launches["weight"].to_numpy()
    prefix = f"{controller}." if controller else ""
    values = {name: frame[f"{prefix}{name}"].to_numpy()[at] for name in ("cycles", "instructions", "dram")}
    simulated = values["instructions"].astype(float)
    if plan is not None and "cut_fraction" in plan.fitted:
        simulated[-1] *= plan.fitted["cut_fraction"]
    return {
        "cycles": float(weights @ values["cycles"]),
        "dram": float(weights @ values["dram"]),
        "instructions": float(simulated.sum()),
        "launches": float(len(at)),
    }


def measure_methods(steps: Steps) -> pl.DataFrame:
    """From the launches that were measured."""
    paper = steps.paper
    launches = paper.frame("launches")
    if paper.data("generations").exists():
        launches = pl.concat([launches, paper.frame("generations")], how="diagonal")
    certain = {row.recipe.program for row in rows() if not row.recipe.not_counted}
    return pl.DataFrame(method_rows(launches, certain), infer_schema_length=None)


def method_rows(launches: pl.DataFrame, certain: set[str]) -> Rows:
    """Every method on every program; plans are made on the V100.

    certain: programs of which it is certain that silicon ran the same.
    """
    found: Rows = []
    for (program,), volta in launches.filter(gpu=VOLTA).group_by("program", maintain_order=True):
        profile = profile_in(volta)
        plans = {name: sampler.fit_plan(profile) for name, sampler in SAMPLERS.items()}
        for (gpu,), frame in launches.filter(program=program).group_by("gpu", maintain_order=True):
            if len(frame) != len(volta):
                continue
            first = frame.row(0, named=True)
            every = plan_rows(None, frame, "")
            for method, (sampler, controller) in {"full": ("", ""), **METHODS}.items():
                plan = plans.get(sampler)
                said = plan_rows(plan, frame, controller)
                share = said["instructions"] / every["instructions"]
                found.append(
                    {
                        "suite": first["suite"],
                        "program": program,
                        "gpu": gpu,
                        "method": method,
                        "cycles": said["cycles"],
                        "error": said["cycles"] / every["cycles"] - 1,
                        "silicon": said["cycles"] / first["measured"] - 1
                        if gpu == VOLTA and program in certain
                        else None,
                        "speedup": 1 / share,
                        "seconds": first["seconds"] * share,
                        "launches": int(said["launches"]),
                        "of": len(frame),
                        "dram": said["dram"] / said["cycles"],
                        "selected": ", ".join(map(str, plan.launches["launch"][:8])) if plan else "",
                        "groups": ", ".join(f"{w:,.0f}" for w in plan.launches["weight"][:8]) if plan else "",
                    }
                )
    return found


def cell(frame: pl.DataFrame, program: str, method: str) -> str:
    row = frame.filter(program=program, method=method).row(0, named=True)
    return f"{100 * row['error']:+.1f} %, {times(row['speedup'])}"


def geometric(values: pl.Series) -> float:
    return float(np.exp(np.log(values.to_numpy()).mean()))


def show_methods(section: Section, frame: pl.DataFrame) -> str:
    volta = frame.filter(gpu=VOLTA)
    full = volta.filter(method="full")
    lines = []
    for row in full.sort("suite", "program").iter_rows(named=True):
        name = row["program"]
        lines.append(
            [
                row["suite"],
                f"`{name}`",
                f"{row['of']:,}",
                "" if row["silicon"] is None else f"{100 * row['silicon']:+.0f} %",
                f"{row['seconds']:.1f}",
            ]
            + [cell(volta, name, method) for method in METHODS]
        )
    summary = []
    for method in METHODS:
        mine = volta.filter(method=method)
        summary.append(
            [
                method,
                percent(mine["error"].abs().mean()),
                percent(mine["error"].abs().max()),
                times(geometric(mine["speedup"])),
                times(full["seconds"].sum() / mine["seconds"].sum()),
                percent(mine["silicon"].abs().mean()),
            ]
        )

    def bars() -> Figure:
        """Simulation time (figure 6)."""
        figure, axes = plt.subplots(figsize=(9, 3.6))
        ordered = full.sort("seconds")["program"].to_list()
        shown = {"full": "blue", "PKS": "orange", "PKA, artifact": "aqua", "PKA, simt": "violet"}
        for k, (method, colour) in enumerate(shown.items()):
            values = {r["program"]: r["seconds"] for r in volta.filter(method=method).iter_rows(named=True)}
            x = np.arange(len(ordered)) + 0.2 * (k - 1.5)
            axes.bar(x, [values[name] for name in ordered], 0.2, color=SERIES[colour], label=method)
        axes.set_yscale("log")
        axes.set_ylabel("s of the processor")
        axes.set_xticks(range(len(ordered)), ordered, rotation=90, fontsize=7)
        axes.legend(fontsize=8, ncols=4)
        figure.tight_layout()
        return figure

    def against(column: str, label: str) -> Figure:
        figure, axes = plt.subplots(figsize=(9, 3.4))
        shown = {
            "PKA, artifact": "aqua",
            "PKA, simt": "violet",
            "TBPoint": "orange",
            "first 1 billion": "red",
            "first 10 million": "magenta",
        }
        if column == "silicon":
            shown = {"full": "blue", **shown}
        first = (
            volta.filter(method=next(iter(shown)))
            .drop_nulls(column)
            .with_columns(pl.col(column).abs())
            .sort(column)
        )
        ordered = first["program"].to_list()
        for (method, colour), marker in zip(shown.items(), "osD^vP", strict=False):
            values = {r["program"]: r[column] for r in volta.filter(method=method).iter_rows(named=True)}
            factor = 100 if column == "silicon" else 1
            y = [abs(values[name]) * factor for name in ordered]
            # Side by side, as many are equal.
            x = np.arange(len(ordered)) + 0.7 * (list(shown).index(method) / (len(shown) - 1) - 0.5)
            axes.plot(x, y, marker, color=SERIES[colour], ms=4, label=method)
        if column == "speedup":
            axes.set_yscale("log")
        else:
            axes.set_yscale("symlog", linthresh=10)
            axes.set_ylim(bottom=0)
        axes.set_ylabel(label)
        axes.set_xticks(range(len(ordered)), ordered, rotation=90, fontsize=7)
        axes.legend(fontsize=7, ncols=6, loc="lower left", bbox_to_anchor=(0, 1))
        figure.tight_layout()
        return figure

    groups = volta.filter((pl.col("method") == "PKS") & (pl.col("of") > 1)).sort("suite", "program")
    return (
        "Each cell: error of the program's cycles against full simulation, and how many times fewer warp "
        "instructions are simulated. *Silicon* is full simulation against the published cycles of a V100, "
        "of programs of which it is certain that they are those measured; *s* is the "
        "processor's time for full simulation. PKS is fitted to the cycles of the full simulation, where the "
        "paper has "
        "silicon's: its error is below 5 % by construction where any K reaches it.\n\n"
        + table(["suite", "program", "launches", "silicon", "s", *METHODS], lines)
        + "\n`PKP, paper` is the threshold of the text, 0.25 instructions per cycle of the whole GPU, of "
        "the instantaneous "
        "IPC; `artifact` is the published code; `simt` is `--sample pkp` with its defaults, which leaves "
        "nothing out of "
        "[launches of fewer than eight waves](../control/photon.md#launches-of-few-waves). The first 10^9 "
        "thread "
        "instructions are the whole program for most; 10^7 show what stopping early does to these.\n\n"
        + table(
            [
                "method",
                "mean error",
                "largest",
                "speedup, geometric",
                "all programs together",
                "mean error to silicon",
            ],
            summary,
        )
        + f"\nFull simulation is {percent(full['silicon'].abs().mean())} from silicon in the mean over "
        f"those that are certain.\n\n"
        + section.plot("figure-6", "Simulation time in full, with PKS and with PKA", bars)
        + "\n"
        + section.plot(
            "figure-7",
            "Speedup of PKA, TBPoint and the first billion instructions",
            lambda: against("speedup", "speedup over full simulation"),
        )
        + "\n"
        + section.plot(
            "figure-8",
            "Error to silicon of full simulation, PKA, TBPoint and the first billion",
            lambda: against("silicon", "error to silicon, %"),
        )
        + "\nGroups that PKS finds (Table 3); a program with one launch is left out:\n\n"
        + table(
            ["suite", "program", "launches", "selected launches", "launches in their groups"],
            [
                [r["suite"], f"`{r['program']}`", f"{r['of']:,}", r["selected"], r["groups"]]
                for r in groups.iter_rows(named=True)
            ],
        )
        + "\nDRAM's utilisation, in full and as PKA projects it, of programs with at least 1 %:\n\n"
        + table(
            ["program", "full", "PKA, artifact", "PKA, simt"],
            [
                [
                    f"`{r['program']}`",
                    percent(r["dram"]),
                    *(
                        percent(volta.filter(program=r["program"], method=m)["dram"][0])
                        for m in ("PKA, artifact", "PKA, simt")
                    ),
                ]
                for r in full.sort("dram", descending=True).iter_rows(named=True)
                if r["dram"] >= 0.01
            ],
        )
    )


def show_generations(section: Section, frame: pl.DataFrame) -> str:
    methods = section.paper.frame("methods")
    lines, ratios = [], []
    for program in frame["program"].unique(maintain_order=True):
        mine = methods.filter(program=program)
        by = {(r["gpu"], r["method"]): r for r in mine.iter_rows(named=True)}
        cells = []
        for gpu in (VOLTA, TURING, AMPERE):
            row = by.get((gpu, "PKS"))
            cells += [f"{100 * row['error']:+.1f} %", times(row["speedup"])] if row else ["", ""]
        lines.append([f"`{program}`", *cells])
        for other in (TURING, HALF):
            if (other, "full") in by:
                # Cycles of two GPUs at their own clocks: seconds are what is compared.
                volta = volta_over(by, other, frame)
                ratios.append({"program": program, "other": other, **volta})
    ratio = pl.DataFrame(ratios)

    def draw() -> Figure:
        figure, plots = plt.subplots(1, 2, figsize=(10, 3.6))
        for axes, other in zip(plots, (TURING, HALF), strict=True):
            part = ratio.filter(other=other).sort("full")
            for method, marker, colour in (
                ("full", "o", "blue"),
                ("PKA, artifact", "x", "orange"),
                ("PKA, simt", "+", "aqua"),
            ):
                axes.plot(range(len(part)), part[method], marker, color=SERIES[colour], label=method, ms=5)
            axes.axhline(1, color="grey", lw=0.5)
            axes.set_xticks(range(len(part)), part["program"], rotation=90, fontsize=7)
            axes.set_title(f"V100 against {other}", fontsize=9)
            axes.set_ylabel("times as fast")
        plots[0].legend(fontsize=8)
        figure.tight_layout()
        return figure

    text = []
    for other in (TURING, HALF):
        part = ratio.filter(other=other)
        for method in ("PKA, artifact", "PKA, simt"):
            off = (part[method] / part["full"] - 1).abs()
            text.append(
                [
                    f"V100 against {other}",
                    method,
                    len(part),
                    f"{geometric(part['full']):.2f}",
                    f"{geometric(part[method]):.2f}",
                    percent(off.mean()),
                    percent(off.max()),
                ]
            )
    return (
        "PKS chooses launches on the V100; on the other GPUs the same launches stand for the same groups. "
        "Error of the "
        "cycles against full simulation on that GPU, and speedup:\n\n"
        + table(["program", "V100", "", "RTX 2060", "", "RTX 3070", ""], lines)
        + "\nDesign questions: how many times as fast is the V100 as an RTX 2060, and as a V100 of 40 "
        "SMs?\n\n"
        + table(["", "method", "programs", "full, geometric", "sampled", "mean error", "largest"], text)
        + "\n"
        + section.plot("figure-9-10", "V100 against RTX 2060, and against 40 SMs", draw)
    )


def volta_over(
    by: dict[tuple[str, str], dict[str, Any]], other: str, frame: pl.DataFrame
) -> dict[str, float]:
    """How many times as fast the V100 is, by method."""
    row = frame.filter(gpu=other).row(0, named=True)
    khz = {other: 1e6 * row["cycles"] / row["duration_ns"]}
    khz[VOLTA] = 1e3 * load_spec("qv100").clock.core_mhz
    return {
        method: by[other, method]["cycles"] / khz[other] / (by[VOLTA, method]["cycles"] / khz[VOLTA])
        for method in ("full", "PKA, artifact", "PKA, simt")
    }
