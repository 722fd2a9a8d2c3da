"""A plan of launches with a controller in each: a program of 10,000 launches against its full simulation.

    python plan_and_controller.py [SEEDS]

The profile is what a tool would have measured on another GPU: times that go with the work of a launch. For
each seed a plan is drawn, its launches are simulated under PKP, and 5 % of those cut short in full as well.
Prints, as Markdown, the error of the total of all launches, and the error statement that came with it.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl

from simt.control import PKP
from simt.control.accuracy import choose, verification, with_accuracy
from simt.gpu import GPU
from simt.profile import Profile
from simt.sampling import Random

SOURCE = """
extern "C" __global__ void smooth(float* x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i % n];
    for (int k = 0; k < rounds; ++k) v = v * 1.0001f + 0.5f;
    if (i < n) x[i] = v;
}
extern "C" __global__ void spread(float* x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    for (int k = 0; k < rounds; ++k) v += x[(i * 7 + k * 129) % n];
    if (i < n) x[i] = v / (1 + rounds);
}
"""
LAUNCHES, ELEMENTS, SHARE = 10_000, 4096, 0.05
MACHINE = {"sm.count": 1}  # so that launches of a few thousand cycles are several waves
CHOSEN = 150


def launches() -> list[tuple[str, int, int]]:
    """Kernel, CTAs and rounds of each launch."""
    random = np.random.default_rng(1)
    sizes, rounds = random.integers(40, 200, LAUNCHES), random.integers(2, 10, LAUNCHES)
    names = np.where(random.random(LAUNCHES) < 0.3, "spread", "smooth")
    return list(zip(names.tolist(), sizes.tolist(), rounds.tolist(), strict=True))


def run(gpu: GPU) -> GPU:
    module, x = gpu.compile(SOURCE), gpu.zeros(ELEMENTS)
    for name, ctas, rounds in launches():
        module[name][ctas, 32](x, ELEMENTS, rounds)
    return gpu


def profile() -> Profile:
    times = [float(ctas * (8 + rounds * (3 if name == "spread" else 1))) for name, ctas, rounds in launches()]
    names = [name for name, _, _ in launches()]
    return Profile(pl.DataFrame({"launch": range(LAUNCHES), "name": names, "duration_ns": times}))


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    start = time.process_time()
    truth = run(GPU("a100", set=MACHINE)).result()
    seconds = time.process_time() - start
    true = sum(x.cycles for x in truth.launches)
    print(f"full: {true:,} cycles of {LAUNCHES:,} launches, {seconds:.1f} s\n", flush=True)
    print(
        "| seed | total | error | choice of launches | projection | together | covered | instructions | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    covered = 0
    for seed in range(seeds):
        start = time.process_time()
        plan = Random(size=CHOSEN, seed=seed).fit_plan(profile())
        result = run(GPU("a100", set=MACHINE, plan=plan, controller=PKP(window=400, interval=100))).result()
        again = run(GPU("a100", set=MACHINE, plan=choose(result, SHARE, seed))).result()
        seconds = time.process_time() - start
        sampling = with_accuracy(result, plan, verification(result, again, SHARE, seed)).sampling
        assert sampling is not None
        found = sampling["plan"]
        error = found["cycles"] / true - 1
        holds = abs(found["cycles"] - true) <= found["combined_error"] * found["cycles"]
        covered += holds
        share = sum(x.sampled.warp_instructions for x in result.launches if x.sampled) / sum(
            x.warp_instructions for x in truth.launches
        )
        print(
            f"| {seed} | {found['cycles']:,.0f} | {100 * error:+.2f} % | "
            f"± {100 * found['sampling_error']:.2f} % | {100 * found['projection_error']:.2f} % | "
            f"{100 * found['combined_error']:.2f} % | "
            f"{'yes' if holds else 'no'} | {100 * share:.2f} % | {seconds:.1f} |",
            flush=True,
        )
    print(f"\n{covered} of {seeds} statements hold")


if __name__ == "__main__":
    main()
