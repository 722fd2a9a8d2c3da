"""80 SMs against 40: which programs gain from twice the SMs.

python examples/case_studies/half_the_sms.py        after Principal Kernel Analysis (MICRO 2021), figure 10
"""

import matplotlib.pyplot as plt
import study

NAMES = ("aes", "matmul", "convolution", "fir", "spmv", "pagerank", "rows", "gather", "relu", "triad")


def main() -> None:
    given = study.arguments(__doc__, "case-half-the-sms.png")
    names = ("aes", "triad") if given.quick else NAMES
    labels, table, speedups = [], [], []
    runs = [(name, study.simulated, study.PROGRAMS[name]) for name in names]
    if not given.quick:
        runs += [(trace.name, study.replayed, trace) for trace in study.traces()]
    for name, run, what in runs:
        _, half = run(what, "qv100", {"sm.count": 40}, given)
        totals, full = run(what, "qv100", {}, given)
        labels.append(name)
        speedups.append(half / full)
        busy = totals.counters["dram__throughput.avg.pct_of_peak_sustained_elapsed"] or 0
        table.append([name, f"{half:,}", f"{full:,}", f"{half / full:.2f}", f"{busy:.0f} %"])
    study.print_table(["program", "cycles, 40 SMs", "80 SMs", "speed-up", "DRAM busy (80)"], table)
    print(f"80 SMs are {study.geometric_mean(speedups):.2f} times as fast (geometric mean)")
    figure, axes = plt.subplots(figsize=(12, 4))
    study.bars(axes, labels, {"": speedups}, "speed-up of 80 SMs over 40", ["#2a6f97"])
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.axhline(2, color="grey", linewidth=0.8, linestyle="--")
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
