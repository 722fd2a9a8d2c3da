"""What a launch gains from more host threads, on a host that has fewer.

python benchmarks/threads.py --threads 2 16 64

One thread runs every task that several could run, in the order in which they would take them, and times it.
The time on N threads is that of the rest and, for each group of tasks, that of the thread which ends last, if
each takes the next task when it has ended one. Starting threads and moving data between their caches are left
out, so this is a bound. The least of several runs of each is taken.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from kernels import kernel
from simt import _engine
from simt.spec import load_spec
from simt.trace import Copy, open_trace
from simt.trace.generate import generate

GPUS = ["qv100-accelsim", "qv100", "a100"]
GENERATED = {"gather": 65536, "stencil": 1024}


def seconds(trace: Path, gpu: str, threads: int) -> tuple[float, float]:
    """Processor seconds on one thread, and those that `threads` of them would take."""
    engine = _engine.Gpu(load_spec(gpu).native(), threads, rehearses=True)
    for command in open_trace(trace).commands:
        if isinstance(command, Copy):
            engine.copy_from_host(command.address, command.bytes)
        else:
            engine.launch(command.source(), command.id)
    begin = time.process_time()
    engine.run(1 << 60)
    alone = time.process_time() - begin
    tasks, together, clock = engine.rehearsal()
    return alone - clock, alone - clock - tasks + together


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 16, 64])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--gpus", nargs="+", default=GPUS)
    chosen = parser.parse_args()
    folder = Path(kernel("ffma")).parent
    traces = {kind: kernel(kind) for kind in ("ffma", "gemm", "streaming")}
    for kind, size in GENERATED.items():
        traces[kind] = generate(kind, folder / f"{kind}{size}", sm=80, size=size, compression="none").parent
    print("times as fast as one thread")
    print(f"{'':26}" + "".join(f"{n:>8}" for n in chosen.threads))
    for gpu in chosen.gpus:
        for kind, trace in traces.items():
            one = min(seconds(trace, gpu, 1)[0] for _ in range(chosen.runs))
            gains = [one / min(seconds(trace, gpu, n)[1] for _ in range(chosen.runs)) for n in chosen.threads]
            print(f"{gpu:16}{kind:10}" + "".join(f"{gain:8.2f}" for gain in gains), flush=True)


if __name__ == "__main__":
    main()
