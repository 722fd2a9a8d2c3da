"""Accuracy of the sampling methods on real profiles: error, speedup, coverage, and the same across GPUs.

python benchmarks/sampling_accuracy.py [--seeds 10] [--coverage 300]

Reads the profiles of the shared folder beside the repository (docs/sampling/README.md has the results).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from simt.profile import Profile, read_profile
from simt.sampling import Comparison, compare, registry

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "profiles"
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
]
ERROR = 0.05


def run(profile: Profile, methods: list[str], seeds: int, truth: Profile | None = None) -> Comparison:
    samplers = {label: registry.from_text(label, error=ERROR) for label in methods}
    return compare(profile, samplers, seeds, truth)


def table(found: dict[str, Comparison], methods: list[str]) -> None:
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

    print("\nSpeedup of neyman over root allocation=global, at the same bound and at equal realised error")
    for file, profile in profiles.items():
        equal_error(file, profile, found[file], options.seeds)

    print(f"\nSeeds of {options.coverage} within the claimed bound")
    claiming = [m for m in METHODS if not m.startswith("random")]
    print(f"{'':42}" + "".join(f"{m:>24}" for m in claiming))
    for file, profile in profiles.items():
        rows = {row["method"]: row for row in run(profile, claiming, options.coverage).summary.to_dicts()}
        print(f"{file:42}" + "".join(f"{100 * rows[m]['coverage']:22.1f} %" for m in claiming))

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
        print(f"{label}\n{run(profile, claiming, 100, truth)}")
    print(f"\n{time.perf_counter() - began:.0f} s in all")


def equal_error(file: str, profile: Profile, found: Comparison, seeds: int) -> None:
    """Finds the bound at which neyman realises ROOT's mean error, and prints both ratios."""
    rows = {row["method"]: row for row in found.summary.to_dicts()}
    root, same = rows["root allocation=global"], rows["neyman"]
    low, high = 1e-4, ERROR
    for _ in range(7):
        bound = (low * high) ** 0.5
        sampler = {"neyman": registry.from_text("neyman", error=bound)}
        row = compare(profile, sampler, seeds).summary.to_dicts()[0]
        low, high = (bound, high) if row["mean_error"] <= root["mean_error"] else (low, bound)
    print(
        f"{file:42} {same['speedup_hmean'] / root['speedup_hmean']:5.2f} at the bound "
        f"({100 * same['mean_error']:.2f} % and {100 * root['mean_error']:.2f} % realised), "
        f"{row['speedup_hmean'] / root['speedup_hmean']:5.2f} at equal error (bound {100 * bound:.2f} %, "
        f"{100 * row['mean_error']:.2f} %)"
    )


if __name__ == "__main__":
    main()
