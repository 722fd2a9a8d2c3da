"""Groups of the launches of networks, and two-level profiling. Part of pka.py."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from papers import Rows, Section, Steps, percent, table
from recipes import real_profile

from simt.gpu import GPU
from simt.plots import SERIES
from simt.profile import Profile
from simt.sampling import PKS, TwoLevel
from simt.workloads import WORKLOADS

REAL = "h100_owlv2_inference.kineto.json.gz"
"""A real profile with the shapes of tensors."""
SHAPES = ["launch__grid_size", "launch__block_size", "registers", "shared_bytes"]
DETAILED = (250, 500, 1000, 2000)


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
        "of the expected time, and PKS's is a fit. The second level has names, grids and blocks "
        "([two-level](../sampling/two-level.md)).\n\n"
        + table(["method", "launches in detail", "launches simulated", "error of the expected time"], lines)
        + "\n"
        + section.plot("figure-4", "Kernels in each group of PKS", draw)
    )


def measure_levels(steps: Steps) -> pl.DataFrame:
    """Two-level profiling of a real profile, with and without the shapes of tensors."""

    def make() -> Rows:
        profile = real_profile(REAL)
        pks = PKS(features=SHAPES, seed=4)
        everything = pks.fit_plan(profile)
        found: Rows = [
            {
                "tensors": False,
                "detailed": len(profile),
                "launches": len(everything),
                "error": everything.estimated_ns / profile.total_ns - 1,
                "accuracy": None,
            }
        ]
        for tensors in (False, True):
            light = profile if tensors else Profile(profile.launches.drop("tensors"))
            for detailed in DETAILED:
                level = TwoLevel(detailed, "vote", PKS(features=SHAPES), seed=4).fit(light)
                found.append(
                    {
                        "tensors": tensors,
                        "detailed": detailed,
                        "launches": len(level.plan_),
                        "error": level.plan_.estimated_ns / profile.total_ns - 1,
                        "accuracy": level.accuracy_["vote"],
                    }
                )
        return found

    return pl.DataFrame(steps.rows(REAL, make), infer_schema_length=None)


def show_levels(section: Section, frame: pl.DataFrame) -> str:
    everything = frame.row(0, named=True)
    lines = [
        [
            f"{row['detailed']:,}",
            "name, grid, block, tensors" if row["tensors"] else "name, grid, block",
            row["launches"],
            f"{100 * row['error']:+.1f} %",
            percent(row["accuracy"]),
        ]
        for row in frame.iter_rows(named=True)
        if row["accuracy"] is not None
    ]
    return (
        f"OWLv2's inference on an H100 ({everything['detailed']:,} launches), a real profile of PyTorch's "
        "with the shapes of tensors, which the paper has from PyProf. It has no counters: PKS groups by the "
        f"launch's shape; with all launches it chooses {everything['launches']} and is "
        f"{100 * everything['error']:+.1f} % off. Classifiers' vote, by what the second level knows:\n\n"
        + table(
            [
                "launches in detail",
                "the others are known by",
                "launches simulated",
                "error of the time",
                "right on a held-out fifth",
            ],
            lines,
        )
    )
