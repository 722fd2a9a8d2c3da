"""Photon (Liu, Sun, Carlson, MICRO 2023): its tables and figures on simt. See papers.py for the arguments.

A run is measured as docs/records/scripts/photon_study.py does, which has larger sizes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from papers import ROOT, Item, Paper, Part, Rows, Section, Steps, main, percent, table, times

from simt.control import GO_ON, Controller, Decision, Interval, LaunchView, TBPointRegions
from simt.control.photon import Photon, PublishedPhoton
from simt.control.photon.analysis import LaunchAnalysis
from simt.gpu import GPU
from simt.plots import SERIES
from simt.workloads import WORKLOADS

sys.path.insert(0, str(ROOT / "docs" / "records" / "scripts"))
import photon_study

photon_study.METHODS |= {
    "tbpoint": TBPointRegions,
    "photon-published": PublishedPhoton,
}
KERNELS = {
    "relu": (1 << 18, 1 << 22),
    "fir": (1 << 16, 1 << 20),
    "convolution": (1 << 10, 1 << 14),
    "aes": (1 << 19, 1 << 20),
    "matmul": (1 << 15,),
    "spmv": (1 << 13, 1 << 14),
    "pagerank": (1 << 12,),
}
"""SC is `convolution`, MM `matmul`, PR `pagerank`."""
GPUS = {"r9nano": "R9 Nano", "mi100": "MI100", "qv100": "V100"}
TOGETHER = ("pka", "pka:artifact", "tbpoint", "photon-published", "photon")
LEVELS = ("photon:block", "photon:warp", "photon:kernel", "photon")
NETWORKS = dict.fromkeys(("vgg16", "resnet152", "resnet18", "resnet50", "resnet34", "vgg19", "resnet101"), 32)
"""Sides of the image; the paper's is 224."""
NETWORK_METHODS = ("photon:kernel", "photon", "photon-published")
LAYERED = "vgg16", 32
"""The network that is shown layer by layer."""
BEFORE_KINDS = (
    " **The rows were measured before this rule**; [VGG-16 by layer](#layers) is with it. ResNet-152 is "
    "where it matters most, as [Photon](../control/photon.md#when-a-time-is-stable) says."
)
"""For rows that were measured before photon_study.py kept the seconds of launches."""
LARGE = "resnet18", 224


def measured(steps: Steps, gpu: str, workload: str, size: int, methods: Sequence[str]) -> Rows:
    """A case in full and with each method."""
    found: Rows = []
    for method in dict.fromkeys(("full", *methods)):
        found += steps.rows(
            f"{gpu}, {workload} {size:,}, {method}", partial(run, gpu, workload, size, method)
        )
    return found


def run(gpu: str, workload: str, size: int, method: str) -> Rows:
    row = photon_study.measure(gpu, workload, size, method, 1)
    about = {"gpu": gpu, "workload": workload, "size": size, "method": method}
    return [
        about
        | {name: row[name] for name in ("cycles", "warp_instructions", "processor_seconds", "values")}
        | {
            "launches": [cycles for _, cycles, _ in row["launches"]],
            "launch_seconds": row["seconds_by_launch"],
            "names": [name for name, _, _ in row["launches"]],
            "full": row["decisions"].get("full", 0),
        }
    ]


def frame_of(found: Rows) -> pl.DataFrame:
    """With error and speedup against full detail."""
    frame = pl.DataFrame(found, infer_schema_length=None)
    keys = ["gpu", "workload", "size"]
    full = frame.filter(method="full").select(
        *keys,
        pl.col("cycles").alias("true"),
        pl.col("processor_seconds").alias("seconds"),
        pl.col("values").alias("same"),
    )
    joined = frame.join(full, on=keys, maintain_order="left").with_columns(
        (pl.col("cycles") / pl.col("true") - 1).alias("error"),
        (pl.col("seconds") / pl.col("processor_seconds")).alias("speedup"),
        (pl.col("values") == pl.col("same")).alias("equal"),
    )
    return joined.drop("true", "seconds", "values", "same")


def measure_kernels(steps: Steps) -> pl.DataFrame:
    found: Rows = []
    for gpu in GPUS:
        for name, sizes in KERNELS.items():
            for size in sizes if gpu == "r9nano" else sizes[:1]:
                methods = [*TOGETHER, *LEVELS] if gpu == "r9nano" else ["pka", "photon"]
                found += measured(steps, gpu, name, size, methods)
    return frame_of(found)


def measure_mi100(steps: Steps) -> pl.DataFrame:
    """What is measured on the R9 Nano, on the larger machine; the smaller sizes first."""
    found: Rows = []
    sized = [(name, sizes[:1]) for name, sizes in KERNELS.items()]
    for name, sizes in [*sized, *((name, sizes[1:]) for name, sizes in KERNELS.items())]:
        for size in sizes:
            found += measured(steps, "mi100", name, size, [*TOGETHER, *LEVELS])
    return frame_of(found)


def measure_networks(steps: Steps) -> pl.DataFrame:
    found: Rows = []
    for name, size in NETWORKS.items():
        found += measured(steps, "r9nano", name, size, NETWORK_METHODS)
    return frame_of(found)


def measure_layers(steps: Steps) -> pl.DataFrame:
    return frame_of(measured(steps, "r9nano", *LAYERED, [*NETWORK_METHODS, *LEVELS]))


def measure_large(steps: Steps) -> pl.DataFrame:
    return frame_of(measured(steps, "r9nano", *LARGE, NETWORK_METHODS))


def summary(frame: pl.DataFrame, methods: Sequence[str]) -> list[list[object]]:
    lines: list[list[object]] = []
    for gpu in frame["gpu"].unique(maintain_order=True):
        for method in methods:
            mine = frame.filter(gpu=gpu, method=method)
            if len(mine):
                lines.append(
                    [
                        GPUS[gpu],
                        method,
                        len(mine),
                        percent(mine["error"].abs().mean()),
                        percent(mine["error"].abs().max()),
                        times(float(np.exp(np.log(mine["speedup"].to_numpy()).mean()))),
                        times(mine["speedup"].max()),
                    ]
                )
    return lines


SUMMARY = ("GPU", "method", "cases", "mean error", "largest", "speedup, geometric", "largest")


def cases(frame: pl.DataFrame, methods: Sequence[str]) -> str:
    lines = []
    for full in frame.filter(method="full").iter_rows(named=True):
        cells = []
        for method in methods:
            mine = frame.filter(gpu=full["gpu"], workload=full["workload"], size=full["size"], method=method)
            cells.append(f"{100 * mine['error'][0]:+.1f} %, {mine['speedup'][0]:.1f} x" if len(mine) else "")
        lines.append(
            [
                GPUS[full["gpu"]],
                f"`{full['workload']}` {full['size']:,}",
                f"{full['cycles']:,}",
                f"{full['processor_seconds']:.1f}",
                *cells,
            ]
        )
    return table(["GPU", "case", "cycles", "s", *methods], lines)


def panels(frame: pl.DataFrame, methods: Sequence[str]) -> Figure:
    """Cycles (lines) and seconds (bars) by size, a panel for each workload, as Figures 13 to 16."""
    names = frame["workload"].unique(maintain_order=True).to_list()
    columns = min(4, len(names))
    figure, plots = plt.subplots(
        -(-len(names) // columns), columns, figsize=(11, 2.8 * -(-len(names) // columns)), squeeze=False
    )
    colours = dict(zip(methods, SERIES.values(), strict=False))
    for axes in plots.ravel()[len(names) :]:
        axes.remove()
    for axes, name in zip(plots.ravel(), names, strict=False):
        sizes = sorted(frame.filter(workload=name)["size"].unique())
        right = axes.twinx()
        for k, method in enumerate(methods):
            mine = {
                row["size"]: row for row in frame.filter(workload=name, method=method).iter_rows(named=True)
            }
            x = [i for i, size in enumerate(sizes) if size in mine]
            rows = [mine[sizes[i]] for i in x]
            width = 0.8 / len(methods)
            right.bar(
                [i + width * (k - len(methods) / 2 + 0.5) for i in x],
                [r["processor_seconds"] for r in rows],
                width,
                color=colours[method],
                alpha=0.45,
            )
            axes.plot(
                x, [r["cycles"] / 1e3 for r in rows], "o-", color=colours[method], ms=3, lw=1, label=method
            )
        best = frame.filter(workload=name, method=methods[-1])["speedup"].max()
        axes.set_title(f"{name} ({best:.1f} x)", fontsize=8)
        axes.set_xticks(range(len(sizes)), [photon_study.short(size) for size in sizes], fontsize=7)
        axes.tick_params(axis="y", labelsize=6)
        right.tick_params(axis="y", labelsize=6)
        most = frame.filter((pl.col("workload") == name) & pl.col("method").is_in(methods))["cycles"].max()
        axes.set_ylim(0, 1.1 * most / 1e3)  # type: ignore[operator]
        axes.set_zorder(2)
        axes.patch.set_visible(False)
        axes.set_xlim(min(-0.5, len(sizes) / 2 - 1.5), max(len(sizes) - 0.5, len(sizes) / 2 + 0.5))
        if name in names[::columns]:
            axes.set_ylabel("thousand cycles (lines)", fontsize=7)
        if name in (names[-1], *names[columns - 1 :: columns]):
            right.set_ylabel("processor seconds (bars)", fontsize=7)
        axes.set_xlabel("size", fontsize=7)
    handles, labels = plots[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(methods), fontsize=8)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


def show_kernels(section: Section, frame: pl.DataFrame) -> str:
    nano, methods = frame.filter(gpu="r9nano"), list(dict.fromkeys([*TOGETHER, *LEVELS]))
    unequal = len(frame.filter(~pl.col("equal")))
    return (
        "Error of the cycles of all launches against full detail, and speedup in processor time of the "
        "launches. `pka` is "
        "PKP with simt's defaults (on one kernel PKA is PKP), `pka:artifact` the published code's; "
        "`photon-published` is "
        "Photon as published, `photon` simt's variant, and `photon:LEVEL` one level of it. The paper: "
        "6.83 % and 1.87 "
        "times in the mean, 24.65 at most.\n\n"
        + table(SUMMARY, summary(frame, methods))
        + f"\nOutputs are those of the full run in all but {unequal} of {len(frame)} runs: what is left "
        f"out is executed "
        "without timing. Case by case:\n\n"
        + cases(frame, methods)
        + "\n"
        + section.plot(
            "figure-13",
            "Cycles (lines) and processor seconds (bars) on the R9 Nano: full, PKA, Photon",
            lambda: panels(nano, ["full", "pka", "photon-published", "photon"]),
        )
        + "\n"
        + section.plot(
            "figure-15",
            "Cycles (lines) and processor seconds (bars) on the R9 Nano, by level",
            lambda: panels(nano, ["full", *LEVELS]),
        )
    )


def show_mi100(section: Section, frame: pl.DataFrame) -> str:
    methods = list(dict.fromkeys([*TOGETHER, *LEVELS]))
    return (
        "The same on the larger machine (120 CUs; the R9 Nano has 64), on which more of these sizes are few "
        "waves.\n\n"
        + table(SUMMARY, summary(frame, methods))
        + "\n"
        + cases(frame, methods)
        + "\n"
        + section.plot(
            "figure-14",
            "Cycles (lines) and processor seconds (bars) on the MI100: full, PKA, Photon",
            lambda: panels(frame, ["full", "pka", "photon-published", "photon"]),
        )
    )


def layer_of(names: Sequence[str]) -> list[str]:
    """VGG-16's layer of each launch: 13 convolutions in five groups, each with what follows it; three "
    "dense layers."""
    groups = [f"conv{g}-{i}" for g, n in enumerate((2, 2, 3, 3, 3), 1) for i in range(1, n + 1)]
    waiting, dense, now, found = iter(groups), iter(("fc-6", "fc-7", "fc-8")), "", []
    for name in names:
        if "conv" in name:
            now = next(waiting, now)
        elif "dense" in name:
            now = next(dense, now)
        found.append(now)
    return found


def show_networks(section: Section, frame: pl.DataFrame) -> str:
    def draw() -> Figure:
        figure, plots = plt.subplots(2, 1, figsize=(9, 4.8), sharex=True)
        names = frame["workload"].unique(maintain_order=True).to_list()
        width = 0.8 / len(NETWORK_METHODS)
        for k, (method, colour) in enumerate(zip(NETWORK_METHODS, SERIES.values(), strict=False)):
            mine = {row["workload"]: row for row in frame.filter(method=method).iter_rows(named=True)}
            x = np.arange(len(names)) + width * (k - len(NETWORK_METHODS) / 2 + 0.5)
            values = [(abs(mine[n]["error"]), mine[n]["speedup"]) if n in mine else (0, 0) for n in names]
            plots[0].bar(x, [100 * error for error, _ in values], width, color=colour, label=method)
            plots[1].bar(x, [speedup for _, speedup in values], width, color=colour)
        plots[0].set_ylabel("error, %")
        plots[1].set_ylabel("speedup, times")
        plots[1].set_xticks(range(len(names)), names)
        plots[0].legend(fontsize=8, ncols=4)
        figure.tight_layout()
        return figure

    return (
        "One inference at batch 1 on the R9 Nano; images of 32 pixels a side, where the paper has 224: "
        "small images have small launches, of which little is left out ([few "
        "waves](../control/photon.md#launches-of-few-waves)). [The "
        "record](../records/photon-and-pka.md#networks) has 224 "
        "pixels with an earlier version. The paper: 4.3 % in the mean; ResNet-152 10.7 % and 39.1 times. "
        "Blocks of one shape use the same memory for their weights, which all but the first find in the L2; "
        "so the first launch of a kind stands for no other in simt's variant."
        + ("" if "launch_seconds" in frame.columns else BEFORE_KINDS)
        + "\n\n"
        + table(SUMMARY, summary(frame, NETWORK_METHODS))
        + "\n"
        + cases(frame, NETWORK_METHODS)
        + "\n"
        + section.plot("figure-16", "Error and speedup of networks on the R9 Nano", draw)
    )


def show_layers(section: Section, frame: pl.DataFrame) -> str:
    methods = [method for method in frame["method"].unique(maintain_order=True) if method != "full"]
    lines, by_layer = [], []
    for layer, launches, rows in layers_of(frame):
        cycles, seconds = rows["full"]
        by_layer.append((layer, {m: (c / cycles - 1, seconds / max(s, 1e-3)) for m, (c, s) in rows.items()}))
        cells = [f"{100 * e:+.1f} %, {times(s)}" for m in methods for e, s in [by_layer[-1][1][m]]]
        lines.append([layer, launches, f"{cycles:,}", f"{seconds:.2f}", *cells])

    def draw_layers() -> Figure:
        figure, plots = plt.subplots(2, 1, figsize=(10, 4.8), sharex=True)
        width = 0.8 / len(methods)
        for k, (method, colour) in enumerate(zip(methods, SERIES.values(), strict=False)):
            x = np.arange(len(by_layer)) + width * (k - len(methods) / 2 + 0.5)
            plots[0].bar(
                x, [100 * abs(of[method][0]) for _, of in by_layer], width, color=colour, label=method
            )
            plots[1].bar(x, [of[method][1] for _, of in by_layer], width, color=colour)
        plots[0].set_ylabel("error, %")
        plots[1].set_ylabel("speedup, times")
        plots[1].set_yscale("log")
        plots[1].axhline(1, color="grey", lw=0.6)
        plots[1].set_xticks(range(len(by_layer)), [layer for layer, _ in by_layer], rotation=30, ha="right")
        figure.legend(*plots[0].get_legend_handles_labels(), loc="upper center", fontsize=8, ncols=5)
        figure.tight_layout(rect=(0, 0, 1, 0.94))
        return figure

    return (
        "VGG-16 with images of 32 pixels: error of the cycles, and speedup in processor time, by layer and "
        "by level. A layer is a convolution or dense layer and what follows it; *s* is the time in full. A "
        "launch that is predicted whole is still executed for its values.\n\n"
        + table(SUMMARY, summary(frame, methods))
        + "\n"
        + table(["layer", "launches", "cycles, full", "s, full", *methods], lines)
        + "\n"
        + section.plot("figure-17", "Error and speedup of VGG-16's layers on the R9 Nano", draw_layers)
    )


def layers_of(frame: pl.DataFrame) -> Iterator[tuple[str, int, dict[str, tuple[int, float]]]]:
    """Of each layer of VGG-16: its name, its launches, and by method their cycles and processor seconds."""
    rows = {row["method"]: row for row in frame.iter_rows(named=True)}
    layers = layer_of(rows["full"]["names"])
    for layer in dict.fromkeys(layers):
        at = [i for i, name in enumerate(layers) if name == layer]
        yield (
            layer,
            len(at),
            {
                method: (sum(row["launches"][i] for i in at), sum(row["launch_seconds"][i] for i in at))
                for method, row in rows.items()
            },
        )


def show_large(section: Section, frame: pl.DataFrame) -> str:
    return (
        "ResNet-18 with images of 224 pixels, the paper's size. The others are left out for their time: in "
        "full they took 2 to 10 minutes of the processor each, as [the "
        "record](../records/photon-and-pka.md#networks) says, which has them with an earlier version.\n\n"
        + cases(frame, NETWORK_METHODS)
    )


class Watch(Controller):
    """Simulates everything, and keeps the times of blocks and warps, and what a preview says of them."""

    method = "watch"
    warps = True
    blocks = True

    def __init__(self, most: int = 20_000) -> None:
        self.most = most

    def start(self) -> Watch:
        self.seen_: list[dict[str, Any]] = []
        return super().start()

    def begin(self, launch: LaunchView) -> Decision:
        assert launch.code is not None
        samples = {
            share: launch.code.preview(share, at_least_ctas=1, at_least_warps=32) for share in (0.01, 1.0)
        }
        analyses = {
            share: LaunchAnalysis.of((launch.index,), launch.code.blocks, preview)
            for share, preview in samples.items()
        }
        self._now: dict[str, Any] = {
            "shares": {share: one.block_shares for share, one in analyses.items()},
            "types": {share: one.types.weights for share, one in analyses.items()},
            "length": launch.code.blocks.length,
            "blocks": [],
            "warps": [],
        }
        self.seen_.append(self._now)
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        self._now["blocks"].append(interval.blocks)
        self._now["warps"].append(interval.warps)
        return GO_ON


WATCHED = {"matmul": 1 << 15, "spmv": 1 << 13, "convolution": 1 << 10, "aes": 1 << 20}
POINTS = 1500


def measure_observations(steps: Steps) -> pl.DataFrame:
    found: Rows = []
    for name, size in WATCHED.items():
        found += steps.rows(f"{name}:{size}", partial(watched, name, size))
    return pl.DataFrame(found, infer_schema_length=None)


def watched(name: str, size: int) -> Rows:
    """Rows of several kinds: the IPC of intervals, blocks, warps, and shares of blocks and of types of "
    "warps."""
    watch = Watch()
    gpu = GPU("r9nano", controller=watch, timeline=200)
    WORKLOADS[name].run(gpu, size)
    launch, seen = gpu.result().launches[0], watch.seen_[0]
    found: Rows = [
        {"kind": "ipc", "x": float(s.end - launch.start_cycle), "y": s.ipc} for s in launch.samples()
    ]
    blocks, warps = np.concatenate(seen["blocks"]), np.concatenate(seen["warps"])
    spent = np.bincount(blocks["block"], weights=(blocks["end"] - blocks["begin"]).astype(float))
    dominating = blocks[blocks["block"] == spent.argmax()]
    for kind, rows in (("block", dominating), ("warp", warps)):
        rows = rows[np.argsort(rows["end"], kind="stable")]
        for i in np.unique(np.linspace(0, len(rows) - 1, min(POINTS, len(rows))).astype(int)):
            found.append(
                {"kind": kind, "x": float(rows["begin"][i]), "y": float(rows["end"][i]), "number": int(i)}
            )
    for share, values in seen["shares"].items():
        found += [{"kind": f"shares {share}", "x": float(b), "y": float(v)} for b, v in enumerate(values)]
    for share, values in seen["types"].items():
        found += [{"kind": f"types {share}", "x": float(t), "y": float(v)} for t, v in enumerate(values[:50])]
        found.append({"kind": f"number of types {share}", "x": 0.0, "y": float(len(values))})
    return [{"workload": name, "size": size, **row} for row in found]


def show_observations(section: Section, frame: pl.DataFrame) -> str:
    names = frame["workload"].unique(maintain_order=True).to_list()

    def each(draw: Any, title: str) -> Figure:
        figure, plots = plt.subplots(1, len(names), figsize=(11, 2.7), squeeze=False)
        for axes, name in zip(plots[0], names, strict=True):
            draw(axes, frame.filter(workload=name))
            axes.set_title(name, fontsize=8)
            axes.tick_params(labelsize=6)
        plots[0, 0].set_ylabel(title, fontsize=7)
        handles, labels = plots[0, 0].get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="lower center", ncols=4, fontsize=7)
        figure.tight_layout(rect=(0, 0.07 if labels else 0, 1, 1))
        return figure

    def ipc(axes: Any, mine: pl.DataFrame) -> None:
        part = mine.filter(kind="ipc")
        axes.plot(part["x"] / 1e3, part["y"], lw=0.8, color=SERIES["blue"])
        axes.set_xlabel("thousand cycles", fontsize=7)

    def block_times(axes: Any, mine: pl.DataFrame) -> None:
        part = mine.filter(kind="block")
        values = (part["y"] - part["x"]).to_numpy()
        axes.plot(part["number"], values, ".", ms=1.5, color=SERIES["blue"])
        window = max(2, len(values) // 20)
        spread = [values[max(0, i - window) : i + 1].std() for i in range(len(values))]
        axes.plot(part["number"], spread, lw=1, color=SERIES["orange"])
        axes.set_xlabel("execution, by end", fontsize=7)

    def issue_and_end(kind: str, axes: Any, mine: pl.DataFrame) -> None:
        part = mine.filter(kind=kind)
        few = part["x"].max() < 100  # all begin at once
        axes.plot(part["x"] / (1 if few else 1e3), part["y"] / 1e3, ".", ms=1.5, color=SERIES["blue"])
        axes.set_xlabel("begin, cycles" if few else "begin, thousand cycles", fontsize=7)
        if few:
            axes.set_xlim(0, part["x"].max() + 1)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    def shares(kind: str, axes: Any, mine: pl.DataFrame) -> None:
        for k, (share, colour) in enumerate(((1.0, "blue"), (0.01, "orange"))):
            part = mine.filter(kind=f"{kind} {share}")
            label = "all warps" if share == 1.0 else "sample of 1 %, at least 32 warps"
            axes.bar(part["x"] + 0.4 * k - 0.2, 100 * part["y"], 0.4, color=SERIES[colour], label=label)
        axes.set_xlim(-0.6, max(1, part["x"].max()) + 0.6)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("basic block" if kind == "shares" else "type of warp", fontsize=7)

    lines = []
    for name in names:
        mine = frame.filter(workload=name)
        warp = mine.filter(kind="warp")
        spread = float(warp["x"].max() - warp["x"].min())  # type: ignore[operator]
        apart = spread > 0.1 * float(warp["y"].max())  # type: ignore[arg-type]
        slope = f"{np.polyfit(warp['x'], warp['y'], 1)[0]:.2f}" if apart else "all begin at once"
        types = {s: int(mine.filter(kind=f"number of types {s}")["y"][0]) for s in (1.0, 0.01)}
        off = max(
            abs(a - b)
            for a, b in zip(
                mine.filter(kind="shares 1.0")["y"], mine.filter(kind="shares 0.01")["y"], strict=True
            )
        )
        lines.append([f"`{name}` {mine['size'][0]:,}", types[1.0], types[0.01], percent(off), slope])
    return (
        "On `r9nano`, the smaller of the paper's sizes. Types of warps are those that execute every basic "
        "block equally often; the slope is "
        "that of the end of warps over their begin, which Photon wants near 1:\n\n"
        + table(
            [
                "workload",
                "types of warps",
                "in the sample",
                "largest error of a block's share",
                "slope, warps",
            ],
            lines,
        )
        + "\nIPC over time (Figure 1):\n\n"
        + section.plot("figure-1", "IPC per CU over time", lambda: each(ipc, "IPC per CU"))
        + "\nTimes of the executions of the block with the most time (blue), and their deviation over a "
        "twentieth of them "
        "(orange; Figure 2):\n\n"
        + section.plot("figure-2", "Times of the dominating block", lambda: each(block_times, "cycles"))
        + "\nBegin and end of these executions (Figure 3), and of warps (Figure 4):\n\n"
        + section.plot(
            "figure-3",
            "Begin and end of the dominating block",
            lambda: each(partial(issue_and_end, "block"), "end, thousand cycles"),
        )
        + section.plot(
            "figure-4",
            "Begin and end of warps",
            lambda: each(partial(issue_and_end, "warp"), "end, thousand cycles"),
        )
        + "\nWhat a sample of 1 % of the warps says of blocks (Figure 8) and of types of warps (Figure "
        "11):\n\n"
        + section.plot(
            "figure-8",
            "Share of each block's instructions",
            lambda: each(partial(shares, "shares"), "of all instructions, %"),
        )
        + section.plot(
            "figure-11",
            "Share of each type of warp",
            lambda: each(partial(shares, "types"), "of all warps, %"),
        )
    )


def measure_clusters(steps: Steps) -> pl.DataFrame:
    """IPC of VGG-16's launches, and their GPU basic-block vectors."""

    def make() -> Rows:
        photon = Photon("kernel", distance=0.0)  # nothing is near enough, so all are simulated
        gpu = GPU("r9nano", controller=photon)
        WORKLOADS["vgg16"].run(gpu, 32)
        found: Rows = []
        for launch, analysis in zip(gpu.result().launches, photon.analyses_, strict=True):
            ipc = (
                launch.warp_instructions / launch.cycles / launch.machine.sm_count if launch.machine else 0.0
            )
            found.append(
                {
                    "launch": launch.index,
                    "name": launch.name,
                    "ipc": ipc,
                    "ctas": int(np.prod(launch.grid)),
                    "vector": analysis.vector.sum(axis=0).tolist(),
                }
            )
        return found

    return pl.DataFrame(steps.rows("vgg16:32", make), infer_schema_length=None)


def clusters_of(frame: pl.DataFrame, distance: float = 0.1) -> list[int]:
    """The first launch within the distance (L1) of each, which is its cluster."""
    first: list[np.ndarray] = []
    found = []
    for vector in (np.array(v) for v in frame["vector"]):
        near = [i for i, other in enumerate(first) if np.abs(vector - other).sum() < distance]
        if not near:
            first.append(vector)
        found.append(near[0] if near else len(first) - 1)
    return found


def show_clusters(section: Section, frame: pl.DataFrame) -> str:
    labels = clusters_of(frame)

    def draw() -> Figure:
        figure, axes = plt.subplots(figsize=(8, 3.2))
        colours = [*SERIES.values(), "#888888", "#444444", "#bbbbbb"]
        for cluster in sorted(set(labels)):
            at = [i for i, label in enumerate(labels) if label == cluster]
            name = frame["name"][at[0]]
            axes.bar(
                at,
                frame["ipc"].gather(at),
                color=colours[cluster % len(colours)],
                label=f"{name} ({len(at)})",
            )
        axes.set_xlabel("launch")
        axes.set_ylabel("IPC per CU")
        axes.legend(fontsize=6, ncols=3)
        figure.tight_layout()
        return figure

    lines = []
    for cluster in sorted(set(labels)):
        ipc = frame["ipc"].gather([i for i, label in enumerate(labels) if label == cluster])
        if len(ipc) > 1:
            lines.append(
                [cluster, len(ipc), f"{ipc.min():.2f} to {ipc.max():.2f}", percent(ipc.std() / ipc.mean())]
            )
    return (
        f"The {len(frame)} launches of VGG-16 (32 x 32) on `r9nano` in {len(set(labels))} clusters of GPU "
        f"basic-block "
        "vectors within 0.1 of each other (Figure 6). Launches of one cluster have the same code, not the "
        "same number of "
        "warps: at this size most have few, and the paper requires the same number there. Clusters of "
        "several launches:\n\n"
        + table(["cluster", "launches", "IPC per CU", "deviation / mean"], lines)
        + "\n"
        + section.plot("figure-6", "IPC of VGG-16's launches by cluster", draw)
    )


SWEEP = tuple(range(20, 120))
"""Latencies of the L1, cycles."""
CHECKED = SWEEP[::25]
"""Points that are simulated in full, too, and with an analysis of their own."""
SWEPT = {"convolution": 1 << 14, "pagerank": 1 << 12}


def measure_offline(steps: Steps) -> pl.DataFrame:
    """A sweep of the L1's latency: Photon with the analysis of the first point; some points in full."""
    found: Rows = []
    for name, size in SWEPT.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "analysis.json"
            for latency in SWEEP:
                piece = partial(point, name, size, latency, file)
                found += steps.rows(f"{name}:{size}, {latency} cycles", piece)
    return pl.DataFrame(found, infer_schema_length=None)


def point(name: str, size: int, latency: int, file: Path) -> Rows:
    """One point of the sweep, by method. file: the analysis, which the first point to be simulated saves."""
    rows: Rows = []
    for method in ("full", "online", "offline") if latency in CHECKED else ("offline",):
        known = file if method == "offline" and file.exists() else None
        controller = None if method == "full" else Photon(analysis=known)
        gpu = photon_study.TimedGPU("r9nano", set={"l1.latency": latency}, controller=controller, threads=1)
        WORKLOADS[name].run(gpu, size)
        if controller is not None and method == "offline" and not known:
            controller.save(file)
        rows.append(
            {
                "workload": name,
                "size": size,
                "latency": latency,
                "method": method,
                "cycles": sum(x.cycles for x in gpu.result().launches),
                "seconds": gpu.processor_seconds,
            }
        )
    return rows


def show_offline(section: Section, frame: pl.DataFrame) -> str:
    lines = []
    for (name, size), mine in frame.group_by("workload", "size", maintain_order=True):
        every = mine.filter(method="offline")
        checked = mine.pivot("method", index="latency", values=["cycles", "seconds"]).drop_nulls()
        full = len(every) * checked["seconds_full"].mean()  # type: ignore[operator]
        off = (checked["cycles_offline"] / checked["cycles_full"] - 1).abs()
        lines.append(
            [
                f"`{name}` {size:,}",
                len(every),
                len(checked),
                f"{checked['seconds_full'].mean():.1f}",
                f"{checked['seconds_online'].mean():.2f}",
                f"{every['seconds'].mean():.2f}",
                times(full / every["seconds"].sum()),
                percent(off.mean()),
                percent(off.max()),
                len(checked.filter(pl.col("cycles_offline") == pl.col("cycles_online"))),
            ]
        )
    return (
        f"A sweep of {len(SWEEP)} values of `l1.latency` on `r9nano` with Photon, which saves its analysis "
        "at the first point and reads it at the others (`photon.save`, `Photon(analysis=...)`). Some points "
        "are simulated in full, too, and with an analysis of their own (*online*); the speedup is that of "
        "the whole sweep, with the mean of these for all points in full. Seconds of the processor for a "
        "point, launches only.\n\n"
        + table(
            [
                "workload",
                "points",
                "in full, too",
                "full, s",
                "online, s",
                "offline, s",
                "speedup of the sweep",
                "mean error",
                "largest",
                "points with online's cycles",
            ],
            lines,
        )
        + "\nA preview costs little here, 1 % of the warps without timing, so keeping it gains little: what "
        "limits the speedup is what Photon has to simulate of each launch.\n"
    )


PHOTON = Paper(
    name="photon",
    title="Photon, table by table",
    about="""
Liu, Sun, Carlson, "Photon: A Fine-grained Sampled Simulation Methodology for GPU Workloads", MICRO 2023.
The method is described in [Photon](../control/photon.md), the programs in [workloads](../workloads.md): the
paper's are OpenCL for GCN, these are CUDA C++ for the same work. `r9nano` and `mi100` are AMD's machines as
the paper describes them (64 lanes, caches, memory); they execute CUDA kernels, not AMD's instruction set.
Sizes are the smaller ones of the paper and below; [the record](../records/photon-and-pka.md) has larger
ones.
""",
    items=(
        Item("Figure 1", "IPC over time", "the same", "observations"),
        Item("Figures 2, 3", "times of the dominating block", "the same", "observations"),
        Item("Figure 4", "begin and end of warps", "the same", "observations"),
        Item("Figures 5, 7, 9, 10, 12", "drawings of the method", "[Photon](../control/photon.md)"),
        Item("Figure 6", "IPC of VGG-16's kernels by cluster", "the same", "clusters"),
        Item("Figures 8, 11", "blocks and types of warps: all, and a sample", "the same", "observations"),
        Item("Table 1", "R9 Nano and MI100", "`simt gpus show r9nano --sources`, [GPUs](../gpus.md)"),
        Item("Table 2", "workloads", "[workloads](../workloads.md)"),
        Item(
            "Figures 13, 14",
            "full, PKA and Photon; R9 Nano and MI100",
            "the same, with TBPoint, Photon as published, and V100; [MI100](#mi100)",
            "kernels",
        ),
        Item("Figure 15", "levels apart", "the same", "kernels"),
        Item(
            "Figure 16", "VGG and ResNet", "the same, small images; [one at 224 pixels](#large)", "networks"
        ),
        Item("Figure 17", "VGG-16 by layer", "the same, small images", "layers"),
        Item("Offline mode", "the analysis is kept", "a sweep", "offline"),
    ),
    parts=(
        Part("kernels", "Single kernels: methods and levels", measure_kernels, show_kernels, 14),
        Part("mi100", "MI100: methods and levels", measure_mi100, show_mi100, 14),
        Part("networks", "Networks", measure_networks, show_networks, 12),
        Part("layers", "VGG-16 by layer", measure_layers, show_layers, 5),
        Part("large", "A network at the paper's size", measure_large, show_large, 8),
        Part("observations", "What Photon observes", measure_observations, show_observations, 2),
        Part("clusters", "Clusters of kernels", measure_clusters, show_clusters, 2),
        Part("offline", "Offline mode", measure_offline, show_offline, 8),
    ),
)

if __name__ == "__main__":
    main(PHOTON)
