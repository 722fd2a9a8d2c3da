"""Photon's study on our workloads: full detail against PKA, Photon and each of its levels alone.

python photon_study.py run --gpu r9nano [--methods full,photon] [--cases relu:262144,resnet18]
python photon_study.py table

`run` measures what is missing in docs/records/data/photon-study/, one process for each case, and can be
stopped and started again at any time: what is finished is kept. `table` prints the page's tables and draws
its plots. Times are those of the launches alone (no compilation, no inputs). Speedup is by processor time,
which other processes disturb less than the wall clock does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

import simt
from simt.control import PKP, Controller
from simt.control.photon import Photon, PublishedPhoton
from simt.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "docs" / "records" / "data" / "photon-study"
METHODS: dict[str, Callable[[], Controller | None]] = {
    "full": lambda: None,
    "pka": PKP,
    "pka:artifact": lambda: PKP(**PKP.presets["artifact"]),
    "photon": Photon,
    "photon:block": lambda: Photon("block"),
    "photon:warp": lambda: Photon("warp"),
    "photon:kernel": lambda: Photon("kernel"),
    "photon:published-tests": lambda: PublishedPhoton(small="wave", work=0.1),
}
SAMPLED = [method for method in METHODS if method != "full"]


class TimedGPU(simt.GPU):
    """A GPU that knows how long its launches took to simulate."""

    processor_seconds = wall_seconds = 0.0
    by_launch: tuple[float, ...] = ()
    """Processor seconds of each launch."""

    def launch(self, *arguments: Any) -> Any:
        processor, wall = time.process_time(), time.perf_counter()
        try:
            return super().launch(*arguments)
        finally:
            seconds = time.process_time() - processor
            self.by_launch = (*self.by_launch, seconds)
            self.processor_seconds += seconds
            self.wall_seconds += time.perf_counter() - wall


def measure(gpu: str, workload: str, size: int, method: str, threads: int) -> dict[str, Any]:
    """One run. `values` identifies the outputs: sampling must not change them."""
    device = TimedGPU(gpu, threads=threads, controller=METHODS[method]())
    outputs = WORKLOADS[workload].run(device, size)
    launches = device.result().launches
    return {
        "cycles": sum(x.cycles for x in launches),
        "warp_instructions": sum(x.warp_instructions for x in launches),
        "processor_seconds": round(device.processor_seconds, 3),
        "wall_seconds": round(device.wall_seconds, 3),
        "seconds_by_launch": [round(seconds, 3) for seconds in device.by_launch],
        "threads": threads,
        "values": hashlib.sha256(b"".join(v.tobytes() for v in outputs.values())).hexdigest()[:16],
        "decisions": Counter(x.sampled.decision if x.sampled else "full" for x in launches),
        "launches": [
            [x.name, x.cycles, x.sampled.reason.partition(":")[0] if x.sampled else ""] for x in launches
        ],
    }


def cases(text: str | None) -> Iterator[tuple[str, int]]:
    """ "relu:262144,resnet18" as pairs; a workload without a size has all its sizes; None: everything."""
    for part in text.split(",") if text else WORKLOADS:
        name, _, size = part.partition(":")
        for n in (int(size),) if size else WORKLOADS[name].sizes:
            yield name, n


def results_file(gpu: str, method: str) -> Path:
    return RESULTS / f"{gpu}-{method.replace(':', '-')}.json"


def read_results(gpu: str, method: str) -> dict[str, dict[str, Any]]:
    """What is measured so far, by "workload:size"."""
    path = results_file(gpu, method)
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def write_result(gpu: str, method: str, case: str, row: dict[str, Any]) -> None:
    path = results_file(gpu, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = read_results(gpu, method) | {case: row}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(rows.items())]
    temporary = path.with_suffix(".new")
    temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    os.replace(temporary, path)


def run(options: argparse.Namespace) -> None:
    for name, size in cases(options.cases):
        for method in options.methods.split(","):
            case = f"{name}:{size}"
            if case in read_results(options.gpu, method):
                continue
            arguments = [options.gpu, name, str(size), method, str(options.threads)]
            command = [sys.executable, __file__, "one", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{options.gpu} {case} {method}: failed\n{done.stderr[-2000:]}", flush=True)
                continue
            row = json.loads(done.stdout.splitlines()[-1])
            write_result(options.gpu, method, case, row)
            print(
                f"{options.gpu} {case} {method}: {row['cycles']:,} cycles, {row['processor_seconds']} s "
                f"of processor time, {row['wall_seconds']} s",
                flush=True,
            )


def compared(gpu: str, method: str) -> dict[str, tuple[float, float]]:
    """Error of the cycles and speedup against full detail, by "workload:size", where both are measured."""
    full = read_results(gpu, "full")
    return {
        case: (
            abs(row["cycles"] - full[case]["cycles"]) / full[case]["cycles"],
            full[case]["processor_seconds"] / row["processor_seconds"],
        )
        for case, row in read_results(gpu, method).items()
        if case in full
    }


def in_order(found: Iterable[str]) -> list[str]:
    """Cases by workload, then size."""
    names = list(WORKLOADS)
    return sorted(found, key=lambda case: (names.index(case.split(":")[0]), int(case.split(":")[1])))


def is_network(case: str) -> bool:
    return case.startswith(("vgg", "resnet"))


def gpus() -> list[str]:
    return sorted(path.name.removesuffix("-full.json") for path in RESULTS.glob("*-full.json"))


def tables() -> None:
    """Prints Markdown: a summary, then each case."""
    print("| GPU | method | kernels | mean error | largest | mean speedup (geometric) | largest |")
    print("|---|---|---|---|---|---|---|")
    for gpu in gpus():
        for method in SAMPLED:
            pairs = [pair for case, pair in compared(gpu, method).items() if not is_network(case)]
            if pairs:
                errors, speedups = np.array(pairs).T
                print(
                    f"| {gpu} | {method} | {len(pairs)} | {errors.mean():.1%} | {errors.max():.1%} "
                    f"| {np.exp(np.log(speedups).mean()):.2f} | {speedups.max():.1f} |"
                )
    for gpu in gpus():
        by_method = {method: compared(gpu, method) for method in SAMPLED}
        shown = [method for method in SAMPLED if by_method[method]]
        full = read_results(gpu, "full")
        print(f"\n{gpu}: error and speedup\n\n| case | cycles | s | {' | '.join(shown)} |")
        print("|---" * (3 + len(shown)) + "|")
        for case in in_order(full):
            row = full[case]
            found = [by_method[method].get(case) for method in shown]
            entries = [f"{x[0]:.1%}, {x[1]:.1f}x" if x else "" for x in found]
            print(f"| {case} | {row['cycles']:,} | {row['processor_seconds']:.1f} | {' | '.join(entries)} |")


def plots() -> None:
    """A picture for each GPU: a column for each workload, error above, speedup below, over its sizes."""
    for gpu in gpus():
        by_method = {method: compared(gpu, method) for method in SAMPLED}
        cases_here = in_order({case for found in by_method.values() for case in found})
        columns = list(dict.fromkeys("networks" if is_network(c) else c.split(":")[0] for c in cases_here))
        if not columns:
            continue
        figure, axes = plt.subplots(2, len(columns), figsize=(2.1 * len(columns) + 1, 4.6), squeeze=False)
        for column, name in enumerate(columns):
            mine = [
                c for c in cases_here if (is_network(c) if name == "networks" else c.startswith(name + ":"))
            ]
            labels = [c.split(":")[0] if name == "networks" else short(int(c.split(":")[1])) for c in mine]
            for number, (method, found) in enumerate(by_method.items()):
                points = [(k, *found[c]) for k, c in enumerate(mine) if c in found]
                if points:
                    x, errors, speedups = zip(*points, strict=True)
                    style: dict[str, Any] = {"color": f"C{number}", "ms": 3, "label": method}
                    axes[0, column].plot(x, [100 * e for e in errors], "o-", **style)
                    axes[1, column].plot(x, speedups, "o-", **style)
            axes[0, column].set_title(name, fontsize=9)
            axes[1, column].set_yscale("log")
            axes[1, column].yaxis.set_major_formatter("{x:g}")
            axes[1, column].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes[1, column].yaxis.set_minor_locator(NullLocator())
            axes[1, column].axhline(1, color="grey", lw=0.5)
            for row in (0, 1):
                axes[row, column].set_xticks(range(len(mine)), labels, rotation=90, fontsize=7)
                axes[row, column].tick_params(axis="y", labelsize=7)
        axes[0, 0].set_ylabel("error of cycles, %", fontsize=8)
        axes[1, 0].set_ylabel("speedup", fontsize=8)
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower center", ncols=len(names), fontsize=8)
        figure.tight_layout(rect=(0, 0.06, 1, 1))
        figure.savefig(IMAGES / f"study-{gpu}.png", dpi=110)
        plt.close(figure)


def short(size: int) -> str:
    return f"{size >> 20}M" if size % (1 << 20) == 0 else f"{size >> 10}K" if size % 1024 == 0 else str(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--gpu", default="r9nano")
    runs.add_argument("--methods", default=",".join(METHODS))
    runs.add_argument("--cases")
    runs.add_argument("--threads", type=int, default=1)
    one = commands.add_parser("one")
    for argument in ("gpu", "workload", "size", "method", "threads"):
        one.add_argument(argument)
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    elif options.command == "table":
        tables()
        plots()
    else:
        row = measure(options.gpu, options.workload, int(options.size), options.method, int(options.threads))
        print(json.dumps(row))


if __name__ == "__main__":
    main()
