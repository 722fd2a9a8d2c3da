"""Runs one program of the list on a real GPU and nothing else there, as profilers want it.

ncu --csv --page raw ... python validation/run_program.py kernels/sgemm-512 --device 0
"""

from __future__ import annotations

import argparse
import sys

from programs import programs

from simt.errors import SimtError
from simt.validate.hardware import HardwareGPU


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", metavar="SUITE/NAME")
    parser.add_argument("--device", type=int, default=0)
    given = parser.parse_args()
    every = {f"{p.suite}/{p.name}": p for p in programs()}
    if given.program not in every:
        sys.exit(f"no program {given.program!r}; there are: {', '.join(every)}")
    try:
        gpu = HardwareGPU(given.device, timed=False)
        every[given.program].run(gpu)
        gpu.close()
    except SimtError as error:
        sys.exit(f"{given.program}: {error}")


if __name__ == "__main__":
    main()
