"""What Photon observes: times of blocks and warps, shares, and clusters of kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from papers import Rows, Section, Steps, percent, table

from simt.control import GO_ON, Controller, Decision, Interval, LaunchView
from simt.control.photon import Photon
from simt.control.photon.analysis import LaunchAnalysis
from simt.gpu import GPU
from simt.plots import SERIES
from simt.workloads import WORKLOADS


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
