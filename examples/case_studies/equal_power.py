"""80 SMs against 40 at equal power: many slow SMs or few fast ones.

python examples/case_studies/equal_power.py        after half_the_sms.py, with the clock under a power cap
"""

from functools import partial

import matplotlib.pyplot as plt
import study

import simt
from simt.power import at_clock, load_energies, under_cap
from simt.spec import load_spec

NAMES = ("aes", "matmul", "fir", "spmv", "gather", "relu", "triad")


def main() -> None:
    given = study.arguments(__doc__, "case-equal-power.png")
    names = ("aes", "triad") if given.quick else NAMES
    spec, energies = load_spec("qv100"), load_energies("qv100")

    def run(program: study.Program, core_mhz: float) -> simt.Result:
        return study.energy(program, "qv100", at_clock(spec, core_mhz), given)[1]

    table, speedups, delays = [], [], []
    for name in names:
        program = study.PROGRAMS[name]
        half, _ = study.energy(program, "qv100", {"sm.count": 40}, given)
        capped = under_cap(partial(run, program), spec, energies, half.watts)
        full = capped.result.energy
        speedups.append(half.seconds / full.seconds)
        delays.append(half.energy_delay / full.energy_delay)
        table.append(
            [
                name,
                f"{1e6 * half.seconds:.1f}",
                f"{half.watts:.0f}",
                f"{1e6 * full.seconds:.1f}",
                f"{full.watts:.0f}",
                f"{capped.result.machine.core_khz / 1000:,.0f}",
                f"{speedups[-1]:.2f}",
                study.ratio(half, full),
                f"{delays[-1]:.2f}",
            ]
        )
    header = ["program", "us, 40 SMs", "W", "us, 80 SMs", "W", "MHz", "speed-up", "energy", "energy-delay"]
    study.print_table(header, table)
    print(f"80 SMs are {study.geometric_mean(speedups):.2f} times as fast (geometric mean)")
    figure, axes = plt.subplots(figsize=(12, 4))
    gains = {"speed-up": speedups, "energy-delay": delays}
    study.bars(axes, names, gains, "gain of 80 SMs at equal power")
    axes.axhline(1, color="grey", linewidth=0.8)
    study.save(figure, given.output)


if __name__ == "__main__":
    main()
