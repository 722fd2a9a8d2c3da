"""DRAM scheduling: row hits first (FR-FCFS) against first come first served (FCFS).

python examples/case_studies/dram_scheduling.py        after Accel-Sim (ISCA 2020), figure 9
"""

import matplotlib.pyplot as plt
import study

NAMES = ("triad", "relu", "transpose", "gather", "rows", "spmv", "fir", "convolution")
# As after a long time: nothing is left in the L2 of what was copied to the GPU.
COLD = {"l2.copies_fill": False}


def main() -> None:
    given = study.arguments(__doc__, "case-dram-scheduling.png")
    names = ("triad", "transpose") if given.quick else NAMES
    speedups, hits, table = [], {"FCFS": [], "FR-FCFS": []}, []
    for name in names:
        times, busy = {}, {}
        for key, policy in (("FCFS", "fcfs"), ("FR-FCFS", "fr_fcfs")):
            totals, times[key] = study.simulated(
                study.PROGRAMS[name], "qv100", {**COLD, "dram.scheduler": policy}, given
            )
            moved = totals.engine["dram_reads"] + totals.engine["dram_writes"]
            hits[key].append(100 * totals.engine["dram_row_hits"] / moved)
            busy[key] = totals.counters["dram__throughput.avg.pct_of_peak_sustained_elapsed"] or 0
        speedups.append(times["FCFS"] / times["FR-FCFS"])
        table.append(
            [
                name,
                *(f"{times[key]:,}" for key in times),
                f"{speedups[-1]:.2f}",
                *(f"{hits[key][-1]:.0f} %" for key in times),
                *(f"{busy[key]:.0f} %" for key in times),
            ]
        )
    header = ["program", "cycles, FCFS", "FR-FCFS", "speed-up", "row hits, FCFS", "FR-FCFS"]
    study.print_table([*header, "DRAM busy, FCFS", "FR-FCFS"], table)
    print(f"FR-FCFS is {study.geometric_mean(speedups):.2f} times as fast (geometric mean)")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    study.bars(left, names, {"": speedups}, "speed-up of FR-FCFS over FCFS", ["#2a6f97"])
    left.axhline(1, color="grey", linewidth=0.8)
    study.bars(right, names, hits, "accesses to an open row, %", digits=0)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
