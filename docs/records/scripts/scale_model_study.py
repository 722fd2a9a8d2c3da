"""Scale models on kernels that the method was not developed with: error, coverage, processor time.

python scale_model_study.py run --half held-out [--gpu h100,rtx3060] [--cases gelu]
python scale_model_study.py table --half held-out

Each launch of scale_model_cases.py in one process on one host thread: in full, then with the method. Times
are processor times of the launch alone. `run` keeps what is measured in docs/records/data/scale-model-study/,
and measures what is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import scipy.special  # noqa: F401 - or the first sampled launch of the process would import it
from scale_model_cases import GPUS, KERNELS, halves, waves_of

import simt
from simt import _engine
from simt.network.works import Work
from simt.result import LaunchResult

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "docs" / "records" / "data" / "scale-model-study"
MEMORY = 1 << 38
FEW = 64  # CTAs of a launch that shows how many the GPU holds


def launcher(gpu: simt.GPU, name: str, ctas: int) -> Callable[[], LaunchResult]:
    file, maker = KERNELS[name]
    launch = maker(gpu, ctas)
    if isinstance(launch, Work):
        arrays = {
            key: gpu.empty(tensor.shape, _type(tensor.dtype), unbacked=True)
            for key, tensor in launch.tensors.items()
        }
        return lambda: launch.launch(gpu, arrays)
    source = import_module(file)
    module = gpu.compile(
        source.SOURCE if hasattr(source, "SOURCE") else source.PIPELINES,
        name=f"{file}.cu",
        kernels=getattr(source, "TEMPLATES", ()),
        options=getattr(source, "OPTIONS", ()),
    )
    kernel, grid, block, shared, arguments = launch
    return lambda: module[kernel][grid, block, shared](*arguments)


def _type(name: str) -> Any:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))


def one(gpu: str, name: str) -> dict[str, Any]:
    few = launcher(small := simt.GPU(gpu, memory=MEMORY), name, FEW)()
    facts = math.prod(few.block), few.shared_bytes, few.registers
    wave = small.spec.sm.count * _engine.occupancy(small.native_spec, *facts)[0]
    found: dict[str, Any] = {}
    for method, controller in (("full", None), ("scale-model", "scale-model")):
        device = simt.GPU(gpu, memory=MEMORY, controller=controller)
        run = launcher(device, name, round(waves_of(gpu, name) * wave))
        begin = time.process_time()
        launch = run()
        seconds = time.process_time() - begin
        found[method] = {
            "cycles": launch.cycles,
            "seconds": round(seconds, 3),
            "waves": round(math.prod(launch.grid) / wave, 2),
            "dram_sectors": launch.engine["dram_reads"] + launch.engine["dram_writes"],
        }
        if launch.sampled is not None:
            found[method] |= {
                "decision": launch.sampled.decision,
                "half_width": launch.sampled.half_widths.get("cycles"),
                "reason": launch.sampled.reason,
            }
    return found


def path_of(gpu: str) -> Path:
    return RESULTS / f"{gpu}.json"


def read(gpu: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path_of(gpu).read_text()) if path_of(gpu).exists() else {}
    return found


def run(options: argparse.Namespace) -> None:
    for gpu in options.gpu.split(","):
        for name, half in halves().items():
            if half != options.half or (options.cases and name not in options.cases.split(",")):
                continue
            if name in read(gpu):
                continue
            command = [sys.executable, "-W", "ignore", __file__, "one", gpu, name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{gpu} {name}: failed\n{done.stderr[-1500:]}", flush=True)
                continue
            rows = read(gpu) | {name: json.loads(done.stdout.splitlines()[-1])}
            RESULTS.mkdir(parents=True, exist_ok=True)
            lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(rows.items())]
            path_of(gpu).write_text("{\n" + ",\n".join(lines) + "\n}\n")
            print(line(gpu, name, rows[name]), flush=True)


def line(gpu: str, name: str, row: dict[str, Any]) -> str:
    full, found = row["full"], row["scale-model"]
    half = found["half_width"]
    stated = "" if half is None else f"± {100 * half:.1f} %"
    return (
        f"| {gpu} | {name} | {full['waves']:.1f} | {100 * (found['cycles'] / full['cycles'] - 1):+.1f} % | "
        f"{stated} | {full['seconds']:.1f} s | {full['seconds'] / found['seconds']:.1f} |"
    )


def table(options: argparse.Namespace) -> None:
    print("| GPU | launches | mean error | largest | covered | times less processor time | least |")
    print("|---|---|---|---|---|---|---|")
    chosen = {g: {n: r for n, r in read(g).items() if halves()[n] == options.half} for g in GPUS}
    for gpu in (*GPUS, "all"):
        rows = [r for g in GPUS if gpu in (g, "all") for r in chosen[g].values()]
        if not rows:
            continue
        errors = [abs(r["scale-model"]["cycles"] / r["full"]["cycles"] - 1) for r in rows]
        speedups = [r["full"]["seconds"] / r["scale-model"]["seconds"] for r in rows]
        stated = [
            (e, half)
            for e, r in zip(errors, rows, strict=True)
            if (half := r["scale-model"]["half_width"]) is not None
        ]
        print(
            f"| {gpu} | {len(rows)} | {100 * sum(errors) / len(errors):.1f} % | {100 * max(errors):.1f} % | "
            f"{sum(e <= half for e, half in stated)} of {len(stated)} | "
            f"{math.exp(sum(map(math.log, speedups)) / len(speedups)):.1f} | {min(speedups):.1f} |"
        )
    print("\n| GPU | kernel | waves | error | stated | in full | times less |\n|---|---|---|---|---|---|---|")
    for gpu in GPUS:
        for name, row in chosen[gpu].items():
            print(line(gpu, name, row))


def main() -> None:
    sys.path[:0] = [str(ROOT / "tests" / "kernels"), str(ROOT / "tests")]
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(one(*sys.argv[2:4])))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("table", table)):
        command = commands.add_parser(name)
        command.add_argument("--half", choices=("development", "held-out"), required=True)
        if name == "run":
            command.add_argument("--gpu", default=",".join(GPUS))
            command.add_argument("--cases")
        command.set_defaults(function=function)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
