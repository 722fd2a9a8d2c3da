"""Accuracy of the sampling methods on real profiles: error, speedup, coverage, and the same across GPUs.

python sampling_accuracy.py [--seeds 10] [--coverage 300]

Reads the profiles in ../shared/data/profiles, which are not part of the repository, and skips without them.
docs/sampling/README.md shows the results.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from simt.profile import Profile, read_profile
from simt.sampling import SamplerComparison, compare, registry

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "profiles"
FILES = [
    "v100_training.kineto.json.gz",
    "rtx2080ti_resnet_training.kineto.json.gz",
    "h100_owlv2_inference.kineto.json.gz",
    "mi300x_owlv2_inference.kineto.json.gz",
    "mi350_training_50steps.rocprofv3.json.gz",
    "a100_cloverleaf.nsys.sqlite.gz",
    "h100_2gpu_llm_training.nsys.sqlite.gz",
]
METHODS = [
    "random p=0.001",
    "random p=0.01",
    "stem",
    "root allocation=leaf",
    "root allocation=name",
    "root allocation=global",
    "neyman",
    "neyman aim=time",
]
BOUNDED = ["root allocation=global", "neyman", "neyman aim=time"]  # whose bounds are tight enough to fail
ERROR = 0.05


def run(profile: Profile, methods: list[str], seeds: int, truth: Profile | None = None) -> SamplerComparison:
    samplers = {label: registry.from_text(label, error=ERROR) for label in methods}
    return compare(profile, samplers, seeds, truth)


def table(found: dict[str, SamplerComparison], methods: list[str]) -> None:
    """Means over the traces: arithmetic of the error, harmonic and geometric of the speedup."""
    print(f"{'method':24}  mean err  worst seed  speedup hmean  gmean  distinct  plan time")
    for method in methods:
        rows = [row for c in found.values() for row in c.summary.to_dicts() if row["method"] == method]
        if not rows:
            continue
        error = np.mean([row["mean_error"] for row in rows])
        worst = max(row["worst_error"] for row in rows)
        speedups = np.array([row["speedup_hmean"] for row in rows])
        distinct = np.array([row["distinct_speedup"] for row in rows])
        print(
            f"{method:24}  {100 * error:7.2f}%  {100 * worst:9.1f}%  {1 / np.mean(1 / speedups):12.1f}x  "
            f"{np.exp(np.mean(np.log(speedups))):5.1f}x  {1 / np.mean(1 / distinct):7.1f}x  "
            f"{1e3 * np.median([row['seconds'] for row in rows]):6.1f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--coverage", type=int, default=300)
    options = parser.parse_args()
    began = time.perf_counter()
    if not DATA.is_dir():
        print(f"no profiles in {DATA}")
        return
    profiles = {}
    for file in FILES:
        start = time.perf_counter()
        profile = profiles[file] = read_profile(DATA / file).kernels()
        left = sum(part.share for part in profile.left_out)
        seconds = time.perf_counter() - start
        print(
            f"{file:42} {len(profile):6,} launches of {len(profile.names):4} kernels, "
            f"{profile.total_ns / 1e6:7.1f} ms, {100 * left:4.1f}% left out, read in {seconds:.2f} s"
        )

    print(f"\nBound 5 % at 95 %, {options.seeds} seeds, {len(profiles)} traces")
    found = {file: run(profile, METHODS, options.seeds) for file, profile in profiles.items()}
    table(found, METHODS)

    print("\nneyman against root allocation=global at the same bound, by the variance of their plans:")
    print("simulated time and root-mean-square error, each as ROOT's divided by ours (above 1 is better)")
    aims = ["neyman", "neyman aim=time", "neyman aim=error"]
    print(f"{'':42}" + "".join(f"{aim:>24}" for aim in aims) + f"{'rms of root':>16}")
    for file, profile in profiles.items():
        time_root, error_root = expected(profile, "root allocation=global")
        cells = []
        for aim in aims:
            nanoseconds, error = expected(profile, aim)
            cells.append(f"{time_root / nanoseconds:12.2f} {error_root / error:6.2f} rms ")
        print(f"{file:42}" + "".join(f"{cell:>24}" for cell in cells) + f"{100 * error_root:14.2f} %")

    print(f"\nSeeds of {options.coverage} within the claimed bound")
    print(f"{'':42}" + "".join(f"{m:>24}" for m in BOUNDED))
    for file, profile in profiles.items():
        rows = {row["method"]: row for row in run(profile, BOUNDED, options.coverage).summary.to_dicts()}
        print(f"{file:42}" + "".join(f"{100 * rows[m]['coverage']:22.1f} %" for m in BOUNDED))

    print("\nAcross GPUs and runs, 100 seeds: plans from the first, judged by the second")
    steps = profiles["mi350_training_50steps.rocprofv3.json.gz"]
    half = len(steps) // 2
    pairs = {
        "H100 -> MI300X, OWLv2": (
            profiles["h100_owlv2_inference.kineto.json.gz"],
            profiles["mi300x_owlv2_inference.kineto.json.gz"],
        ),
        "MI350, first half -> second half": (
            replace(steps, launches=steps.launches[:half]),
            replace(steps, launches=steps.launches[half:]),
        ),
    }
    for label, (profile, truth) in pairs.items():
        print(f"\n{label}\n{run(profile, [*METHODS[1:], 'adaptive'], 100, truth)}")
    print(f"\n{time.perf_counter() - began:.0f} s in all")


def expected(profile: Profile, method: str) -> tuple[float, float]:
    """Mean time of the drawn launches, ns, and root-mean-square relative error of the profiled total.

    Stratified random sampling without replacement (Cochran, "Sampling Techniques", 1977, theorem 5.3); the
    systematic draws of neyman spread at least as evenly.
    """
    strata = registry.from_text(method, error=ERROR).fit_plan(profile).strata
    n, m, time_ns, cov = (strata[c].to_numpy().astype(float) for c in ("launches", "draws", "time_ns", "cov"))
    mean = time_ns / n
    spread = (cov * mean) ** 2 * n / np.maximum(n - 1, 1)
    variance = float(np.sum(n * n * spread / m * (1 - m / n)))
    return float(m @ mean), variance**0.5 / profile.total_ns


if __name__ == "__main__":
    main()
