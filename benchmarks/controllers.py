"""What a controller costs: time of simulation with one that sees everything and decides nothing.

python benchmarks/controllers.py             relative to a simulation without a controller
python benchmarks/controllers.py --plain     only without, for comparing two builds

Times are CPU seconds of the process, the least of several runs, taken in turns.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from kernels import KINDS, kernel
from simt import simulate
from simt.control import Controller


class Onlooker(Controller):
    """Sees all there is to see."""

    method = "onlooker"
    interval, warps, blocks = 500, True, True


class Glance(Controller):
    """Sees the counters."""

    method = "glance"


def seconds(trace: Path, controller: Controller | None) -> float:
    before = time.process_time()
    simulate(trace, "qv100", controller=controller)
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    ways = {"none": None} if arguments.plain else {"none": None, "counters": Glance(), "all": Onlooker()}
    for kind in KINDS:
        trace = kernel(kind)
        simulate(trace, "qv100", max_cycles=1)  # converts the trace
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(arguments.runs):
            for name, controller in ways.items():
                best[name] = min(best[name], seconds(trace, controller))
        text = f"{kind:10} {best['none']:6.2f} s"
        for name in list(ways)[1:]:
            text += f"   {name} {100 * (best[name] / best['none'] - 1):+5.1f} %"
        print(text, flush=True)


if __name__ == "__main__":
    main()
