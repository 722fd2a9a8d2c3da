"""FP32, FP16 and tensor cores: energy of a multiply-add in matrix products near the peak.

python examples/case_studies/gemm_energy.py
"""

import gemm
import matplotlib.pyplot as plt
import study

from simt.power import load_energies

GPUS = ("qv100", "a100", "h100")


def main() -> None:
    given = study.arguments(__doc__, "case-gemm-energy.png")
    gpus = ("a100",) if given.quick else GPUS
    table, names, products = [], [], []
    for gpu in gpus:
        tdp = load_energies(gpu).reference["tdp_w"].value
        tensor = gemm.tensor(gpu)
        # Deep enough that the middle half of a launch neither waits for the first tiles nor stores the last.
        deep, deepest = (32, 128) if given.quick else (192, 512)
        kinds = [("FP32", gemm.fp32(gpu), deep), ("FP16", gemm.FP16, deep), ("tensor", tensor, deepest)]
        for kind, kernel, k in kinds[::2] if given.quick else kinds:
            x = gemm.product(gpu, kernel, k, given.threads)
            wrong = 1.96 * x.uncertainty * x.picojoules
            cells = [f"{x.rate:.0f}", f"{x.watts:.0f}", f"{100 * x.watts / tdp:.0f} %", f"{x.picojoules:.1f}"]
            table.append([f"{gpu} {kind}", *cells, f"{x.picojoules - wrong:.1f}-{x.picojoules + wrong:.1f}"])
            names.append(f"{gpu} {kind}")
            products.append(x)
    study.print_table(["product", "products/cycle/SM", "W", "of TDP", "pJ/product", "95 %"], table)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    rows = [{key: 1e12 * j / x.multiply_adds for key, j in x.joules.items()} for x in products]
    study.stacked(left, names, rows, "pJ per multiply-add", digits=1)
    rows = [{key: j / x.seconds for key, j in x.joules.items()} for x in products]
    study.stacked(right, names, rows, "W")
    study.legend(right)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
