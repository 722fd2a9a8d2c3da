"""What each mechanism of the model is worth, in error on whole programs.

    python validation/ablation.py --rows titanv gpu-perf 2 --rows h100-pcie polybench 12 \
      --sources checkouts/ --measured silicon/ --out out/ablation --plot docs/images/ablation.png

Every Nth tuning row of each program of a suite is simulated as machine code with everything on, then with one
mechanism off at a time. Rows that do not finish within --limit seconds with everything on are left out.
Finished rows are kept in DIR, so the command may be stopped and given again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot

from simt.errors import SimtError
from simt.plots import INK, SERIES, save
from simt.spec import load_spec
from simt.validate.recipes import read_recipes, rows_of
from simt.validate.whole_programs import RowOutcome, Setting, run_rows

RECIPES = Path(__file__).parent / "programs"
_CACHE = "sm.front_end.instruction_cache"
OFF: dict[str, dict[str, Any]] = {
    "instruction prefetch": {f"{_CACHE}.prefetch_lines": 0},
    "instruction caches": {f"{_CACHE}.perfect": True},
    "constant caches": {"constant_cache.perfect": True},
    "register reuse cache": {"sm.register_file.operand_cache": False},
    "time of taken branches": {"sm.front_end.branch_latency": 0},
    "time of barriers": {"sm.barrier_interval": 0, "sm.barrier_latency": 0},
    "conversions on the SFU": {"sm.conversion_latency": 0},
    "multiplications on the FP32 pipe": {"sm.multiplications_on_fp32": False},
    "time of shared atomics": {"shared_memory.atomic_interval": 0},
    "wide shared accesses": {"shared_memory.wide_accesses_take_wavefronts": False},
    "queues of the sub-cores": {"load_store.sub_core_queue": 0},
    "access interval": {"l1.access_interval": 1, "shared_memory.access_interval": 1},
    "lines of a load": {"l1.line_interval": 0},
    "latency of L1 bypass": {"l1.bypass_latency": 0},
    "rate of CTA dispatch": {
        f"launch.{name}": 0
        for name in ("warp_start_interval", "peak_dispatch_rate", "dispatch_rate", "dispatch_burst")
    },
    "rate of L2 atomics": {"l2.atomic_rate": 0},
    "interval of L2 writes": {"l2.write_interval": 1, "l2.partial_write_interval": 1},
    "halves of the L2": {"l2.partitions": 1, "l2.far_latency": 0},
    "DRAM refresh": {"dram.refi": 0, "dram.rfc": 0, "dram.per_bank_refresh": False},
    "four-activate window": {"dram.faw": 0},
}
"""Mechanism: the values that take it away, where the specification has it."""


def without(gpu: str) -> dict[str, dict[str, Any]]:
    """The mechanisms that a GPU has."""
    spec = load_spec(gpu)
    return {name: off for name, off in OFF.items() if load_spec(gpu, off).hash != spec.hash}


def mean_error(outcomes: Sequence[RowOutcome]) -> float:
    """Mean absolute error, as a share."""
    return float(np.mean([abs(each.error) for each in outcomes]))


def study(gpu: str, suite: str, every: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Error with everything on, and by mechanism with it off, over the same rows."""
    rows = [
        row
        for recipe in read_recipes(RECIPES, gpu)
        if recipe.use == "tuning" and recipe.suite == suite
        for row in sorted(
            rows_of(recipe, arguments.measured, arguments.sources), key=lambda row: row.measured
        )[::every]
    ]

    def run(off: Mapping[str, Any], limit: float) -> list[RowOutcome]:
        setting = Setting(arguments.out / gpu, arguments.sources, "sass", limit, off, arguments.threads)
        return run_rows(rows, setting, lambda each: print(".", end="", file=sys.stderr, flush=True))

    whole = [each for each in run({}, arguments.limit) if each.counts]
    names = {(each.suite, each.row) for each in whole}
    rows = [row for row in rows if (row.recipe.suite, row.name) in names]
    found: dict[str, Any] = {
        "gpu": gpu,
        "rows": len(rows),
        "on": mean_error(whole),
        "off": {},
    }
    on = {(each.suite, each.row): each for each in whole}
    for name, off in without(gpu).items():
        ablated = [each for each in run(off, 10 * arguments.limit) if each.counts]
        both = [(on[each.suite, each.row], each) for each in ablated]
        found["off"][name] = {
            "worth": mean_error([each for _, each in both]) - mean_error([with_ for with_, _ in both]),
            "moved": sum(abs(each.simulated / with_.simulated - 1) > 0.02 for with_, each in both),
            "rows": len(both),
        }
        print(f"\n{gpu}, {name}: {found['off'][name]}", file=sys.stderr, flush=True)
    return found


def table(studies: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown: by mechanism, the error without it less the error with it, in points."""
    lines = [
        "| without | "
        + " | ".join(f"`{each['gpu']}` | rows that move by over 2 %" for each in studies)
        + " |",
        "|---" * (1 + 2 * len(studies)) + "|",
        "| (everything on: mean error) | "
        + " | ".join(f"{100 * each['on']:.1f} % | of {each['rows']}" for each in studies)
        + " |",
    ]
    for name in OFF:
        cells = [
            f"{100 * off['worth']:+.1f} | {off['moved']}" if (off := each["off"].get(name)) else " | "
            for each in studies
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(studies: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Bars: points of mean error that each mechanism saves (right) or costs (left)."""
    names = list(reversed(OFF))
    figure, axes = pyplot.subplots(figsize=(8, 0.42 * len(names) + 1), layout="constrained")
    height = 0.8 / len(studies)
    for index, (each, color) in enumerate(zip(studies, SERIES.values(), strict=False)):
        worth = [100 * each["off"].get(name, {"worth": 0})["worth"] for name in names]
        places = np.arange(len(names)) + 0.4 - height * (index + 0.5)
        label = f"{each['gpu']}: {100 * each['on']:.1f} % over {each['rows']} rows"
        axes.barh(places, worth, height, color=color, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.axvline(0, color=INK["faint"], linewidth=1)
    axes.set_xlabel("mean error without it, less that with it (points)")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks([-10, -5, -2, -1, 0, 1, 2, 5, 10], ["-10", "-5", "-2", "-1", "0", "1", "2", "5", "10"])
    axes.set_xlim(min(-2, axes.get_xlim()[0]), max(2, axes.get_xlim()[1]))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, loc="lower left")
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", nargs=3, action="append", required=True, metavar=("GPU", "SUITE", "N"), help="every Nth row"
    )
    parser.add_argument("--out", type=Path, default=Path("out/ablation"))
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--measured", type=Path)
    parser.add_argument("--limit", type=float, default=8.0, help="seconds for a row with everything on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    try:
        studies = [study(gpu, suite, int(every), arguments) for gpu, suite, every in arguments.rows]
    except SimtError as mistake:
        sys.exit(f"error: {mistake}")
    print(table(studies))
    if arguments.plot:
        plot(studies, arguments.plot)


if __name__ == "__main__":
    main()
