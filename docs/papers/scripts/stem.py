"""STEM and ROOT ("Swift and Trustworthy Large-Scale GPU Simulation with Fine-Grained Error Modeling and
Sampling"): its tables and figures on simt. See papers.py for the arguments.

Real profiles are in the folder SIMT_PROFILES and not part of the repository. The launches of CUDA programs,
with the cycles of a full simulation, are those that pka.py measures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import Item, Paper, Part, Rows, Section, Steps, main, percent, table, times
from pka import PKA
from pka_programs import GPUS, VOLTA, profile_in
from recipes import executed as executed_program
from recipes import real_profile, rows

from simt.formatting import kernel_label
from simt.gpu import GPU
from simt.plots import SERIES
from simt.profile import Profile
from simt.sampling import compare, registry
from simt.validate.recipes import Row
from simt.workloads import WORKLOADS

SEEDS, ERROR = 10, 0.05
FILES = {
    "V100 training": "v100_training.kineto.json.gz",
    "RTX 2080 Ti, ResNet training": "rtx2080ti_resnet_training.kineto.json.gz",
    "H100, OWLv2 inference": "h100_owlv2_inference.kineto.json.gz",
    "MI300X, OWLv2 inference": "mi300x_owlv2_inference.kineto.json.gz",
    "MI350, 50 training steps": "mi350_training_50steps.rocprofv3.json.gz",
    "A100, CloverLeaf": "a100_cloverleaf.nsys.sqlite.gz",
    "2 H100, LLM training": "h100_2gpu_llm_training.nsys.sqlite.gz",
}
SHAPED = "PKS, of the launch's shape"
REAL = {
    "random 0.1 %": "random p=0.001",
    "random 1 %": "random p=0.01",
    SHAPED: "pks",
    "Sieve, of the launch's threads": "sieve instructions=launch__thread_count",
    "STEM": "stem",
    "STEM+ROOT": "root allocation=name",
    "Neyman": "neyman",
}
"""The real profiles have times and shapes, no counters."""
COUNTED = {
    "random 1 %": "random p=0.01",
    "PKS": "pks",
    "Sieve": "sieve",
    "TBPoint": "tbpoint",
    "STEM": "stem",
    "STEM+ROOT": "root allocation=name",
    "Neyman": "neyman",
}
COLOURS = dict(zip(dict.fromkeys([*COUNTED, *REAL]), [*SERIES.values(), "#888888", "#444444"], strict=False))
EXECUTED_ON = {"V100": "qv100", "H100": "h100"}
RODINIA = ("lud-512", "backprop", "dwt2d-1024", "needle", "b+tree", "bfs")
LIMIT = 300.0
"""Seconds of the wall clock for one of these."""
NETWORKS = {"resnet18": 64, "resnet50": 64, "resnet152": 64, "vgg16": 64, "pagerank": 1024}


def compared(program: str, profile: Profile, methods: dict[str, str], truth: Profile | None = None) -> Rows:
    samplers = {label: registry.from_text(text, error=ERROR) for label, text in methods.items()}
    found = compare(profile, samplers, SEEDS, truth)
    for label, why in found.left_out.items():
        print(f"    {program}: {label}: {why}")
    return [{"program": program, "of": len(profile), **row} for row in found.runs.to_dicts()]


def fitted_to(profile: Profile) -> dict[str, str]:
    """REAL, where PKS has what the profile has of the launch's shape: ROCm's traces lack registers."""
    shapes = ["launch__grid_size", "launch__block_size"]
    shapes += [name for name in ("registers", "shared_bytes") if profile.has(name)]
    return REAL | {SHAPED: f"pks features={json.dumps(shapes, separators=(',', ':'))}"}


def frame_of(found: Rows) -> pl.DataFrame:
    return pl.DataFrame(found, infer_schema_length=None)


def measure_real(steps: Steps) -> pl.DataFrame:
    found: Rows = []
    for name in FILES:

        def make(name: str = name) -> Rows:
            profile = real_profile(FILES[name])
            return compared(name, profile, fitted_to(profile))

        found += steps.rows(name, make)
    return frame_of(found)


def measure_cuda(steps: Steps) -> pl.DataFrame:
    """CUDA programs, with the cycles of a full simulation."""
    launches, found = PKA.frame("launches"), Rows()
    for (program,), frame in launches.group_by("program", maintain_order=True):
        if len(frame) > 1:
            found += steps.rows(program, partial(compared, program, profile_in(frame), COUNTED))
    return frame_of([{**row, "suite": "CUDA programs"} for row in found])


def executed(run: Callable[[GPU], object], gpu: str) -> tuple[Profile, float]:
    """A profile of what a program executes, and the seconds that it took."""
    device, start = GPU(gpu, functional=True), time.process_time()
    with device.profiled() as found:
        run(device)
    return found.profile(), time.process_time() - start


def torch_programs() -> dict[str, Callable[[GPU], object]]:
    """PyTorch's, if it is there."""
    try:
        import torch
    except ModuleNotFoundError:
        return {}
    from simt.examples.pytorch.gpt2 import Gpt2

    def gpt2(gpu: GPU) -> None:
        torch.manual_seed(0)
        model = Gpt2(layers=4, width=64, heads=4, words=512, context=64).eval()
        compiled = torch.compile(model, backend="simt", options={"gpu": gpu}, dynamic=False)
        tokens = torch.randint(0, 512, (1, 16))
        with torch.no_grad():
            for _ in range(12):
                compiled(tokens)

    def mlp(gpu: GPU) -> None:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))
        compiled = torch.compile(model, backend="simt", options={"gpu": gpu}, dynamic=False)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(compiled(x), y).backward()
            optimiser.step()

    return {"PyTorch GPT-2 (4 blocks), 12 passes": gpt2, "PyTorch MLP, 20 training steps": mlp}


def measure_executed(steps: Steps) -> pl.DataFrame:
    """Programs that are executed without timing, on two GPUs' expected times."""
    found: Rows = []
    programs: dict[str, Callable[[GPU], object]] = {
        f"{name} {size}": (lambda gpu, name=name, size=size: WORKLOADS[name].run(gpu, size))
        for name, size in NETWORKS.items()
    }
    programs |= torch_programs()
    for (name, run), (card, gpu) in product(programs.items(), EXECUTED_ON.items()):

        def make(name: str = f"{name}, {card}", run: Callable[[GPU], object] = run, gpu: str = gpu) -> Rows:
            profile, seconds = executed(run, gpu)
            return [{**row, "profile_seconds": seconds} for row in compared(name, profile, COUNTED)]

        found += steps.rows(f"{name}, {card}", make)
    return frame_of([{**row, "suite": "executed without timing"} for row in found])


def measure_rodinia(steps: Steps) -> pl.DataFrame:
    """Rodinia's programs of several launches at the recipes' sizes, executed without timing."""
    known, found = {row.recipe.program: row for row in rows()}, Rows()
    for (card, gpu), name in product(EXECUTED_ON.items(), RODINIA):
        if name not in known:
            continue

        def make(label: str = f"{name}, {card}", row: Row = known[name], gpu: str = gpu) -> Rows:
            profile, seconds = executed_program(row, gpu, LIMIT)
            return [{**each, "profile_seconds": seconds} for each in compared(label, profile, COUNTED)]

        found += steps.rows(f"{name}, {card}", make)
    return frame_of(found)


def show_rodinia(section: Section, frame: pl.DataFrame) -> str:
    return show_compared(
        section,
        frame,
        COUNTED,
        "Rodinia's programs at the recipes' sizes, executed without timing; times are expected ones, as of "
        "the programs [above](#executed). Left out: `hotspot`, `lava-md` and `nn`, which have one launch; "
        "`srad-v1`, which takes minutes; `myocyte` (3,913 launches), which was not tried.",
        after="\n" + costs(frame),
    )


def costs(frame: pl.DataFrame) -> str:
    """What the profiles of programs that are executed cost."""
    seconds = frame.group_by("program", maintain_order=True).agg(pl.first("profile_seconds"), pl.first("of"))
    return table(
        ["program", "launches", "s of the processor for the profile"],
        [
            [r["program"], f"{r['of']:,}", f"{r['profile_seconds']:.1f}"]
            for r in seconds.iter_rows(named=True)
        ],
    )


def means(frame: pl.DataFrame, methods: dict[str, str]) -> list[list[object]]:
    """By method: the paper's arithmetic mean of errors and harmonic mean of speedups, over programs."""
    lines: list[list[object]] = []
    for method in methods:
        mine = frame.filter(method=method)
        if not len(mine):
            continue
        by = mine.group_by("program").agg(
            pl.mean("error"),
            pl.max("error").alias("worst"),
            (1 / (1 / pl.col("speedup")).mean()).alias("speedup"),
            (1 / (1 / pl.col("makespan_speedup")).mean()).alias("makespan"),
        )
        speedup = by["speedup"].to_numpy()
        lines.append(
            [
                method,
                percent(by["error"].mean(), 2),
                percent(by["worst"].max()),
                times(float(1 / np.mean(1 / speedup))),
                times(float(np.exp(np.mean(np.log(speedup))))),
                times(float(1 / np.mean(1 / by["makespan"].to_numpy()))),
                len(by),
            ]
        )
    return lines


MEANS = (
    "method",
    "mean error",
    "worst seed",
    "speedup, harmonic",
    "geometric",
    "side by side, harmonic",
    "programs",
)


def bars(frame: pl.DataFrame, methods: dict[str, str]) -> Figure:
    """Speedup above, error below, by program."""
    programs = frame["program"].unique(maintain_order=True).to_list()
    figure, plots = plt.subplots(2, 1, figsize=(10, 5.6), sharex=True)
    width = 0.8 / len(methods)
    for k, method in enumerate(methods):
        speedup, error = [], []
        for program in programs:
            mine = frame.filter(program=program, method=method)
            speedup.append(1 / (1 / mine["speedup"]).mean() if len(mine) else np.nan)
            error.append(100 * mine["error"].mean() if len(mine) else np.nan)
        x = np.arange(len(programs)) + width * (k - len(methods) / 2 + 0.5)
        plots[0].bar(x, speedup, width, color=COLOURS[method], label=method)
        plots[1].bar(x, np.maximum(error, 0.01), width, color=COLOURS[method])
    plots[0].set_yscale("log")
    plots[1].set_yscale("log")
    plots[0].set_ylabel("speedup, times")
    plots[1].set_ylabel("error, % (0.01: less)")
    plots[1].set_xticks(range(len(programs)), programs, rotation=30, ha="right", fontsize=7)
    figure.legend(*plots[0].get_legend_handles_labels(), loc="upper center", fontsize=7, ncols=len(methods))
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    return figure


def scatter(frame: pl.DataFrame, methods: dict[str, str]) -> Figure:
    figure, axes = plt.subplots(figsize=(8, 4.2))
    for method, marker in zip(methods, "osD^vPX", strict=True):
        mine = (
            frame.filter(method=method)
            .group_by("program")
            .agg(pl.mean("error"), (1 / (1 / pl.col("speedup")).mean()).alias("speedup"))
        )
        if len(mine):
            # Hollow, as many lie on each other: where nothing is left out, all do.
            style: dict[str, Any] = {"color": COLOURS[method], "mfc": "none", "ms": 5}
            axes.plot(mine["speedup"], 100 * mine["error"], marker, label=method, **style)
            mean = len(mine) / (1 / mine["speedup"]).sum()
            axes.plot([mean], [100 * mine["error"].mean()], marker, color=COLOURS[method], mec="k", ms=9)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(-0.1, 2 * axes.get_ylim()[1])
    axes.set_xlabel("speedup, times")
    axes.set_ylabel("error, %")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    figure.tight_layout()
    return figure


def show_compared(
    section: Section,
    frame: pl.DataFrame,
    methods: dict[str, str],
    before: str,
    after: str = "",
    paper: str = "",
) -> str:
    name = section.part
    lines = []
    for program in frame["program"].unique(maintain_order=True):
        cells = []
        for method in methods:
            mine = frame.filter(program=program, method=method)
            speedup = times(1 / (1 / mine["speedup"]).mean()) if len(mine) else ""
            cells.append(f"{percent(mine['error'].mean())}, {speedup}" if len(mine) else "")
        lines.append([program, f"{frame.filter(program=program)['of'][0]:,}", *cells])
    return (
        before
        + "\n\n"
        + table(MEANS, means(frame, methods))
        + paper
        + "\nEach cell: mean error over the seeds, speedup (harmonic):\n\n"
        + table(["program", "launches", *methods], lines)
        + "\n"
        + section.plot(f"{name}-bars", "Speedup and error by program", lambda: bars(frame, methods))
        + "\n"
        + section.plot(
            f"{name}-scatter",
            "Error and speedup of each program; filled: the mean",
            lambda: scatter(frame, methods),
        )
        + after
    )


def show_real(section: Section, frame: pl.DataFrame) -> str:
    return show_compared(
        section,
        frame,
        REAL,
        f"Seven real profiles, a bound of 5 % at 95 %, {SEEDS} seeds; communication and copies are left "
        f"out. The "
        "profiles have times and no counters, so PKS and Sieve are given what there is: PKS the launch's "
        "shape, Sieve "
        "its threads. The paper's CASIO and Hugging Face suites take the place of these with 10^5 to 10^7 "
        "launches, and "
        "so have larger speedups.",
        paper="\nThe paper, CASIO: PKA 29.3 % and 1,425 x, Sieve 24.1 % and 297 x, STEM 0.37 % and 8.1 "
        "x, STEM+ROOT "
        "0.36 % and 110 x; Hugging Face: STEM 0.21 % and 1,389 x, STEM+ROOT 0.57 % and 31,719 x.\n",
    )


def show_cuda(section: Section, frame: pl.DataFrame) -> str:
    return show_compared(
        section,
        frame,
        COUNTED,
        "The programs of [PKA's page](pka.md) with more than one launch (Rodinia, PolyBench, SDK, "
        "CUTLASS, Parboil): times "
        "and counters are those of full simulation on the V100, so that all competitors have what they "
        "need. These "
        "programs are small, as the paper says of Rodinia: with few launches of each kernel, a bound of 5 "
        "% leaves little "
        "out.",
        paper="\nThe paper, Rodinia: PKA 47.7 % and 6.2 x, Sieve 27.5 % and 4.8 x, STEM 0.09 % and 1.2 "
        "x, STEM+ROOT 6.7 % "
        "and 2.5 x.\n",
    )


def show_executed(section: Section, frame: pl.DataFrame) -> str:
    return show_compared(
        section,
        frame,
        COUNTED,
        "Networks ([workloads](../workloads.md), batch 1, 64 x 64) and PyTorch programs, executed without "
        "timing on two GPUs, for each of which PyTorch compiles its own kernels. The times are [expected "
        "ones](../sampling/executed.md): they follow from what a launch executes, so launches that execute "
        "the same take the same, and errors are smaller than with measured times.",
        after="\nWhat a profile costs (with PyTorch's compiler):\n\n" + costs(frame),
    )


def measure_histograms(steps: Steps) -> pl.DataFrame:
    """Times of the launches of some clusters, in 40 bins, with mean and deviation."""
    found: Rows = []
    for name in ("RTX 2080 Ti, ResNet training", "MI350, 50 training steps"):
        found += steps.rows(name, lambda name=name: histograms(name))
    return frame_of(found)


def histograms(name: str) -> Rows:
    profile = real_profile(FILES[name])
    durations = profile.column("duration_ns") / 1e3
    found: Rows = []
    kernels = np.asarray(profile.name_codes)
    ways = {"by name": kernels}
    for label in (SHAPED, "Sieve, of the launch's threads", "STEM+ROOT"):
        ways[label] = registry.from_text(fitted_to(profile)[label], error=ERROR, seed=0).fit(profile).strata_
    for way, strata in ways.items():
        sums = np.bincount(strata, weights=durations)
        for rank, cluster in enumerate(np.argsort(-sums, kind="stable")[:3]):
            values = durations[strata == cluster]
            counts, edges = np.histogram(values, bins=40)
            kernel = profile.names[kernels[np.flatnonzero(strata == cluster)[0]]]
            about = {
                "program": name,
                "way": way,
                "rank": rank,
                "kernel": kernel,
                "launches": len(values),
                "mean": float(values.mean()),
                "deviation": float(values.std()),
                "kernels": len(np.unique(kernels[strata == cluster])),
            }
            found += [
                {**about, "low": float(edges[i]), "high": float(edges[i + 1]), "count": int(counts[i])}
                for i in range(40)
            ]
    return found


def show_histograms(section: Section, frame: pl.DataFrame) -> str:
    def draw(program: str) -> Figure:
        mine = frame.filter(program=program)
        ways = mine["way"].unique(maintain_order=True).to_list()
        figure, plots = plt.subplots(len(ways), 3, figsize=(10, 1.9 * len(ways)), squeeze=False)
        for line, way in zip(plots, ways, strict=True):
            for rank, axes in enumerate(line):
                part = mine.filter(way=way, rank=rank)
                if not len(part):
                    axes.axis("off")
                    continue
                width = part["high"] - part["low"]
                axes.bar(part["low"], part["count"], width, align="edge", color=SERIES["blue"])
                mean, deviation = part["mean"][0], part["deviation"][0]
                if deviation > 0:
                    x = np.linspace(part["low"].min(), part["high"].max(), 200)
                    density = np.exp(-((x - mean) ** 2) / (2 * deviation**2)) / (
                        deviation * np.sqrt(2 * np.pi)
                    )
                    axes.plot(x, density * part["launches"][0] * width[0], "r:", lw=1)
                kernel = kernel_label(part["kernel"][0], 34)
                axes.set_title(f"{way.split(',')[0]}: {kernel}", fontsize=7)
                if not rank:
                    axes.set_ylabel("launches", fontsize=7)
                axes.tick_params(labelsize=6)
        for axes in plots[-1]:
            axes.set_xlabel("us", fontsize=7)
        figure.tight_layout()
        return figure

    lines = [
        [r["program"], r["way"], r["launches"], r["kernels"], percent(r["deviation"] / r["mean"])]
        for r in frame.unique(["program", "way", "rank"], maintain_order=True).iter_rows(named=True)
    ]
    text = "".join(
        section.plot(
            f"histograms-{i}",
            f"Times of launches in clusters, {program}, with the normal curve of their mean and deviation",
            partial(draw, program),
        )
        + "\n"
        for i, program in enumerate(frame["program"].unique(maintain_order=True), 1)
    )
    return (
        "Times of the launches in the three clusters with the most time, by name (Figures 2 and 3), as "
        "PKS and Sieve "
        "cluster (Figure 4), and as ROOT does. Red: the normal curve of the same mean and deviation.\n\n"
        + text
        + table(["profile", "clusters", "launches", "kernels in it", "deviation / mean"], lines)
    )


def measure_exploration(steps: Steps) -> pl.DataFrame:
    """Plans made once, judged on other GPUs: real pairs, and simulated ones."""
    found: Rows = []

    def real() -> Rows:
        first, second = (real_profile(FILES[f"{gpu}, OWLv2 inference"]) for gpu in ("H100", "MI300X"))
        return compared("OWLv2, H100 -> MI300X (real)", first, fitted_to(first), second)

    found += steps.rows("owlv2", real)
    volta, others = PKA.frame("launches"), PKA.frame("generations")
    for gpu in [gpu for gpu in GPUS if gpu != VOLTA]:
        for (program,), frame in others.filter(gpu=gpu).group_by("program", maintain_order=True):
            first = volta.filter(program=program)
            if 1 < len(first) == len(frame):
                pair = partial(compared, program, profile_in(first), COUNTED, profile_in(frame))
                found += [{**row, "to": gpu} for row in steps.rows(f"{program}, {gpu}", pair)]
    return frame_of(found)


def show_exploration(section: Section, frame: pl.DataFrame) -> str:
    lines = []
    real = frame.filter(pl.col("to").is_null())
    for label, part, methods in [
        ("H100 → MI300X, OWLv2, real", real, REAL),
        *((f"V100 → {gpu}, simulated", frame.filter(to=gpu), COUNTED) for gpu in GPUS if gpu != VOLTA),
    ]:
        lines += [[label, *line] for line in means(part, methods)]
    return (
        "The paper explores designs with the plan of one profile. A plan is made on the first GPU, once, "
        "and gives the "
        "total on the second; errors are against that one's own total. Simulated: the CUDA programs above "
        "with more than "
        "one launch, on the GPUs of [PKA's page](pka.md#generations).\n\n" + table(["", *MEANS], lines)
    )


STEM = Paper(
    name="stem",
    title="STEM and ROOT",
    about="""
"Swift and Trustworthy Large-Scale GPU Simulation with Fine-Grained Error Modeling and Sampling", table by
table. The methods are described in [STEM](../sampling/stem.md) and [ROOT](../sampling/root.md), the
competitors in [PKS](../sampling/pks.md), [Sieve](../sampling/sieve.md), [TBPoint](../sampling/tbpoint.md)
and [random](../sampling/random.md); [Neyman](../sampling/neyman.md) is simt's own. Means are the paper's:
arithmetic of the errors, harmonic of the speedups.
""",
    items=(
        Item(
            "Figures 1, 5, 6",
            "drawings of the method",
            "[STEM](../sampling/stem.md), [ROOT](../sampling/root.md)",
        ),
        Item(
            "Table I",
            "the kernels of BERT with the most time, and PKA's and Sieve's features of them",
            "`simt sample PROFILE` lists the strata of any profile with their shares of the time; BERT's "
            "profile is not at hand",
        ),
        Item(
            "Figures 2, 3",
            "times of kernels, with the normal curve",
            "the same of two real profiles",
            "histograms",
        ),
        Item("Figure 4", "clusters of PKA and Sieve", "the same, with ROOT's beside them", "histograms"),
        Item(
            "Figures 7, 8; Table II, Rodinia",
            "speedup and error",
            "CUDA programs, full simulation as the truth; larger ones by [functional execution](#rodinia)",
            "cuda",
        ),
        Item("Figures 7, 8; Table II, CASIO", "speedup and error", "real profiles", "real"),
        Item(
            "Table II; Figure 10, Hugging Face",
            "the same, larger",
            "PyTorch programs and networks, executed without "
            "timing; the suite itself needs a GPU and its profiles",
            "executed",
        ),
        Item("Figure 9", "error against speedup", "in each of the three sections", "real"),
        Item("Design-space exploration", "one plan for many GPUs", "the same", "exploration"),
        Item(
            "Profiling cost",
            "Nsight Compute against Nsight Systems",
            "cannot be had without a GPU; what functional profiles cost",
            "executed",
        ),
        Item(
            "Makespan",
            "chosen launches side by side",
            "the column *side by side*: all chosen launches at once, so that the longest decides. Streams "
            "and graphs are not modelled by plans, which are sums of kernel times "
            "([limits](../sampling/README.md#limits-of-every-method))",
            "real",
        ),
    ),
    parts=(
        Part("real", "Real profiles", measure_real, show_real),
        Part("cuda", "CUDA programs, simulated in full", measure_cuda, show_cuda),
        Part("executed", "Networks and PyTorch programs", measure_executed, show_executed),
        Part("rodinia", "Rodinia, executed", measure_rodinia, show_rodinia),
        Part("histograms", "Clusters and the normal curve", measure_histograms, show_histograms),
        Part("exploration", "Plans made once for several GPUs", measure_exploration, show_exploration),
    ),
)

if __name__ == "__main__":
    main(STEM)
