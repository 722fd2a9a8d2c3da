"""V100 against RTX 2060: speed-up in time of programs that compute and of programs that move data.

python examples/case_studies/v100_against_rtx2060.py    after Principal Kernel Analysis (MICRO 2021), figure 9
"""

import matplotlib.pyplot as plt
import study

from simt.spec import Spec, load_spec

NAMES = ("aes", "matmul", "convolution", "fir", "spmv", "pagerank", "rows", "gather", "relu", "triad")
COLD = {"l2.copies_fill": False}


def arithmetic(spec: Spec) -> float:
    """FP32 multiply-adds a second at most."""
    unit = spec.sm.units.fp32
    return spec.sm.count * unit.count * spec.sm.warp_size / unit.initiation_interval * spec.clock.core_mhz


def bandwidth(spec: Spec) -> float:
    """Bytes a second of the DRAM's buses."""
    dram = spec.dram
    return spec.address_map.channels * dram.bus_bytes * dram.data_command_ratio * spec.clock.dram_mhz


def main() -> None:
    given = study.arguments(__doc__, "case-v100-rtx2060.png")
    names = ("aes", "triad") if given.quick else NAMES
    specs = {gpu: load_spec(gpu) for gpu in ("qv100", "rtx2060")}
    table, speedups = [], []
    for name in names:
        microseconds = {}
        for gpu, spec in specs.items():
            _, cycles = study.simulated(study.PROGRAMS[name], gpu, COLD, given)
            microseconds[gpu] = cycles / spec.clock.core_mhz
        speedups.append(microseconds["rtx2060"] / microseconds["qv100"])
        table.append([name, *(f"{t:,.1f}" for t in microseconds.values()), f"{speedups[-1]:.2f}"])
    study.print_table(["program", "us, V100", "RTX 2060", "speed-up"], table)
    v100, rtx2060 = specs.values()
    ceilings = {
        "ratio of FP32 peaks": arithmetic(v100) / arithmetic(rtx2060),
        "ratio of DRAM peaks": bandwidth(v100) / bandwidth(rtx2060),
    }
    for what, ratio in ceilings.items():
        print(f"{what}: {ratio:.2f}")
    print(f"V100 is {study.geometric_mean(speedups):.2f} times as fast (geometric mean)")
    figure, axes = plt.subplots(figsize=(12, 4))
    study.bars(axes, names, {"": speedups}, "speed-up of V100 over RTX 2060", ["#2a6f97"])
    for (what, ratio), style in zip(ceilings.items(), ("--", ":"), strict=True):
        axes.axhline(ratio, color="grey", linewidth=1, linestyle=style, label=f"{what}: {ratio:.2f}")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.legend(frameon=False)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
