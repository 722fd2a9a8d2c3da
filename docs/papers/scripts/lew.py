"""Lew et al., "Analyzing Machine Learning Workloads Using a Detailed GPU Simulator" (2018): its figures on
simt.

See papers.py for the arguments. LeNet classifies MNIST's images if SIMT_MNIST names a folder that has
t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (or .gz), else scikit-learn's digits, enlarged to 28 x 28.
"""

from __future__ import annotations

import gzip
import math
import os
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure
from papers import WORK, Item, NotMeasured, Paper, Part, Rows, Section, Steps, main, table
from recipes import rows, simulate

from simt.control import Controller, Interval
from simt.errors import SimtError
from simt.examples.convolution import ALGORITHMS, DIRECTIONS
from simt.examples.convolution.study import COLD, LAYERS, runs
from simt.gpu import GPU
from simt.plots import SERIES
from simt.spec import load_spec
from simt.validate.whole_programs import Setting, clocked, cycles_of, timed_launches

CARD = "titanx"
"""A Pascal as the paper's GTX 1050, with more SMs."""
TURING = "gtx1650-gddr6"
"""The GTX 1050's successor, with 14 SMs."""
ENERGIES = "rtx2060"
"""A Turing whose energies are known, for PyTorch: Triton's assembler has no Pascal."""
LONGEST_NS = 6e4
"""The longest kernel on silicon that is simulated."""
PROBLEMS = ("tiny", "lenet-1", "lenet-2")
WATCHED = {"implicit_gemm": "tiny", "winograd_nonfused": "tiny", "fft": "tiny"}
INTERVAL = 500
BINS = (0, 8, 16, 24, 31, 32)
"""Active lanes: W1-8, W9-16, W17-24, W25-31, W32."""
IMAGES = 3
LIMIT = 240.0


def measure_convolutions(steps: Steps) -> pl.DataFrame:
    found: Rows = []
    for problem in PROBLEMS:
        for algorithm in ALGORITHMS:
            found += steps.rows(f"{problem}, {algorithm}", partial(convolved, problem, algorithm))
    return pl.DataFrame(found, infer_schema_length=None)


def convolved(problem: str, algorithm: str) -> Rows:
    """The three directions; none if the algorithm cannot compute it."""
    done = runs(CARD, LAYERS[problem], [algorithm], list(DIRECTIONS), timeline=INTERVAL)
    return [{"problem": problem, **run.row()} for run in done]


def show_convolutions(section: Section, frame: pl.DataFrame) -> str:
    lines = []
    for problem in frame["problem"].unique(maintain_order=True):
        for algorithm in ALGORITHMS:
            mine = frame.filter(problem=problem, algorithm=algorithm)
            if not len(mine):
                lines.append([f"`{problem}`", f"`{algorithm}`", *["cannot compute it"] * 3, "", "", "", ""])
                continue
            by = {row["direction"]: row for row in mine.iter_rows(named=True)}
            forward = by["forward"]
            lines.append(
                [
                    f"`{problem}`",
                    f"`{algorithm}`",
                    *(f"{by[d]['cycles']:,}" for d in DIRECTIONS),
                    f"{forward['ipc']:.2f}",
                    f"{forward['dram_bytes'] / 1e6:.2f}",
                    f"{forward['dram_utilisation'] or 0:.1f} %",
                    f"{max(r['error'] for r in by.values()):.0e}",
                ]
            )

    def draw() -> Figure:
        problems = frame["problem"].unique(maintain_order=True).to_list()
        figure, plots = plt.subplots(1, len(problems), figsize=(10, 3.2), squeeze=False)
        for axes, problem in zip(plots[0], problems, strict=True):
            mine = frame.filter(problem=problem)
            names = [name for name in ALGORITHMS if len(mine.filter(algorithm=name))]
            for k, (direction, colour) in enumerate(zip(DIRECTIONS, SERIES.values(), strict=False)):
                values = [mine.filter(algorithm=n, direction=direction)["cycles"][0] / 1e3 for n in names]
                axes.bar(
                    np.arange(len(names)) + 0.27 * (k - 1),
                    values,
                    0.27,
                    color=colour,
                    label=direction.replace("_", " "),
                )
            axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=7)
            axes.set_title(problem, fontsize=9)
        plots[0, 0].set_ylabel("thousand cycles")
        handles, labels = plots[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=3, fontsize=7)
        figure.tight_layout(rect=(0, 0, 1, 0.94))
        return figure

    return (
        f"Cycles on `{CARD}` from cold caches; IPC per SM, DRAM and the error of values are of the "
        f"forward convolution and of "
        "all three. `lenet-1` and `lenet-2` are LeNet's convolutions for one image of MNIST, `tiny` has 4 "
        "channels of 14 x "
        "14. [Convolution algorithms](../convolution.md) has a layer on which all run, DRAM by bank over "
        "time, and what "
        "limits each. The paper's algorithms, as cuDNN's documentation describes them: forward FFT, FFT "
        "tiling, GEMM (`explicit_gemm`), implicit GEMM, Winograd and Winograd non-fused; backward 0 "
        "(`atomic_gemm`), 1 (`implicit_gemm`), 3 (`indexed_gemm`) and the same transforms. Each is here in "
        "all directions.\n\n"
        + table(
            [
                "layer",
                "algorithm",
                "forward",
                "backward data",
                "backward filter",
                "IPC",
                "DRAM MB",
                "DRAM utilisation",
                "error",
            ],
            lines,
        )
        + "\n"
        + section.plot("convolutions", "Cycles of each algorithm and direction", draw)
    )


class BySm(Controller):
    """Simulates everything, and keeps the instructions of each SM over time."""

    method = "by-sm"
    interval = INTERVAL

    def start(self) -> BySm:
        self.seen_: list[list[tuple[int, npt.NDArray[np.uint64]]]] = []
        return super().start()

    def begin(self, launch: Any) -> Any:
        self._now: list[tuple[int, npt.NDArray[np.uint64]]] = []
        self.seen_.append(self._now)
        return super().begin(launch)

    def observe(self, interval: Interval) -> Any:
        self._now.append((interval.end, interval.sm_instructions.copy()))
        return super().observe(interval)


def measure_time(steps: Steps) -> pl.DataFrame:
    found: Rows = []
    for algorithm, problem in WATCHED.items():
        found += steps.rows(algorithm, partial(over_time, algorithm, problem))
    return pl.DataFrame(found, infer_schema_length=None)


def over_time(algorithm: str, problem: str) -> Rows:
    """IPC of each SM, and issued warp instructions by active lanes, for each interval of each launch."""
    layer, watch = LAYERS[problem], BySm()
    gpu = GPU(CARD, set=(COLD,), timeline=INTERVAL, controller=watch)
    x, w, _ = layer.inputs()
    ALGORITHMS[algorithm](gpu, layer).forward(gpu.array(x), gpu.array(w))
    found: Rows = []
    for launch, seen in zip(gpu.result().launches, watch.seen_, strict=True):
        begin, start, before = launch.start_cycle + launch.launch_latency, 0, np.zeros(1)
        about = {"algorithm": algorithm, "problem": problem, "launch": launch.index, "name": launch.name}
        for end, sums in [(0, 0 * seen[0][1]), *seen]:  # at the dispatch: nothing since the launch before
            sums = sums.astype(float)
            if not end:
                before = sums
            for sm, ipc in enumerate((sums - before) / max(1, end - start)):
                found.append({**about, "kind": "ipc", "cycle": begin + end, "which": sm, "value": float(ipc)})
            start, before = end, sums
        activity, pc = launch.instruction_activity(), launch.pc
        if activity is None or pc is None:
            continue
        lanes = np.array(pc["threads"]) / np.maximum(1, np.array(pc["issued"]))
        which = np.clip(np.digitize(lanes, BINS, right=True) - 1, 0, len(BINS) - 2)
        for i, end in enumerate(activity.end):
            for b in range(len(BINS) - 1):
                issued = int(activity.issued[i, which[: activity.issued.shape[1]] == b].sum())
                found.append(
                    {**about, "kind": "lanes", "cycle": int(end), "which": b, "value": float(issued)}
                )
    return found


def show_time(section: Section, frame: pl.DataFrame) -> str:
    algorithms = frame["algorithm"].unique(maintain_order=True).to_list()
    labels = [f"W{low + 1}-{high}" if low + 1 < high else f"W{high}" for low, high in pairwise(BINS)]

    def sms() -> Figure:
        figure, plots = plt.subplots(len(algorithms), 1, figsize=(9, 2.3 * len(algorithms)), squeeze=False)
        for (axes,), algorithm in zip(plots, algorithms, strict=True):
            mine = frame.filter(algorithm=algorithm, kind="ipc").sort("cycle", "which")
            cycles = mine["cycle"].unique().sort()
            grid = np.full((mine["which"].max() + 1, len(cycles)), np.nan)  # type: ignore[operator]
            at = {cycle: i for i, cycle in enumerate(cycles)}
            for row in mine.iter_rows(named=True):
                grid[row["which"], at[row["cycle"]]] = row["value"]
            edges = np.concatenate([[cycles[0] - INTERVAL], cycles]) / 1e3
            image = axes.pcolormesh(edges, np.arange(grid.shape[0] + 1), grid, cmap="viridis", vmin=0)
            figure.colorbar(image, ax=axes, label="IPC")
            axes.set_title(algorithm, fontsize=8)
            axes.set_ylabel("SM")
        plots[-1, 0].set_xlabel("thousand cycles")
        figure.tight_layout()
        return figure

    def lanes() -> Figure:
        figure, plots = plt.subplots(len(algorithms), 1, figsize=(9, 2.1 * len(algorithms)), squeeze=False)
        for (axes,), algorithm in zip(plots, algorithms, strict=True):
            mine = frame.filter(algorithm=algorithm, kind="lanes")
            sums = mine.group_by("cycle", "which").agg(pl.sum("value")).sort("cycle", "which")
            cycles = sums["cycle"].unique().sort().to_numpy()
            bottom = np.zeros(len(cycles))
            for b, (label, colour) in enumerate(zip(labels, SERIES.values(), strict=False)):
                part = dict(sums.filter(which=b).select("cycle", "value").iter_rows())
                values = np.array([part.get(c, 0.0) for c in cycles]) / INTERVAL
                axes.bar(
                    cycles / 1e3,
                    values,
                    INTERVAL / 1e3,
                    bottom=bottom,
                    color=colour,
                    label=label,
                    align="edge",
                )
                bottom += values
            axes.set_title(algorithm, fontsize=8)
            axes.set_ylabel("issued per cycle")
        plots[-1, 0].set_xlabel("thousand cycles")
        handles, names = plots[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower center", ncols=5, fontsize=8)
        figure.tight_layout(rect=(0, 0.05, 1, 1))
        return figure

    lines = []
    for algorithm in algorithms:
        mine = frame.filter(algorithm=algorithm, kind="lanes")
        total = mine["value"].sum()
        shares = [mine.filter(which=b)["value"].sum() / total for b in range(len(labels))]
        lines.append(
            [f"`{algorithm}`", mine["launch"].n_unique(), *(f"{100 * share:.1f} %" for share in shares)]
        )
    return (
        f"Forward convolutions of `tiny` on `{CARD}`. IPC of each SM over time: launches with few CTAs "
        f"leave SMs empty, which "
        "a mean hides.\n\n"
        + section.plot("sms", "IPC of each SM over time", sms)
        + "\nWarp instructions issued on the whole GPU in each cycle, by active lanes. An instruction is "
        "in the bin of its "
        "mean lanes over the launch: the timeline counts the issues of each instruction, not the lanes of "
        "each issue.\n\n"
        + section.plot("lanes", "Issue by active lanes over time", lanes)
        + "\n"
        + table(["algorithm", "launches", *labels], lines)
    )


def idx(path: Path) -> npt.NDArray[np.uint8]:
    """An array in MNIST's format, compressed or not: two zeros, type 8 (bytes), the number of dimensions,
    each dimension (big-endian), and the bytes. Raises NotMeasured."""
    packed = path.with_name(f"{path.name}.gz")
    data = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    head = f"{path}: begins with {data[:4].hex()}, expected 0000 08 and the number of dimensions"
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise NotMeasured(head)
    shape = tuple(int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3]))
    values = data[4 + 4 * len(shape) :]
    if len(values) != math.prod(shape):
        raise NotMeasured(
            f"{path}: {len(values):,} bytes of values, expected {math.prod(shape):,} for {shape}"
        )
    return np.frombuffer(values, np.uint8).reshape(shape)


def images() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], str]:
    """Images of 28 x 28, 0 to 1, labels, and where they are from. Raises NotMeasured."""
    if os.environ.get("SIMT_MNIST"):
        folder = Path(os.environ["SIMT_MNIST"])
        try:
            pixels, labels = idx(folder / "t10k-images-idx3-ubyte"), idx(folder / "t10k-labels-idx1-ubyte")
        except OSError as error:
            raise NotMeasured(f"SIMT_MNIST: {error}") from None
        if pixels.shape[1:] != (28, 28) or labels.shape != pixels.shape[:1]:
            raise NotMeasured(
                f"{folder}: images {pixels.shape} and labels {labels.shape}, expected n x 28 x 28"
            )
        return pixels.astype(np.float32)[:, None] / 255, labels.astype(np.int64), "MNIST"
    from sklearn.datasets import load_digits

    digits = load_digits()
    small = digits.images.astype(np.float32) / 16
    large = np.zeros((len(small), 1, 28, 28), np.float32)
    large[:, 0, 2:26, 2:26] = np.repeat(np.repeat(small, 3, axis=1), 3, axis=2)
    return large, digits.target.astype(np.int64), "scikit-learn's digits, enlarged"


def measure_lenet(steps: Steps) -> pl.DataFrame:
    """LeNet, trained by PyTorch on the CPU, classifies images that it has not seen."""

    def make() -> Rows:
        try:
            import torch
        except ModuleNotFoundError as error:
            raise NotMeasured(f"{error}: pip install 'simt[torch]'") from None
        torch.manual_seed(0)
        nn = torch.nn
        model = nn.Sequential(
            nn.Conv2d(1, 20, 5),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(800, 500),
            nn.ReLU(),
            nn.Linear(500, 10),
        )
        x, y, source = images()
        pixels, labels = torch.from_numpy(x), torch.from_numpy(y)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        for step in range(60):
            at = torch.arange(step * 32, step * 32 + 32) % (len(labels) - 200)
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(pixels[at]), labels[at]).backward()
            optimiser.step()
        model.eval()
        gpu = GPU(ENERGIES)
        compiled = torch.compile(model, backend="simt", options={"gpu": gpu}, dynamic=False)
        test = slice(len(labels) - IMAGES, len(labels))
        with torch.no_grad():
            accuracy = float((model(pixels[-200:]).argmax(1) == labels[-200:]).float().mean())
            ours, theirs = compiled(pixels[test]), model(pixels[test])
        found: Rows = []
        for launch in gpu.result().launches:
            joules = {name: float(value) for name, value in parts(launch).items()}
            found.append(
                {
                    "launch": launch.index,
                    "name": launch.name,
                    "operator": launch.annotation,
                    "cycles": launch.cycles,
                    "instructions": launch.warp_instructions,
                    "joules": joules,
                    "source": source,
                    "labels": labels[test].tolist(),
                    "ours": ours.argmax(1).tolist(),
                    "theirs": theirs.argmax(1).tolist(),
                    "accuracy": accuracy,
                    "difference": float((ours - theirs).abs().max()),
                }
            )
        return found

    return pl.DataFrame(steps.rows("lenet", make), infer_schema_length=None)


def measure_correlation(steps: Steps) -> pl.DataFrame:
    """Kernels that others measured on the TURING card."""
    found: Rows = []
    for row in rows("", TURING):
        if row.measured > LONGEST_NS:
            continue

        def make(row: Any = row) -> Rows:
            run = simulate(row, TURING, LIMIT, clocks(row))
            if run.result is None:
                raise NotMeasured(run.why)
            cycles = cycles_of(timed_launches(run.result, row.recipe), row.recipe)
            mhz = row.recipe.table.clock.core_mhz if row.recipe.table.clock else 0
            return [
                {
                    "row": row.name,
                    "unclear": row.recipe.not_counted,
                    "silicon": row.measured / 1e3,
                    "simt": cycles / (mhz or load_spec(TURING).clock.core_mhz),
                }
            ]

        found += steps.rows(row.name, make)
    return pl.DataFrame(found, infer_schema_length=None)


def clocks(row: Any) -> dict[str, Any]:
    """Values of the specification at the clock that the row ran at."""
    return clocked(row.recipe, Setting(WORK, None))


def show_correlation(section: Section, frame: pl.DataFrame) -> str:
    counted = frame.filter(unclear="")
    error = (counted["simt"] / counted["silicon"] - 1).abs()

    def draw() -> Figure:
        figure, axes = plt.subplots(figsize=(11, 1 + 0.24 * len(frame)))
        axes.barh(range(len(frame)), 100 * frame["simt"] / frame["silicon"], color=SERIES["blue"])
        axes.axvline(100, color="grey", lw=0.6)
        axes.set_yticks(range(len(frame)), frame["row"], fontsize=6.5)
        axes.invert_yaxis()
        axes.set_xlabel("simulated / measured time, %")
        figure.tight_layout()
        return figure

    return (
        "No kernel times of a GTX 1050 with their sizes were found. In their place: its successor, a GTX "
        f"1650 (`{TURING}`), and the kernels of [its recipes](../whole-programs.md) (matrix products, "
        f"convolutions, histograms) that take up to {LONGEST_NS / 1e3:.0f} us. The model was tuned with some "
        f"of these rows. Over the {len(counted)} that are certain the mean error is "
        f"{100 * error.mean():.0f} %, r "  # type: ignore[operator]
        f"{np.corrcoef(counted['simt'], counted['silicon'])[0, 1]:.2f}; the paper, cuDNN's kernels of MNIST: "
        "a correlation of 72 %.\n\n"
        + table(
            ["kernel", "us on silicon", "us simulated", "error"],
            [
                [
                    f"`{r['row']}`" + (f" ({r['unclear']})" if r["unclear"] else ""),
                    f"{r['silicon']:.1f}",
                    f"{r['simt']:.1f}",
                    f"{100 * (r['simt'] / r['silicon'] - 1):+.0f} %",
                ]
                for r in frame.iter_rows(named=True)
            ],
        )
        + "\n"
        + section.plot("correlation", "Simulated time relative to that on silicon", draw)
    )


def parts(launch: Any) -> dict[str, float]:
    """Energy by part, J; none if this GPU has no energies."""
    try:
        return dict(launch.energy.components)
    except SimtError:
        return {}


def show_lenet(section: Section, frame: pl.DataFrame) -> str:
    first, total = frame.row(0, named=True), frame["cycles"].sum()
    lines = [
        [
            row["launch"],
            f"`{row['name'][:60]}`",
            row["operator"],
            f"{row['cycles']:,}",
            f"{100 * row['cycles'] / total:.1f} %",
        ]
        for row in frame.iter_rows(named=True)
    ]
    energies: dict[str, float] = {}
    for row in frame.iter_rows(named=True):
        for name, value in (row["joules"] or {}).items():
            energies[name] = energies.get(name, 0.0) + (value or 0.0)
    every = sum(energies.values())
    text = (
        f"LeNet (20 and 50 filters of 5 x 5, 500 units), trained for 60 steps by PyTorch on the CPU "
        f"({first['source']}; "
        f"{100 * first['accuracy']:.0f} % of 200 other images right), classifies {IMAGES} of these on "
        f"`{ENERGIES}`, as the "
        f"paper's MNIST does: labels {first['labels']}, here {first['ours']}, PyTorch {first['theirs']}; "
        f"the largest "
        f"difference of a score is {first['difference']:.0e}. MNIST's own files are taken if `SIMT_MNIST` "
        f"names their folder (`t10k-images-idx3-ubyte`, `t10k-labels-idx1-ubyte`, or `.gz`); they are not "
        f"part of simt. {len(frame)} launches, {total:,} cycles:\n\n"
        + table(["launch", "kernel", "operator", "cycles", "share"], lines)
    )
    if every:
        text += (
            "\nEnergy by part (Figure 8; the paper: core 65 %, idle 25 % on a GTX 1050, by GPUWattch):\n\n"
            + table(
                ["part", "share"],
                [
                    [name, f"{100 * value / every:.1f} %"]
                    for name, value in sorted(energies.items(), key=lambda item: -item[1])
                    if value >= 0.0005 * every
                ],
            )
        )
    return text


LEW = Paper(
    name="lew",
    title="Machine learning on GPGPU-Sim",
    about="""
J. Lew et al., "Analyzing Machine Learning Workloads Using a Detailed GPU Simulator", 2018, figure by
figure. The text at hand ends before most figures of its case study, which are named after what it says of
them.
""",
    items=(
        Item(
            "Figure 1",
            "how cuDNN's PTX reaches the simulator",
            "[exec](../exec.md), [PyTorch](../pytorch.md)",
        ),
        Item(
            "Figures 2, 3",
            "finding the kernel and instruction that differ",
            "[debugging](../functional/debugging.md): two "
            "executions are compared, launch by launch and instruction by instruction",
        ),
        Item("Figures 4, 5", "checkpoints", "[checkpoints](../checkpoints.md), also within a launch"),
        Item(
            "Figure 6",
            "time of MNIST against a GTX 1050",
            "cannot be had: cuDNN's kernels are closed, and no measured time is published; LeNet on simt, "
            "kernel by kernel",
            "lenet",
        ),
        Item(
            "Figure 7",
            "time of some kernels against a GTX 1050",
            "published kernels of its successor; cuDNN's are closed, and no sizes are published",
            "correlation",
        ),
        Item("Figure 8", "power of MNIST by part", "energy of LeNet by part", "lenet"),
        Item(
            "Figures 9, 10",
            "DRAM efficiency and utilisation, by bank over time",
            "[convolution algorithms](../convolution.md#over-time)",
        ),
        Item("Case study", "algorithms of cuDNN in three directions", "the same, of simt", "convolutions"),
        Item("Case study, over time", "IPC of each SM, issue by active lanes", "the same", "time"),
    ),
    parts=(
        Part("convolutions", "Convolution algorithms", measure_convolutions, show_convolutions, 6),
        Part("time", "Over time", measure_time, show_time, 3),
        Part("lenet", "LeNet", measure_lenet, show_lenet, 3),
        Part("correlation", "Against silicon", measure_correlation, show_correlation, 6),
    ),
)

if __name__ == "__main__":
    main(LEW)
