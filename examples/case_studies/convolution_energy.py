"""Energy of the convolution algorithms, by component.

python examples/case_studies/convolution_energy.py        algorithms of Lew et al. (2018): docs/convolution.md
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import study

from simt.examples.convolution import ALGORITHMS
from simt.examples.convolution.study import LAYERS, runs
from simt.power import load_energies


def main() -> None:
    given = study.arguments(__doc__, "case-convolution-energy.png")
    layer, names = ("tiny", list(ALGORITHMS)[:2]) if given.quick else ("layer", list(ALGORITHMS))
    latency = [f"{key}={value}" for key, value in study.NO_LATENCY.items()]
    energies, found = load_energies("titanx"), {}
    for run in runs("titanx", LAYERS[layer], names, ["forward"], set=latency, threads=given.threads):
        found[run.algorithm] = replace(run.result, energies=energies).energy
    first = found["direct"]
    table = [
        [
            name,
            f"{1e6 * x.seconds:.1f}",
            f"{1e3 * x.joules:.2f}",
            f"{1e3 * x.interval[0]:.2f}-{1e3 * x.interval[1]:.2f}",
            study.ratio(x, first),
            f"{x.watts:.0f}",
            f"{1e12 * x.joules / LAYERS[layer].multiplications:.0f}",
            f"{1e9 * x.energy_delay:.1f}",
        ]
        for name, x in found.items()
    ]
    header = ["algorithm", "us", "mJ", "95 %", "energy over direct", "W", "pJ/product", "nJ s"]
    study.print_table(header, table)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    rows = [{name: 1e3 * j for name, j in x.components.items()} for x in found.values()]
    study.stacked(left, list(found), rows, "mJ", digits=1)
    rows = [{name: j / x.seconds for name, j in x.components.items()} for x in found.values()]
    study.stacked(right, list(found), rows, "W")
    study.legend(right)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
