"""Sampling within launches on kernels that nobody tuned it for: error, coverage of the intervals, speedup.

python systematic_study.py run --half development [--launches whole] [--gpu qv100] [--cases heat]
python systematic_study.py run --half unseen --methods photon,pkp
python systematic_study.py table --half fresh

One launch of each kernel of systematic_kernels.py, on each GPU. A case runs in one process, on one host
thread, in full and with each method, and times are processor times of the launch alone. `run` keeps what is
measured in docs/records/data/systematic-study/, and measures what is missing. The kernels were split into
halves once, at random, before the method was developed. The held-out half and the fresh kernels have been
looked at with earlier versions; the unseen kernels were recorded before the last change of the method, and
simulated once, after it, and once more after changes of the model (`table --launches first-look` has qv100
and h100 before them).

`--launches long`: most launches are of a few waves on a whole GPU, and simulating longer ones in full takes
too long. Each therefore runs on the largest of the GPU, its half, quarter and eighth (SMs and memory channels
with their L2 slices) on which it has 32 waves, or on the eighth. `--launches whole`: on the whole GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special  # noqa: F401 - or the first sampled launch of the process would import it
from systematic_kernels import KERNELS, SETS, half_of

import simt
from simt.control import Controller, Decision, LaunchView, Predict
from simt.control.registry import make
from simt.result import Result
from simt.spec import load_spec
from simt.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "docs" / "records" / "data" / "systematic-study"
GPUS = ("qv100", "h100", "r9nano", "mi100")
PARTS = (1, 2, 4, 8)
LONG = 32  # waves
LAUNCHES = ("long", "whole")
FIRST_LOOK = "first-look"  # the unseen half on qv100 and h100 with the model before 27 November's changes
CLASSES = (
    *(("≥ 32", 32, math.inf), ("8 to 32", 8, 32), ("≥ 8", 8, math.inf)),
    *(("1 to 8", 1, 8), ("below 1", 0, 1)),
)
METHODS = ("systematic", "photon", "pkp", "photon-published", "pkp:artifact")


class TimedGPU(simt.GPU):
    """A GPU that knows how long its launches took to simulate."""

    processor_seconds = 0.0

    def launch(self, *arguments: Any) -> Any:
        begin = time.process_time()
        try:
            return super().launch(*arguments)
        finally:
            self.processor_seconds += time.process_time() - begin


def execute(device: TimedGPU, name: str) -> Result:
    """The launch of a kernel, or the launches of a workload."""
    entry = KERNELS[name]
    if isinstance(entry, int):
        WORKLOADS[name.partition("-")[2]].run(device, entry)
    else:
        if entry[0].endswith(".cu"):
            module = device.compile(Path(__file__).with_name(entry[0]).read_text(), name=entry[0])
        else:
            file = import_module(entry[0])
            templates, options = getattr(file, "TEMPLATES", ()), getattr(file, "OPTIONS", ())
            source = file.SOURCE if hasattr(file, "SOURCE") else file.PIPELINES
            module = device.compile(source, name=f"{entry[0]}.cu", kernels=templates, options=options)
        kernel, grid, block, shared, arguments = entry[1](device, np.random.default_rng(1))
        module[kernel][grid, block, shared](*arguments)
    return device.result()


class Untimed(Controller):
    """Executes launches without timing."""

    method = "untimed"

    def begin(self, launch: LaunchView) -> Decision:
        return Predict(launch_cycles=1)


def part_of(gpu: str, name: str) -> int:
    """The part of the GPU, as a divisor, on which the case is a long launch."""
    result = execute(TimedGPU(gpu, threads=1, controller=Untimed()), name)
    sms = result.machine.sm_count
    waves = [math.prod(x.grid) / x.occupancy_limit_ctas for x in result.launches]
    return next((d for d in PARTS if max(waves) / (sms // d) >= LONG), PARTS[-1])


def simulate(gpu: str, name: str, method: str, part: int = 1, **options: Any) -> dict[str, Any]:
    """One run of one case. options: of the GPU, such as code="sass"."""
    spec = load_spec(gpu)
    smaller = {"sm.count": spec.sm.count // part, "address_map.channels": spec.address_map.channels // part}
    controller = None if method == "full" else make(method)
    device = TimedGPU(gpu, threads=1, controller=controller, set=smaller, **options)
    result = execute(device, name)
    launch = max(result.launches, key=lambda x: x.cycles)
    sampled = launch.sampled
    wave = launch.occupancy_limit_ctas * result.machine.sm_count
    found: dict[str, Any] = {
        "cycles": launch.cycles,
        "seconds": round(device.processor_seconds, 3),
        "waves": round(math.prod(launch.grid) / wave, 2),
        "warp_instructions": launch.warp_instructions,
        "dram_sectors": launch.engine["dram_reads"] + launch.engine["dram_writes"],
        "network_packets": launch.engine["network_request_packets"],
    }
    if sampled is not None:
        found |= {
            "decision": sampled.decision,
            "reason": sampled.reason,
            "interval": dict(getattr(sampled, "half_widths", {})),
        }
    return found


def one(launches: str, gpu: str, name: str, methods: list[str]) -> dict[str, Any]:
    """Full detail, then the methods, each with the time that full detail took in the same process."""
    sys.path[:0] = [str(ROOT / "tests" / "kernels"), str(ROOT / "tests")]
    part = part_of(gpu, name) if launches == "long" else 1
    full = simulate(gpu, name, "full", part) | {"part": part}
    beside = {"full_seconds": full["seconds"]}
    return {"full": full} | {method: simulate(gpu, name, method, part) | beside for method in methods}


def path_of(launches: str, gpu: str) -> Path:
    return RESULTS / f"{launches}-{gpu}.json"


def read(launches: str, gpu: str) -> dict[str, Any]:
    path = path_of(launches, gpu)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def run(options: argparse.Namespace) -> None:
    for gpu in options.gpu.split(","):
        for name, half in half_of().items():
            if half != options.half or (options.cases and name not in options.cases.split(",")):
                continue
            kept = read(options.launches, gpu).get(name, {})
            methods = [m for m in options.methods.split(",") if m not in kept or options.again]
            if not methods:
                continue
            command = [sys.executable, __file__, "one", options.launches, gpu, name, ",".join(methods)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{gpu} {name}: failed\n{done.stderr[-1500:]}", flush=True)
                continue
            row = json.loads(done.stdout.splitlines()[-1])
            others = ", ".join(sorted(kept.keys() - row.keys()))
            if others and kept["full"]["cycles"] != row["full"]["cycles"]:
                now, before = row["full"]["cycles"], kept["full"]["cycles"]
                print(
                    f"{gpu} {name}: {now:,} cycles in full, but {before:,} beside {others}: measure these "
                    "--again, too",
                    flush=True,
                )
                continue
            rows = read(options.launches, gpu) | {name: kept | row}
            RESULTS.mkdir(parents=True, exist_ok=True)
            lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(rows.items())]
            path_of(options.launches, gpu).write_text("{\n" + ",\n".join(lines) + "\n}\n")
            print(gpu, name, summary(row), flush=True)


def speedup(of_method: dict[str, Any]) -> float:
    ratio: float = of_method["full_seconds"] / of_method["seconds"]
    return ratio


def summary(row: dict[str, Any]) -> str:
    full = row["full"]
    text = f"{full['waves']} waves, {full['cycles']:,} cycles, {full['seconds']} s"
    for method in row:
        if method == "full":
            continue
        x = row[method]
        half = x["interval"].get("cycles")
        text += (
            f"; {method} {100 * (x['cycles'] / full['cycles'] - 1):+.2f}%"
            f"{'' if half is None else f' ± {100 * half:.2f}'} {speedup(x):.2f}x "
            f"{x['decision']}"
        )
    return text


def table(options: argparse.Namespace) -> None:
    halves = half_of()
    print("| GPU | waves | method | launches | mean error | largest | covered | speedup (gmean) | least |")
    print("|---|---|---|---|---|---|---|---|---|")
    for gpu in (*GPUS, "all"):
        rows = [
            row
            for g in (GPUS if gpu == "all" else [gpu])
            for name, row in read(options.launches, g).items()
            if halves.get(name) == options.half
        ]
        for title, low, high in CLASSES:
            for method in METHODS:
                chosen = [r for r in rows if method in r and low <= r["full"]["waves"] < high]
                if not chosen:
                    continue
                errors = [abs(r[method]["cycles"] / r["full"]["cycles"] - 1) for r in chosen]
                speedups = [speedup(r[method]) for r in chosen]
                stated = [
                    (e, r[method]["interval"].get("cycles"))
                    for e, r in zip(errors, chosen, strict=True)
                    if r[method]["decision"] != "full"
                ]
                covered = [e <= half for e, half in stated if half is not None]
                print(
                    f"| {gpu} | {title} | {method} | {len(chosen)} | "
                    f"{100 * sum(errors) / len(errors):.1f} % | "
                    f"{100 * max(errors):.1f} % | {f'{sum(covered)} of {len(covered)}' if covered else ''} | "
                    f"{math.exp(sum(map(math.log, speedups)) / len(speedups)):.2f} | {min(speedups):.2f} |"
                )
    print("\n| GPU | part | kernel | waves | method | error | stated | speedup |")
    print("|---|---|---|---|---|---|---|---|")
    left_out = [
        (row[method]["cycles"] / row["full"]["cycles"] - 1, gpu, name, method, row)
        for gpu in GPUS
        for name, row in read(options.launches, gpu).items()
        for method in METHODS
        if halves.get(name) == options.half and row.get(method, {}).get("decision", "full") != "full"
    ]
    for error, gpu, name, method, row in sorted(left_out, key=lambda x: -abs(x[0])):
        half = row[method]["interval"].get("cycles")
        print(
            f"| {gpu} | 1/{row['full']['part']} | {name} | {row['full']['waves']:.1f} | {method} | "
            f"{100 * error:+.1f} % | {'' if half is None else f'± {100 * half:.1f} %'} | "
            f"{speedup(row[method]):.2f} |"
        )


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        launches, gpu, name, methods = sys.argv[2:6]
        print(json.dumps(one(launches, gpu, name, [m for m in methods.split(",") if m])))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("--half", choices=SETS, required=True)
    command.add_argument("--launches", choices=LAUNCHES, default=LAUNCHES[0])
    command.add_argument("--gpu", default=",".join(GPUS))
    command.add_argument("--cases")
    command.add_argument("--methods", default="systematic")
    command.add_argument("--again", action="store_true", help="measure what is already measured, too")
    command.set_defaults(function=run)
    command = commands.add_parser("table")
    command.add_argument("--half", choices=SETS, required=True)
    command.add_argument("--launches", choices=(*LAUNCHES, FIRST_LOOK), default=LAUNCHES[0])
    command.set_defaults(function=table)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
