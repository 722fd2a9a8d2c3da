"""Principal Kernel Analysis (Baddouh et al., MICRO 2021): its tables and figures on simt.

See papers.py for the arguments. Programs are those of validation/programs/qv100.toml that are simulated
within
LIMIT seconds. Each is simulated in full once; what each method would have simulated, and what it would have
said,
follows from that run: launches that a plan leaves out have their cycles in it, and controllers are asked by
`simt.control.what_if`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import Item, NotMeasured, Paper, Part, Rows, Section, Steps, main, percent, table, times
from recipes import rows, simulate

from simt.control import PKP, TBPointRegions, what_if
from simt.gpu import GPU
from simt.plots import SERIES
from simt.profile import Profile
from simt.profile.simulated import profile_of
from simt.result import LaunchResult, Result
from simt.sampling import PKS, FirstN, Plan, Sampler, SingleIteration, TBPoint, TwoLevel
from simt.sampling.columns import LANES, WARP_INSTRUCTIONS, available
from simt.sampling.features import PAPER
from simt.workloads import WORKLOADS

LIMIT = 240.0
LONGEST = 5.5e6  # cycles on silicon of the longest program; longer ones take minutes
FIRST = (
    "lud",
    "bfs",
    "3dconv",
    "needle",
    "srad-v1",
    "histo",
    "merge-sort",
    "sorting-networks",
    "scan",
    "dwt2d-192",
    "fast-walsh-transform-19",
    "3mm",
    "stencil",
    "lud-512",
)
"""Programs of many launches, which methods that choose launches are for: they are measured before the "
"others."""
OTHERS_LONGEST = 1e5  # on the other GPUs, which are four more runs
SUITES = ("rodinia", "parboil", "polybench", "sdk-4.2", "cutlass-wmma", "cutlass-sgemm")
LEFT_OUT = {
    "dwt2d-1024": "an input like dwt2d-192's, and longer",
    "vector-add-6000000": "as vector-add-4000000",
    "scalar-prod-13920": "as scalar-prod-8192",
    "fast-walsh-transform-21": "as fast-walsh-transform-19",
    "lava-md": "minutes",
    "myocyte": "minutes",
}
CUTLASS = ("wmma-2560x16x2560", "wmma-2560x128x2560", "sgemm-2560x64x2560")
"""Of its twenty sizes."""
VOLTA, TURING, AMPERE, HALF = "V100", "RTX 2060", "RTX 3070", "V100, 40 SMs"
GPUS: dict[str, tuple[str, dict[str, Any]]] = {
    VOLTA: ("qv100", {}),
    TURING: ("rtx2060", {}),
    AMPERE: ("rtx3070", {}),
    HALF: ("qv100", {"sm.count": 40}),
}
CONTROLLERS = {
    "paper": PKP(**PKP.presets["paper"]),
    "artifact": PKP(**PKP.presets["artifact"]),
    "simt": PKP(),
    "tbpoint": TBPointRegions(),
}
"""What would have stopped a launch: PKP as the paper's text has it, as its published code does, simt's; "
"TBPoint."""
SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared_bytes")
THRESHOLDS = (2.5, 0.25, 0.025)
STOPPED = {"fir": 1 << 18, "spmv": 1 << 13}
"""A regular and an irregular one of simt's workloads, beside the paper's ATAX and BFS."""


def launch_rows(program: str, suite: str, gpu: str, result: Result, seconds: float, measured: float) -> Rows:
    """What the methods need of each launch."""
    profile = profile_of(result)
    features = {available(profile, names) for names in (*PAPER.values(), WARP_INSTRUCTIONS, LANES)}
    columns = [name for name in sorted(filter(None, features)) if profile.has(name)]
    outcomes = {name: what_if(result, controller).outcomes for name, controller in CONTROLLERS.items()}
    found = []
    for i, launch in enumerate(result.launches):
        row: dict[str, Any] = {
            "suite": suite,
            "program": program,
            "gpu": gpu,
            "launch": i,
            "name": launch.name,
            "measured": measured,
            "seconds": seconds,
            "cycles": launch.cycles,
            "instructions": launch.warp_instructions,
            "dram": float(dram(launch)),
            "duration_ns": profile.column("duration_ns")[i],
        }
        row |= {name: int(profile.column(name)[i]) for name in SHAPE}
        row |= {name: float(profile.column(name)[i]) for name in columns}
        for name, of in outcomes.items():
            row |= {
                f"{name}.cycles": of[i].projected_cycles,
                f"{name}.instructions": of[i].simulated_instructions,
                f"{name}.dram": dram(launch) * (1 + finite(of[i].errors.get("dram_bus_cycles"))),
            }
        found.append(row)
    return found


def finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else 0.0


def dram(launch: LaunchResult) -> float:
    """DRAM utilisation (0 to 1) times cycles: adds up over launches, and over what is projected."""
    busy = launch.counters["dram__throughput.avg.pct_of_peak_sustained_elapsed"]
    return float(busy or 0) / 100 * launch.cycles


def runs(steps: Steps, gpus: list[str], longest: float) -> Iterator[Rows]:
    for row in sorted(rows(), key=lambda row: row.recipe.program not in FIRST):
        recipe = row.recipe
        if recipe.suite not in SUITES or row.measured > longest or recipe.program in LEFT_OUT:
            continue
        if recipe.suite.startswith("cutlass") and recipe.program not in CUTLASS:
            continue
        for gpu in gpus:
            name, values = GPUS[gpu]

            def make(
                name: str = name, values: dict[str, Any] = values, gpu: str = gpu, row: Any = row
            ) -> Rows:
                run = simulate(row, name, LIMIT, values, timeline=500)
                if run.result is None:
                    raise NotMeasured(run.why)
                recipe = row.recipe
                return launch_rows(recipe.program, recipe.suite, gpu, run.result, run.seconds, row.measured)

            yield steps.rows(f"{recipe.program}, {gpu}", make)


def gathered(found: Iterator[Rows]) -> pl.DataFrame:
    return pl.DataFrame([row for rows in found for row in rows], infer_schema_length=None)


def measure_launches(steps: Steps) -> pl.DataFrame:
    return gathered(runs(steps, [VOLTA], LONGEST))


def measure_generations(steps: Steps) -> pl.DataFrame:
    return gathered(runs(steps, [TURING, AMPERE, HALF], OTHERS_LONGEST))


def profile_in(frame: pl.DataFrame) -> Profile:
    """The profile of a program's launches."""
    counters = [name for name in frame.columns if "__" in name and frame[name].null_count() == 0]
    return Profile(frame.select("launch", "name", *SHAPE, "duration_ns", *counters))


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
    """Every method on every program, from the launches that were measured; plans are made on the V100."""
    paper = steps.paper
    launches = paper.frame("launches")
    if paper.data("generations").exists():
        launches = pl.concat([launches, paper.frame("generations")], how="diagonal")
    certain = {row.recipe.program for row in rows() if not row.recipe.not_counted}
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
    return pl.DataFrame(found, infer_schema_length=None)


def show_launches(section: Section, frame: pl.DataFrame) -> str:
    programs = frame.group_by("program", maintain_order=True).agg(
        pl.first("seconds"), (pl.sum("duration_ns") / 1e9).alias("gpu"), pl.len(), pl.sum("cycles")
    )

    def draw() -> Figure:
        figure, axes = plt.subplots(figsize=(8, 3.6))
        ordered = programs.sort("gpu")
        x = range(len(ordered))
        axes.semilogy(
            x, ordered["seconds"], "o", color=SERIES["blue"], ms=4, label="simulation in full, s of the host"
        )
        axes.semilogy(
            x, ordered["gpu"], "s", color=SERIES["orange"], ms=4, label="the same on the V100 (simulated), s"
        )
        axes.set_xticks(x, ordered["program"], rotation=90, fontsize=7)
        axes.set_ylabel("seconds")
        axes.legend(fontsize=8)
        figure.tight_layout()
        return figure

    total = programs["seconds"].sum()
    return (
        f"{len(programs)} programs with {len(frame):,} launches and {frame['cycles'].sum() / 1e6:,.1f} "
        f"million cycles "
        f"took {total:,.0f} s in full, of which {programs['seconds'].max():,.0f} s the longest. A row of "
        f"the Parquet is "
        "a launch: its cycles, counters, and what PKP (as in the paper's text, as in its published code, "
        "and simt's) "
        "and TBPoint would have simulated and said. Left out: "
        + "; ".join(f"`{name}` ({why})" for name, why in LEFT_OUT.items())
        + f"; of CUTLASS's twenty sizes all but {len(CUTLASS)}; programs of more than {LONGEST / 1e6:.1f} "
        f"million cycles on silicon.\n\n"
        + section.plot("figure-1", "Seconds of the host and of the GPU by program", draw)
    )


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
        axes.set_ylabel("s of the host")
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
            axes.plot(range(len(ordered)), y, marker, color=SERIES[colour], ms=4, label=method)
        axes.set_yscale(
            "log" if column == "speedup" else "symlog", **({} if column == "speedup" else {"linthresh": 10})
        )
        axes.set_ylabel(label)
        axes.set_xticks(range(len(ordered)), ordered, rotation=90, fontsize=7)
        axes.legend(fontsize=7, ncols=6)
        figure.tight_layout()
        return figure

    groups = volta.filter((pl.col("method") == "PKS") & (pl.col("of") > 1)).sort("suite", "program")
    return (
        "Each cell: error of the program's cycles against full simulation, and how many times fewer warp "
        "instructions are simulated. *Silicon* is full simulation against the published cycles of a V100, "
        "of programs of which it is certain that they are those measured; *s* is the "
        "host's time for full simulation. PKS is fitted to the cycles of the full simulation, where the "
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
    from simt.spec import load_spec

    khz[VOLTA] = 1e3 * load_spec("qv100").clock.core_mhz
    return {
        method: by[other, method]["cycles"] / khz[other] / (by[VOLTA, method]["cycles"] / khz[VOLTA])
        for method in ("full", "PKA, artifact", "PKA, simt")
    }


def measure_stops(steps: Steps) -> pl.DataFrame:
    """Timelines of some programs, and where PKP would have stopped."""
    found: Rows = []
    for name, size in STOPPED.items():

        def shipped(name: str = name, size: int = size) -> Rows:
            gpu = GPU("qv100", timeline=500)
            WORKLOADS[name].run(gpu, size)
            return timeline_rows(name, gpu.result())

        found += steps.rows(name, shipped)
    for name in ("atax", "bfs"):
        row = next(row for row in rows() if row.recipe.program == name)

        def make(row: Any = row) -> Rows:
            run = simulate(row, "qv100", LIMIT, timeline=500)
            if run.result is None:
                raise NotMeasured(run.why)
            return timeline_rows(row.recipe.program, run.result)

        found += steps.rows(name, make)
    return pl.DataFrame(found, infer_schema_length=None)


def timeline_rows(program: str, result: Result) -> Rows:
    stops = {
        s: [
            o.stop_cycle if o.decision == "stop" else None
            for o in what_if(result, PKP(**{**PKP.presets["artifact"], "threshold": s})).outcomes
        ]
        for s in THRESHOLDS
    }
    longest = sorted(result.launches, key=lambda launch: -launch.cycles)[:3]
    found: Rows = []
    for launch in sorted(longest, key=lambda launch: launch.index):
        samples = launch.samples()
        step = max(1, len(samples) // 300)
        for i in range(0, len(samples) - step + 1, step):
            part = samples[i : i + step]
            hits = [s.l2_hit_rate for s in part if s.l2_hit_rate is not None]
            found.append(
                {
                    "program": program,
                    "launch": launch.index,
                    "name": launch.name,
                    "cycle": part[-1].end - launch.start_cycle,
                    "ipc": float(np.mean([s.ipc for s in part])),
                    "l2_miss": 100 - float(np.mean(hits)) if hits else None,
                    "dram": float(np.mean([s.dram_busy for s in part])),
                    **{f"stop {s}": stops[s][launch.index] for s in THRESHOLDS},
                }
            )
    return found


def show_stops(section: Section, frame: pl.DataFrame) -> str:
    def draw() -> Figure:
        programs = frame["program"].unique(maintain_order=True).to_list()
        figure, plots = plt.subplots(len(programs), 3, figsize=(10, 2.7 * len(programs)), squeeze=False)
        for line, program in zip(plots, programs, strict=True):
            mine = frame.filter(program=program)
            for axes, ((_, name), part) in zip(
                line, mine.group_by("launch", "name", maintain_order=True), strict=False
            ):
                axes.plot(part["cycle"] / 1e3, part["ipc"], color=SERIES["blue"], lw=1, label="IPC per SM")
                axes.set_title(f"{program}: {name.split('(')[0][:24]} ({part['launch'][0]})", fontsize=8)
                axes.set_ylim(bottom=0)
                right = axes.twinx()
                right.plot(
                    part["cycle"] / 1e3,
                    part["l2_miss"],
                    color=SERIES["orange"],
                    lw=0.8,
                    label="L2 miss rate, %",
                )
                right.plot(
                    part["cycle"] / 1e3,
                    part["dram"],
                    color=SERIES["aqua"],
                    lw=0.8,
                    label="DRAM utilisation, %",
                )
                right.set_ylim(0, 105)
                for s, style in zip(THRESHOLDS, ("-", "--", ":"), strict=True):
                    if part[f"stop {s}"][0] is not None:
                        axes.axvline(part[f"stop {s}"][0] / 1e3, color="k", ls=style, lw=1, label=f"s = {s}")
                axes.tick_params(labelsize=7)
                right.tick_params(labelsize=7)
                axes.set_xlabel("thousand cycles", fontsize=7)
            for axes in line[mine["launch"].n_unique() :]:
                axes.axis("off")
        handles = {}
        for axes in figure.axes:
            handles |= {
                label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=6, fontsize=8)
        figure.tight_layout(rect=(0, 0.07, 1, 1))
        return figure

    lines = []
    for (program, launch), part in frame.group_by("program", "launch", maintain_order=True):
        end = part["cycle"].max()
        cells = [part[f"stop {s}"][0] for s in THRESHOLDS]
        lines.append(
            [f"`{program}`", launch, f"{end:,}", *(f"{c:,}" if c is not None else "not" for c in cells)]
        )
    return (
        "Regular and irregular programs (ATAX, BFS, and two of simt's workloads), their longest launches, "
        "with the published code's rule: the standard "
        "deviation of the IPC since the start of the launch, over 3,000 cycles, below s; and a wave of "
        "CTAs (or 0.3 of "
        "them) finished. Cycles at which it stops:\n\n"
        + table(["program", "launch", "cycles", *(f"s = {s}" for s in THRESHOLDS)], lines)
        + "\n"
        + section.plot("figure-5", "IPC, L2 misses and DRAM utilisation over time, and where PKP stops", draw)
    )


def measure_groups(steps: Steps) -> pl.DataFrame:
    """PKS and two-level profiling on a network that is executed without timing."""

    def make() -> Rows:
        gpu = GPU("qv100", functional=True)
        with gpu.profiled() as executed:
            WORKLOADS["resnet50"].run(gpu, 64)
        profile = executed.profile()
        pks = PKS(seed=4).fit(profile)
        levels = {n: TwoLevel(detailed=n, seed=0).fit(profile) for n in (40, 80, 120)}
        found: Rows = []
        for i in range(len(profile)):
            row = {
                "launch": i,
                "name": profile.names[profile.name_codes[i]],
                "group": int(pks.labels_[i]),
                "duration_ns": float(profile.column("duration_ns")[i]),
            }
            for n, level in levels.items():
                plan = level.plan_
                row[f"error {n}"] = plan.estimated_ns / profile.total_ns - 1
                row[f"launches {n}"] = len(plan)
                row[f"group {n}"] = int(level.strata_[i])
            row |= {
                "error pks": pks.plan_.estimated_ns / profile.total_ns - 1,
                "launches pks": len(pks.plan_),
            }
            found.append(row)
        return found

    return pl.DataFrame(steps.rows("resnet50", make), infer_schema_length=None)


def show_groups(section: Section, frame: pl.DataFrame) -> str:
    def draw() -> Figure:
        figure, axes = plt.subplots(figsize=(8, 3.4))
        names = frame["name"].unique(maintain_order=True).to_list()
        groups = sorted(frame["group"].unique())
        left = np.zeros(len(groups))
        colours = [*SERIES.values(), "#888888", "#bbbbbb", "#444444"]
        for name, colour in zip(names, colours, strict=False):
            counts = [len(frame.filter(group=g, name=name)) for g in groups]
            axes.barh([str(g) for g in groups], counts, left=left, color=colour, label=name.split("(")[0])
            left += counts
        axes.set_xlabel("launches")
        axes.set_ylabel("group")
        axes.invert_yaxis()
        axes.legend(fontsize=7)
        figure.tight_layout()
        return figure

    first = frame.row(0, named=True)
    lines = [
        [
            "PKS, all launches in detail",
            len(frame),
            first["launches pks"],
            f"{100 * first['error pks']:+.1f} %",
        ]
    ]
    for n in (40, 80, 120):
        lines.append(
            [
                f"two-level, the first {n} in detail",
                n,
                first[f"launches {n}"],
                f"{100 * first[f'error {n}']:+.1f} %",
            ]
        )
    return (
        f"ResNet-50 ([workload](../workloads.md), 64 x 64, batch 1, {len(frame)} launches), executed "
        f"without timing on "
        "`qv100`; counters and expected times are those of [plans without a "
        "profile](../sampling/executed.md). Errors are "
        "of the expected time, and PKS's is a fit. MLPerf's programs and PyProf's tensor dimensions "
        "cannot be had without "
        "a GPU and their data sets: the second level has names, grids and blocks "
        "([two-level](../sampling/two-level.md)).\n\n"
        + table(["method", "launches in detail", "launches simulated", "error of the expected time"], lines)
        + "\n"
        + section.plot("figure-4", "Kernels in each group of PKS", draw)
    )


PKA = Paper(
    name="pka",
    title="PKA: Principal Kernel Analysis",
    about="""
C. Avalos Baddouh et al., "Principal Kernel Analysis: A Tractable Methodology to Simulate Scaled GPU "
"Workloads", MICRO 2021, table by table. The methods are described in [PKS](../sampling/pks.md),
[two-level](../sampling/two-level.md), [PKP](../control/pkp.md), [PKA](../control/pka.md),
[TBPoint](../sampling/tbpoint.md), [first-N](../sampling/first-n.md) and [single
iteration](../sampling/single-iteration.md). The programs are those of [the V100's
recipes](../whole-programs.md) that are simulated within four minutes; the paper's other programs and MLPerf
have no recipe.
""",
    items=(
        Item(
            "Figure 1",
            "hours to simulate, to profile and to run",
            "seconds of the host and of the GPU by program; nothing is profiled in silicon",
            "launches",
        ),
        Item("Table 1", "literature", "nothing to measure"),
        Item(
            "Figures 2, 3",
            "drawings of the method",
            "[PKA](../control/pka.md), [two-level](../sampling/two-level.md)",
        ),
        Item("Table 2", "the twelve counters", "[PKS](../sampling/pks.md): `simt.sampling.features.PAPER`"),
        Item("Table 3", "groups of some programs", "groups of all programs", "methods"),
        Item(
            "Figure 4",
            "kernels in the groups of ResNet",
            "the same of ResNet-50, and two-level profiling",
            "groups",
        ),
        Item(
            "Figure 5",
            "where PKP stops, for three thresholds",
            "the same, and two of simt's workloads",
            "stops",
        ),
        Item("Figure 6", "simulation time in full, with PKS, with PKA", "the same", "methods"),
        Item(
            "Figures 7, 8",
            "speedup and error of PKA, TBPoint and the first billion instructions",
            "the same",
            "methods",
        ),
        Item(
            "Table 4, silicon",
            "PKS on V100, RTX 2060, RTX 3070",
            "the same, on simulated GPUs: no silicon here",
            "generations",
        ),
        Item(
            "Table 4, simulation",
            "error and time of PKS and PKA, DRAM utilisation",
            "with TBPoint, first-N and one iteration beside them",
            "methods",
        ),
        Item(
            "Table 4, MLPerf and DeepBench",
            "scaled workloads",
            "cannot be had: programs, data sets and profiles "
            "need a GPU, and cuDNN's and cuBLAS's kernels are machine code without sources; GEMMs of "
            "CUTLASS are among "
            "the programs above",
        ),
        Item("Figures 9, 10", "V100 over RTX 2060; 80 over 40 SMs", "the same, full and PKA", "generations"),
    ),
    parts=(
        Part("launches", "Programs and their launches", measure_launches, show_launches, 35),
        Part(
            "generations", "Volta, Turing, Ampere; 80 and 40 SMs", measure_generations, show_generations, 20
        ),
        Part("methods", "Error and simulated time", measure_methods, show_methods),
        Part("stops", "Where PKP stops", measure_stops, show_stops),
        Part("groups", "Groups of a network, and two-level profiling", measure_groups, show_groups),
    ),
)

if __name__ == "__main__":
    main(PKA)
