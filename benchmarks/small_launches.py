"""What a timed launch of one CTA costs: milliseconds of processor time, and peak memory.

python benchmarks/small_launches.py [--launches 3000] [--gpus a100,h100,b200]

Of each GPU: launches of a kernel of 256 threads that add one to a word each, in a process of its own;
start-up and the first launches apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

SOURCE = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1.0f; }'
FIRST = 50


def measure(name: str, launches: int) -> tuple[float, float]:
    """Milliseconds for each launch, and the process's peak memory in MB."""
    import numpy as np

    import simt

    gpu = simt.GPU(name)
    kernel, x = gpu.compile(SOURCE).add, gpu.array(np.zeros(256, np.float32))
    for _ in range(FIRST):
        kernel[1, 256](x)
    begin = time.process_time()
    for _ in range(launches):
        kernel[1, 256](x)
    used = time.process_time() - begin
    return 1000 * used / launches, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--launches", type=int, default=3000)
    parser.add_argument("--gpus", default="a100,h100,b200")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.gpus, given.launches)))
        return
    for name in given.gpus.split(","):
        command = [sys.executable, __file__, "--one", "--gpus", name, "--launches", str(given.launches)]
        each, peak = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        print(f"{name:10} {each:.3f} ms a launch, {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
