"""Sampling within launches of few waves, on kernels written before the methods that they judge.

python few_waves_study.py run --half development [--gpu qv100] [--kernels scan_chunks] [--again]
python few_waves_study.py table --half judging

Two launches of each kernel on each GPU, whose waves are drawn with a fixed seed such that each doubling is
equally likely: 0.6 to 8 for the kernels of few_waves_kernels.py; 8 to 12 and 1 to 8 for those of
few_waves_second.py. Each runs on the largest of the GPU, its half, quarter and eighth (SMs, and memory
channels with their L2 slices) on which it has at most 600,000 warp instructions, or on the eighth. A launch
runs in one process, on one host thread, in full and with each method; times are processor times of the
launch alone. `run` keeps what is measured in docs/records/data/few-waves-study/, and measures what is missing
there. The kernels of the half for judging, and then those of the second look, are simulated once, after the
last change of the methods.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import few_waves_second
import numpy as np
from few_waves_kernels import KERNELS
from systematic_study import GPUS, PARTS, ROOT, TimedGPU, Untimed, speedup

from simt.control import Controller
from simt.control.registry import make
from simt.result.launch import LaunchResult
from simt.spec import load_spec

RESULTS = ROOT / "docs" / "records" / "data" / "few-waves-study"
ALL = KERNELS | few_waves_second.KERNELS


@dataclass(frozen=True)
class Half:
    """source: of its kernels. waves: the least and the most of each launch of a kernel."""

    source: str = "few_waves.cu"
    waves: tuple[tuple[float, float], ...] = ((0.6, 8.0), (0.6, 8.0))
    gpus: tuple[str, ...] = GPUS


HALVES = {
    "development": Half(),
    "judging": Half(),
    "second": Half("few_waves_second.cu", ((8.0, 12.0), (1.0, 8.0)), ("h100", "a100", "qv100", "r9nano")),
}
SEED = 42
MOST_INSTRUCTIONS = 600_000
METHODS = ("photon", "pkp", "photon-published", "pkp:artifact")
CLASSES = (
    ("below 1", 0.0, 1.0),
    ("1 to 3", 1.0, 3.0),
    ("3 to 8", 3.0, 8.0),
    ("from 8", 8.0, math.inf),
    ("all", 0.0, math.inf),
)
LARGEST = 0.08  # errors that are accepted


def drawn(gpu: str, name: str) -> list[float]:
    """Waves of the launches of a kernel."""
    rng = random.Random(f"{SEED} {gpu} {name}")
    ranges = HALVES[ALL[name].half].waves
    return [round(math.exp(rng.uniform(math.log(low), math.log(high))), 2) for low, high in ranges]


def launch(used: TimedGPU, name: str, ctas: int) -> LaunchResult:
    entry = ALL[name]
    source = HALVES[entry.half].source
    module = used.compile((Path(__file__).with_name(source)).read_text(), name=source)
    arguments, _ = entry.make(used, np.random.default_rng(1), ctas)
    module[name][ctas, entry.threads](*arguments)
    (found,) = used.result().launches
    return found


def device(gpu: str, part: int, controller: Controller | None = None) -> TimedGPU:
    spec = load_spec(gpu)
    smaller = {"sm.count": spec.sm.count // part, "address_map.channels": spec.address_map.channels // part}
    return TimedGPU(gpu, threads=1, controller=controller, set=smaller)


def placed(gpu: str, name: str, waves: float) -> tuple[int, int, float]:
    """The part of the GPU, as a divisor, the CTAs of the launch, and its waves."""
    entry, sms = ALL[name], load_spec(gpu).sm.count
    tried = 64 * (sms // PARTS[-1]) // entry.multiple * entry.multiple  # no SM holds more than 64 CTAs
    found = launch(device(gpu, PARTS[-1], Untimed()), name, tried)
    for part in PARTS:
        wave = found.occupancy_limit_ctas * (sms // part)
        ctas = max(1, round(waves * wave / entry.multiple)) * entry.multiple
        if ctas * found.warp_instructions / tried <= MOST_INSTRUCTIONS:
            break
    return part, ctas, ctas / wave


def simulate(gpu: str, name: str, part: int, ctas: int, method: str) -> dict[str, Any]:
    used = device(gpu, part, None if method == "full" else make(method))
    done = launch(used, name, ctas)
    found = {"cycles": done.cycles, "seconds": round(used.processor_seconds, 3)}
    if done.sampled is None:
        return found | {"warp_instructions": done.warp_instructions}
    sampled = done.sampled
    return found | {
        "decision": sampled.decision,
        "reason": sampled.reason,
        "half_width": sampled.half_widths.get("cycles"),
    }


def one(gpu: str, name: str, waves: float, methods: list[str]) -> dict[str, Any]:
    """Full detail, then the methods, each with the time that full detail took in the same process."""
    part, ctas, waves = placed(gpu, name, waves)
    full = simulate(gpu, name, part, ctas, "full") | {"part": part, "ctas": ctas, "waves": round(waves, 2)}
    beside = {"full_seconds": full["seconds"]}
    return {"full": full} | {m: simulate(gpu, name, part, ctas, m) | beside for m in methods}


def path_of(half: str, gpu: str) -> Path:
    return RESULTS / f"{half}-{gpu}.json"


def read(half: str, gpu: str) -> dict[str, Any]:
    path = path_of(half, gpu)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def run(options: argparse.Namespace) -> None:
    wanted = options.kernels.split(",") if options.kernels else list(ALL)
    gpus = options.gpu.split(",") if options.gpu else HALVES[options.half].gpus
    cases = [
        (which, gpu, name, waves)
        for gpu in gpus
        for name in wanted
        if ALL[name].half == options.half
        for which, waves in enumerate(drawn(gpu, name))
    ]
    for _, gpu, name, waves in sorted(cases, key=lambda case: case[0]):
        key = f"{name} {waves:g}"
        kept = read(options.half, gpu).get(key, {})
        methods = [m for m in options.methods.split(",") if m not in kept or options.again]
        if not methods:
            continue
        command = [sys.executable, __file__, "one", gpu, name, str(waves), ",".join(methods)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{gpu} {key}: failed\n{done.stderr[-1500:]}", flush=True)
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        if kept and kept["full"]["cycles"] != row["full"]["cycles"]:
            kept = {}  # of another model
        rows = read(options.half, gpu) | {key: kept | row}
        RESULTS.mkdir(parents=True, exist_ok=True)
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(rows.items())]
        path_of(options.half, gpu).write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(gpu, key, summary(row), flush=True)


def error(row: dict[str, Any], method: str) -> float:
    ratio: float = row[method]["cycles"] / row["full"]["cycles"]
    return ratio - 1


def stated(of_method: dict[str, Any]) -> str:
    half = of_method["half_width"]
    return "" if half is None else f"± {100 * half:.1f} %"


def summary(row: dict[str, Any]) -> str:
    full = row["full"]
    text = f"1/{full['part']}, {full['ctas']} CTAs, {full['cycles']:,} cycles, {full['seconds']} s"
    for method in row:
        if method != "full":
            x, off = row[method], 100 * error(row, method)
            text += f"; {method} {off:+.1f} % {stated(x)} {speedup(x):.2f}x {x['decision']}"
    return text


def geometric_speedup(rows: list[dict[str, Any]], method: str) -> str:
    logarithms = [math.log(speedup(row[method])) for row in rows]
    return f"{math.exp(sum(logarithms) / len(rows)):.2f}" if rows else ""


def header(columns: str) -> None:
    names = columns.split(", ")
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")


def table(options: argparse.Namespace) -> None:
    rows = [
        (gpu, key, row) for gpu in HALVES[options.half].gpus for key, row in read(options.half, gpu).items()
    ]
    columns = "waves, method, launches, left out in, mean error of these, largest, above 8 %, covered, "
    header(columns + "speedup of these (geometric mean), of all")
    for title, low, high in CLASSES:
        for method in METHODS:
            chosen = [r for _, _, r in rows if method in r and low <= r["full"]["waves"] < high]
            less = [r for r in chosen if r[method]["decision"] != "full"]
            if not chosen:
                continue
            errors = [abs(error(r, method)) for r in less]
            widths = [r[method]["half_width"] for r in less]
            held = sum(e <= h for e, h in zip(errors, widths, strict=True) if h is not None)
            stating = sum(h is not None for h in widths)

            mean = f"{100 * sum(errors) / len(errors):.1f} %" if errors else ""
            largest = f"{100 * max(errors):.1f} %" if errors else ""
            print(
                f"| {title} | {method} | {len(chosen)} | {len(less)} | {mean} | {largest} | "
                f"{sum(e > LARGEST for e in errors)} | {f'{held} of {stating}' if stating else ''} | "
                f"{geometric_speedup(less, method)} | {geometric_speedup(chosen, method)} |"
            )
    print()
    header("GPU, part, launch, waves, method, error, stated, speedup")
    less_of = [
        (error(row, m), gpu, key, m, row)
        for gpu, key, row in rows
        for m in options.methods.split(",")
        if row.get(m, {}).get("decision", "full") != "full"
    ]
    for off, gpu, key, method, row in sorted(less_of, key=lambda x: -abs(x[0])):
        print(
            f"| {gpu} | 1/{row['full']['part']} | {key.split()[0]} | {row['full']['waves']:.1f} | {method} | "
            f"{100 * off:+.1f} % | {stated(row[method])} | {speedup(row[method]):.2f} |"
        )


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        gpu, name, waves, methods = sys.argv[2:6]
        print(json.dumps(one(gpu, name, float(waves), methods.split(","))))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("--half", choices=HALVES, required=True)
    command.add_argument("--gpu")
    command.add_argument("--kernels")
    command.add_argument("--methods", default="photon,pkp")
    command.add_argument("--again", action="store_true", help="measure what is already measured, too")
    command.set_defaults(function=run)
    command = commands.add_parser("table")
    command.add_argument("--half", choices=HALVES, required=True)
    command.add_argument("--methods", default="photon,pkp")
    command.set_defaults(function=table)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
