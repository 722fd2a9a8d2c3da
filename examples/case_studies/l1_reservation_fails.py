"""L1 reservation failures: the L1 that GPGPU-Sim 3.x has against the one that GPUs have since Volta.

python examples/case_studies/l1_reservation_fails.py        after Accel-Sim (ISCA 2020), figure 8
"""

import matplotlib.pyplot as plt
import study

# Accel-Sim, table VI, left: 32 KB, lines of 128 B in 4 sets, one bank, write-evict; MSHRs as GPGPU-Sim 3.x.
OLD = {
    "l1.adaptive": False,
    "l1.banks": 1,
    "l1.cache.sectored": False,
    "l1.cache.sets": 4,
    "l1.cache.ways": 64,
    "l1.cache.allocation": "on_miss",
    "l1.cache.write_policy": "write_evict",
    "l1.cache.write_allocation": "none",
    "l1.cache.mshr_entries": 32,
    "l1.cache.mshr_merge": 8,
    "l1.cache.miss_queue": 8,
    "load_store.sectored_coalescing": False,
}
# Right: sectored, banked, the whole 128 KB; misses do not hold lines until they are filled.
NEW = {"l1.cache.allocation": "streaming"}
NAMES = ("rows", "gather", "spmv", "pagerank", "convolution", "fir", "transpose", "triad")
CAUSES = ("line", "miss_queue", "mshr", "merge")


def main() -> None:
    given = study.arguments(__doc__, "case-l1-reservation-fails.png")
    names = ("rows", "gather") if given.quick else NAMES
    fails: dict[str, list[float]] = {"GPGPU-Sim 3.x's L1": [], "Volta's L1": []}
    cycles: dict[str, list[int]] = {key: [] for key in fails}
    for name in names:
        for key, overrides in zip(fails, (OLD, NEW), strict=True):
            totals, time = study.simulated(study.PROGRAMS[name], "qv100", overrides, given)
            count = sum(totals.engine[f"l1_reservation_fail_{cause}"] for cause in CAUSES)
            fails[key].append(1000 * count / time / 80)
            cycles[key].append(time)
    old, new = fails
    faster = [a / b for a, b in zip(cycles[old], cycles[new], strict=True)]
    study.print_table(
        ["program", "fails/kcycle, old", "new", "cycles, old", "new", "old/new"],
        [
            [n, f"{a:,.1f}", f"{b:,.1f}", f"{c:,}", f"{d:,}", f"{f:.2f}"]
            for n, a, b, c, d, f in zip(
                names, fails[old], fails[new], cycles[old], cycles[new], faster, strict=True
            )
        ],
    )
    print(f"Volta's L1 is {study.geometric_mean(faster):.2f} times as fast (geometric mean)")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    study.bars(left, names, fails, "failures per 1,000 cycles of an SM", digits=0)
    study.bars(right, names, {"": faster}, "cycles with the old L1 / with the new", ["#7d9d3d"])
    right.axhline(1, color="grey", linewidth=0.8)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
