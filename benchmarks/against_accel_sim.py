"""simt and Accel-Sim, side by side: processor time for the same traces, one thread each, in turns.

python benchmarks/against_accel_sim.py --accel-sim ACCELSIM/gpu-simulator/bin/release/accel-sim.out [--runs 5]

Makes the traces, and runs both as processes. The configuration is the QV100 of Accel-Sim's checkout (or
--config and --trace-config), and `qv100-accelsim` here. For each kernel it prints the cycles of both, the
processor seconds (medians), and the ratio: the median of the pairs' ratios, with the smallest and the
largest. Start-up is what each takes for a trace of eight instructions, and is printed apart; the ratio is
without it, the one in the last column with it.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernels import kernel

GPU = "qv100-accelsim"
CONFIG = "gpgpu-sim/configs/tested-cfgs/SM7_QV100/gpgpusim.config"
TRACE_CONFIG = "configs/tested-cfgs/SM7_QV100/trace.config"
# CTAs of each kernel, for 10 to 60 s of Accel-Sim: its speed does not depend on the length.
CTAS = {"streaming": 2250, "gemm": 320, "ffma": 640}
CYCLES = re.compile(r"^gpu_tot_sim_cycle *= *(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Pair:
    """One run of each. cycles: core cycles. seconds: of the processor."""

    cycles: tuple[int, int]
    seconds: tuple[float, float]


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    """Processor seconds of a process and its children, and what it printed. Raises SystemExit if it fails."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}\n{text[-2000:]}")
    return usage.ru_utime + usage.ru_stime, text


def pair(trace: Path, accel_sim: list[str], folder: Path) -> Pair:
    """One run of each, simt first."""
    script = "import sys, simt; r = simt.simulate(sys.argv[1], gpu=sys.argv[2]); print(r.totals.cycles)"
    own, text = timed([sys.executable, "-c", script, str(trace), GPU], folder)
    theirs, printed = timed([*accel_sim, "-trace", str(trace / "kernelslist.g")], folder)
    found = CYCLES.findall(printed)
    if not found:
        raise SystemExit(f"{accel_sim[0]} printed no gpu_tot_sim_cycle:\n{printed[-2000:]}")
    return Pair((int(text.split()[-1]), int(found[-1])), (own, theirs))


def row(kind: str, pairs: list[Pair], start_up: tuple[float, float]) -> str:
    """A line of the table."""
    instructions, own, theirs = _instructions(kind), pairs[0].cycles[0], pairs[0].cycles[1]
    ratios = [(p.seconds[1] - start_up[1]) / max(1e-9, p.seconds[0] - start_up[0]) for p in pairs]
    whole = statistics.median(p.seconds[1] / p.seconds[0] for p in pairs)
    seconds = [statistics.median(p.seconds[i] for p in pairs) for i in (0, 1)]
    return (
        f"{kind:10} {instructions / 1e6:6.2f} M {own:9,} {theirs:9,} {100 * (own / theirs - 1):+5.2f} % "
        f"{seconds[0]:7.2f} {seconds[1]:8.2f} {statistics.median(ratios):6.1f} "
        f"({min(ratios):.1f} to {max(ratios):.1f}) {whole:6.1f}"
    )


def _instructions(kind: str) -> int:
    """Warp instructions of a trace: lines that begin with a PC."""
    text = (kernel(kind, CTAS.get(kind, 1)) / "kernel-1.traceg").read_text()
    return sum(int(count) for count in re.findall(r"^insts = (\d+)", text, re.MULTILINE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--accel-sim", type=Path, required=True, metavar="accel-sim.out")
    parser.add_argument("--config", type=Path, metavar="gpgpusim.config")
    parser.add_argument("--trace-config", type=Path, metavar="trace.config")
    parser.add_argument("--runs", type=int, default=5, help="of each, in turns")
    parser.add_argument("--kernels", nargs="+", choices=[*CTAS], default=[*CTAS])
    given = parser.parse_args()
    simulator = given.accel_sim.resolve()
    if not os.access(simulator, os.X_OK):
        parser.error(f"{simulator}: not a program; build Accel-Sim, and name its accel-sim.out")
    root = simulator.parents[2]
    configs = [given.config or root / CONFIG, given.trace_config or root / TRACE_CONFIG]
    for path, name in zip(configs, ("--config", "--trace-config"), strict=True):
        if not path.is_file():
            parser.error(f"{path}: no such file; {name} says where it is")
    accel_sim = [str(simulator), *(text for path in configs for text in ("-config", str(path.resolve())))]
    with tempfile.TemporaryDirectory() as folder:  # Accel-Sim writes files where it runs
        idle = [pair(kernel("nothing"), accel_sim, Path(folder)) for _ in range(given.runs)]
        start_up = (
            statistics.median(p.seconds[0] for p in idle),
            statistics.median(p.seconds[1] for p in idle),
        )
        print(f"start-up: simt {start_up[0]:.2f} s, Accel-Sim {start_up[1]:.2f} s of the processor")
        print("kernel     instructions  cycles  Accel-Sim   error  simt s  theirs s  ratio  with start-up")
        for kind in given.kernels:
            pairs = [pair(kernel(kind, CTAS[kind]), accel_sim, Path(folder)) for _ in range(given.runs)]
            print(row(kind, pairs, start_up), flush=True)


if __name__ == "__main__":
    main()
