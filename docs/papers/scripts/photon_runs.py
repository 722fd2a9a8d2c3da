"""Photon, run: single kernels, networks, and a network layer by layer, against full detail and PKA.

A run is measured as docs/records/scripts/photon_study.py does, which has larger sizes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import ROOT, Rows, Section, Steps, percent, table, times

from simt.control import TBPointRegions
from simt.control.photon import PublishedPhoton
from simt.plots import SERIES

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
        axes.set_title(name if best is None else f"{name} ({best:.1f} x)", fontsize=8)
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
        "Blocks of one shape may find their weights in the L2 or not; a launch stands for others in simt's "
        "variant if they find the same there, or if another one took as long "
        "([when](../control/photon.md#when-a-time-is-stable)).\n\n"
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
