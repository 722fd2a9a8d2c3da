"""Time-based samplers on ten million launches: seconds from a loaded profile to the plan, and peak memory.

usage: python samplers_time.py [--launches N]

The profile is made up: 80 kernels, counts falling as 1/rank, times in whole nanoseconds with one to three
log-normal peaks each and a heavy tail. Each sampler runs in a process of its own, so that its peak memory is
its own: after the first fit, and after four, with what earlier ones left behind. The first fit also pays for
the pages that it touches first; the best of four, and its processor time, are the figures to compare where
others use the machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import polars as pl

from simt.profile import Profile
from simt.sampling import Neyman, Root, Sampler, Stem

SAMPLERS: dict[str, Sampler] = {
    "STEM": Stem(),
    "STEM, artifact": Stem(fidelity="artifact"),
    "ROOT, per leaf": Root(allocation="leaf"),
    "ROOT, per name": Root(),
    "ROOT, global": Root(allocation="global"),
    "Neyman, least time": Neyman(aim="time"),
    "Neyman": Neyman(),
}


def made_up(launches: int) -> Profile:
    """Heavy-tailed times of 80 kernels; the same for the same number of launches."""
    random = np.random.default_rng(0)
    share = 1 / np.arange(1, 81)
    kernel = random.choice(80, launches, p=share / share.sum()).astype(np.uint32)
    times = 2000.0 * 1.08**kernel * (1 + kernel % 3 * random.integers(0, 2, launches))
    times *= np.exp(random.normal(0, 0.02 + 0.002 * kernel))
    times[random.random(launches) < 0.001] *= 20
    names = pl.Enum([f"kernel_{k:02}" for k in range(80)])
    frame = pl.DataFrame({"launch": np.arange(launches, dtype=np.uint64), "duration_ns": times.round()})
    rows = pl.DataFrame({"name": pl.Series(names.categories, dtype=names)})
    return Profile(frame.with_columns(rows["name"].gather(kernel)))


def measure(label: str, launches: int) -> None:
    profile = made_up(launches)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, busy, peaks = [], [], []
    for _ in range(4):
        profile = replace(profile)  # a sampler keeps its strata for the profile that it saw last
        _ = profile.name_codes
        begin, work = time.perf_counter(), time.process_time()
        plan = SAMPLERS[label].fit_plan(profile)
        seconds.append(time.perf_counter() - begin)
        busy.append(time.process_time() - work)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    print(
        f"{label:19} {seconds[0]:7.2f} {min(seconds):7.2f} {min(busy):7.2f} {peaks[0] / 1e6:9.2f} "
        f"{peaks[-1] / 1e6:8.2f} {before / 1e6:9.2f} {len(plan.strata):7} {len(plan):8} {plan.speedup:8.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=10_000_000)
    parser.add_argument("--only", choices=SAMPLERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        measure(options.only, options.launches)
        return
    print(f"{options.launches:,} launches, 80 kernels")
    print(
        "sampler             first s  best s   cpu s  first GB  peak GB loaded GB  strata launches  speedup",
        flush=True,
    )
    for label in SAMPLERS:
        command = [sys.executable, __file__, "--launches", str(options.launches), "--only", label]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
