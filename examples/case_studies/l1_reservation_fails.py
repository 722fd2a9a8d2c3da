"""L1 reservation failures: the L1 that GPGPU-Sim 3.x has against the one that GPUs have since Volta.

python examples/case_studies/l1_reservation_fails.py        after Accel-Sim (ISCA 2020), figure 8
"""

import matplotlib.pyplot as plt
import study

from simt.spec import load_spec

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
OWN = ("line", "mshr", "merge")  # what a look-up finds taken in the L1 itself
BEHIND = ("miss_queue",)  # full because the way to the L2 takes no more


def main() -> None:
    given = study.arguments(__doc__, "case-l1-reservation-fails.png")
    names = ("rows", "gather") if given.quick else NAMES
    sms = load_spec("qv100").sm.count
    models = {"GPGPU-Sim 3.x's L1": OLD, "Volta's L1": NEW}
    own: dict[str, list[float]] = {key: [] for key in models}
    behind: dict[str, list[float]] = {key: [] for key in models}
    cycles: dict[str, list[int]] = {key: [] for key in models}
    for name in names:
        for key, overrides in models.items():
            totals, time = study.simulated(study.PROGRAMS[name], "qv100", overrides, given)
            for found, causes in ((own, OWN), (behind, BEHIND)):
                count = sum(totals.engine[f"l1_reservation_fail_{cause}"] for cause in causes)
                found[key].append(1000 * count / time / sms)
            cycles[key].append(time)
    faster = [a / b for a, b in zip(*cycles.values(), strict=True)]
    header = ["program", *(f"{key}: {what}" for key in models for what in ("own", "queue", "cycles"))]
    study.print_table(
        [*header, "old/new"],
        [
            [
                name,
                *(
                    text
                    for key in models
                    for text in (f"{own[key][i]:,.1f}", f"{behind[key][i]:,.1f}", f"{cycles[key][i]:,}")
                ),
                f"{faster[i]:.2f}",
            ]
            for i, name in enumerate(names)
        ],
    )
    print("own, queue: failures per 1,000 cycles of an SM for want of a line or MSHR, and of the miss queue")
    print(f"Volta's L1 is {study.geometric_mean(faster):.2f} times as fast (geometric mean)")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    study.bars(left, names, own, "failures per 1,000 cycles of an SM", digits=0)
    for patches, values in zip(list(left.containers), behind.values(), strict=True):
        for i, bar in enumerate(patches):
            left.bar(
                bar.get_x() + bar.get_width() / 2,
                values[i],
                bar.get_width(),
                bottom=bar.get_height(),
                color=bar.get_facecolor(),
                alpha=0.35,
                label="miss queue full" if i == 0 and values is behind["Volta's L1"] else None,
            )
    left.legend(frameon=False)
    study.bars(right, names, {"": faster}, "cycles with the old L1 / with the new", ["#7d9d3d"])
    right.axhline(1, color="grey", linewidth=0.8)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
