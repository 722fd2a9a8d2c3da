"""Samplers that cluster by counters: seconds (by the clock, and of CPU) and peak memory, without loading.

usage: python benchmarks/samplers_clustering.py [--scale F]

Profiles are made up: 400 kinds of launches of 80 kernels with 12 counters over five decades, with the same
counters in every launch of a kind, or with 2 % of noise so that no two launches are alike, or with no kinds
at all. PKS is made to try every K up to 20: no error is small enough. Each case runs in a process of its own;
the memory is that of the whole process, profile included. F scales the numbers of launches.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from simt.profile import Profile
from simt.sampling import PKS, Sampler, Sieve, TBPoint, TwoLevel
from simt.sampling.features import PAPER

KINDS, KERNELS = 400, 80


def profile(launches: int, noise: str, kinds: int = KINDS) -> Profile:
    random = np.random.default_rng(0)
    kind = random.integers(0, kinds, launches)
    columns: dict[str, pl.Series] = {}
    for aliases in PAPER.values():
        values = np.round(10 ** random.uniform(1, 6, kinds))[kind]
        if noise == "noise":
            values *= 1 + 0.02 * random.standard_normal(launches)
        elif noise == "no kinds":
            values = np.abs(10 + random.standard_normal(launches))
        columns[aliases[0]] = pl.Series(values)
    names = [f"void kernel_{k}<float>(float const*, float*, int)" for k in range(KERNELS)]
    codes = pl.Series((kind % KERNELS).astype(np.uint8))
    base = 10 ** random.uniform(3, 6, kinds)
    return Profile(
        pl.DataFrame(
            {
                "launch": np.arange(launches, dtype=np.uint64),
                "name": pl.Series(sorted(names), dtype=pl.Enum(sorted(names)))[codes],
                "grid_x": (1 + kind).astype(np.uint32),
                "block_x": (64 * (1 + kind % 4)).astype(np.uint32),
                "duration_ns": base[kind] * random.uniform(0.9, 1.1, launches),
                **columns,
            }
        )
    )


CASES: dict[str, tuple[float, str, int, Callable[[], Sampler]]] = {
    "PKS, 400 kinds, K to 20": (5.3e6, "", KINDS, lambda: PKS(error=0.0)),
    "PKS, all different, K to 20": (5.3e6, "noise", KINDS, lambda: PKS(error=0.0)),
    "PKS, all different, default": (5.3e6, "noise", KINDS, PKS),
    "PKS, no structure, K to 20": (5.3e6, "no kinds", KINDS, lambda: PKS(error=0.0)),
    "two-level, 20 000 detailed": (5.3e6, "", KINDS, lambda: TwoLevel(20_000)),
    "TBPoint, 400 kinds": (1e6, "", KINDS, lambda: TBPoint(error=0.0)),
    "TBPoint, 20 000 kinds": (1e6, "", 20_000, lambda: TBPoint(error=0.0)),
    "Sieve, 400 kinds": (1e6, "", KINDS, Sieve),
    "Sieve, all different": (1e6, "noise", KINDS, Sieve),
    "Sieve, as its artifact": (1e6, "noise", KINDS, lambda: Sieve(fidelity="artifact")),
}


def measure(case: str, scale: float) -> dict[str, float]:
    launches, noise, kinds, make = CASES[case]
    made = profile(int(launches * scale), noise, kinds)
    warm = profile(1000, noise, 10)
    make().fit(warm)  # scikit-learn is loaded
    start, cpu = time.perf_counter(), time.process_time()
    plan = make().fit_plan(made)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "launches": len(made),
        "seconds": seconds,
        "cpu": cpu,
        "bytes": peak,
        "strata": len(plan.strata),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measure(arguments.case, arguments.scale)))
        return
    print(f"{'case':<30} {'launches':>10} {'seconds':>8} {'CPU':>6} {'peak':>9} {'strata':>7}")
    for case in CASES:
        command = [sys.executable, __file__, "--case", case, "--scale", str(arguments.scale)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout)
        memory = f"{row['bytes'] / 1e9:.2f} GB"
        times = f"{row['seconds']:>8.2f} {row['cpu']:>6.2f}"
        print(f"{case:<30} {row['launches']:>10,} {times} {memory:>9} {row['strata']:>7}", flush=True)


if __name__ == "__main__":
    main()
