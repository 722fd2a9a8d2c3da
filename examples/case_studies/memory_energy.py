"""What the hash of L2 slices and the DRAM scheduler change in energy.

python examples/case_studies/memory_energy.py        the subjects of l2_hash.py and dram_scheduling.py
"""

import matplotlib.pyplot as plt
import study

NAMES = ("transpose", "triad", "gather", "rows")
COLD = {"l2.copies_fill": False}
CHANGES = {
    "stock": {},
    "no hash": {"address_map.hash": "linear"},
    "FCFS": {"dram.scheduler": "fcfs"},
}


def main() -> None:
    given = study.arguments(__doc__, "case-memory-energy.png")
    names = ("transpose", "triad") if given.quick else NAMES
    table, labels, energies = [], [], []
    for name in names:
        stock = None
        for change, overrides in CHANGES.items():
            x, result = study.energy(study.PROGRAMS[name], "qv100", {**COLD, **overrides}, given)
            stock = stock or x
            table.append(
                [
                    f"{name}, {change}",
                    f"{1e6 * x.seconds:.1f}",
                    f"{1e3 * x.joules:.2f}",
                    study.ratio(x, stock),
                    f"{x.watts:.0f}",
                    f"{result.totals.engine['dram_activates']:,}",
                    f"{1e6 * x.components['DRAM']:.0f}",
                ]
            )
            labels.append(f"{name}, {change}")
            energies.append(x)
    header = ["program", "us", "mJ", "energy over stock", "W", "DRAM activates", "uJ in DRAM"]
    study.print_table(header, table)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    rows = [{key: 1e3 * j for key, j in x.components.items()} for x in energies]
    study.stacked(left, labels, rows, "mJ", digits=2)
    rows = [{key: j / x.seconds for key, j in x.components.items()} for x in energies]
    study.stacked(right, labels, rows, "W")
    study.legend(right)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
