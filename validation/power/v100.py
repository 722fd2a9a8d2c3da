"""The power model on kernels whose board power was measured on a Quadro V100 (AccelWattch's validation set).

python validation/power/v100.py --programs DIR     simulates the programs of DIR and records their events
python validation/power/v100.py                    predicts, fits and judges with the recorded events
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import simt.exec
from simt.control.controller import GO_ON, Controller, Decision, Interval, LaunchView, Stop
from simt.control.projection import Projection
from simt.errors import SimtError
from simt.formatting import percent, text_table
from simt.power import load_energies
from simt.power.energies import Energies
from simt.power.fit import EnergyFit, fit, mean_absolute, write_toml
from simt.power.measurements import PowerMeasurement, launch_events
from simt.result import LaunchResult
from simt.spec import load_spec

GPU, CODE = "qv100", "sass"  # machine code, as on the board
RECORD = Path(__file__).with_name("v100-events.json")
PUBLISHED = Path(__file__).parents[3] / "shared/data/silicon"
SEED = 17  # of the split, chosen before any error was seen
COUNTERS = {  # ours, and the columns of the published table of which each is the sum
    "cycles": ["Elapsed_Cycles"],
    "shared_accesses": ["SHRD_ACC"],
    "l1_reads": ["L1_RH", "L1_RM"],
    "dram_reads": ["DRAM_Rd"],
    "dram_writes": ["DRAM_Wr"],
}


@dataclass(frozen=True)
class Kernel:
    """A row of the published tables: program, function, and the launch (from 1) that stands for its repeated
    launches.

    again: the launch before it is the same, and is simulated to warm the caches. most_cycles: simulated of a
        kernel that is too long; 0: all. loses_data: its repeated launches transform one array in place, which
        doubles the numbers each time or faster: within 133 launches all are NaN, so that nothing toggles
        while power is measured. Energies are for random data: such a row neither fits nor judges them.
    """

    program: str
    function: str
    launch: int
    again: bool = False
    most_cycles: int = 0
    loses_data: bool = False


KERNELS = {
    "binomialOptions_k1": Kernel("binomialOptions", "_Z21binomialOptionsKernelv", 1),
    "cudaTensorCoreGemm_k1": Kernel(
        "cudaTensorCoreGemm", "_Z12compute_gemmPK6__halfS1_PKfPfff", 1, most_cycles=300_000
    ),
    "dct8x8_k1": Kernel("dct8x8", "_Z14CUDAkernel1DCTPfiiiy", 3, again=True),
    "dct8x8_k2": Kernel("dct8x8", "_Z14CUDAkernel2DCTPfS_i", 20, again=True),
    "fastWalshTransform_k1": Kernel("fastWalshTransform", "_Z15fwtBatch2KernelPfS_i", 1, loses_data=True),
    "fastWalshTransform_k2": Kernel("fastWalshTransform", "_Z15fwtBatch1KernelPfS_i", 7, loses_data=True),
    "histogram_k1": Kernel("histogram", "_Z17histogram64KernelPjP5uint4j", 1),
    "mergeSort_k1": Kernel("mergeSort", "_Z30mergeElementaryIntervalsKernelILj1EEvPjS0_S0_S0_S0_S0_jj", 5),
    "mergeSort_k2": Kernel(
        "mergeSort", "_Z21mergeSortSharedKernelILj1EEvPjS0_S0_S0_j", 1, most_cycles=200_000
    ),
    "quasirandomGenerator_k1": Kernel(
        "quasirandomGenerator", "_Z26quasirandomGeneratorKernelPfjj", 3, again=True
    ),
    "quasirandomGenerator_k2": Kernel("quasirandomGenerator", "_Z16inverseCNDKernelPfPjj", 24, again=True),
    "sobolQRNG_k1": Kernel("SobolQRNG", "_Z15sobolGPU_kerneljjPjPf", 1),
}


@dataclass(frozen=True)
class Simulated:
    """What the simulator says of a kernel: time, counters and events (`simt.power.measurements`)."""

    seconds: float
    counters: Mapping[str, float]
    events: Mapping[str, float]


def split() -> tuple[list[str], list[str]]:
    """The rows that the energies are fitted to, and those that judge them."""
    drawn = set(random.Random(SEED).sample(sorted(KERNELS), len(KERNELS) // 2))
    rows = sorted(name for name, kernel in KERNELS.items() if not kernel.loses_data)
    return [name for name in rows if name in drawn], [name for name in rows if name not in drawn]


class Beginning(Controller):
    """Simulates the beginning of some launches, which is then all that there is of them.

    most: cycles by launch, from 1; 0: all.
    """

    method: ClassVar[str] = "beginning"

    def __init__(self, most: Mapping[int, int]) -> None:
        self.most = most

    def begin(self, launch: LaunchView) -> Decision:
        self._most = self.most.get(launch.id, 0)
        return GO_ON

    def observe(self, interval: Interval) -> Decision:
        return Stop("enough") if 0 < self._most <= interval.end else GO_ON

    def project(self, launch: LaunchView, now: Interval) -> Projection:
        return Projection(now.end, now.counters)


def simulate(
    folder: Path, energies: Energies, names: Sequence[str], overrides: Sequence[str] = ()
) -> dict[str, Simulated]:
    """Runs the programs of a folder. overrides: values of the specification. Raises SimtError."""
    gpu = load_spec(GPU, overrides)
    found: dict[str, Simulated] = {}
    for program in sorted({KERNELS[name].program for name in names}):
        rows = {KERNELS[name].launch: name for name in names if KERNELS[name].program == program}
        print(f"{program}: launches {', '.join(map(str, sorted(rows)))}", file=sys.stderr)
        most = {launch: KERNELS[name].most_cycles for launch, name in rows.items()}
        timed = {*rows, *(launch - 1 for launch, name in rows.items() if KERNELS[name].again)}
        command = [os.fspath((folder / program).resolve())]
        run = simt.exec.run(command, gpu, code=CODE, plan=timed, controller=Beginning(most))
        for launch in (x for result in run.results for x in result.launches if x.id in rows):
            name = rows[launch.id]
            if launch.name != KERNELS[name].function:
                raise SimtError(
                    f"{program}: launch {launch.id} is {launch.name}, not {KERNELS[name].function}"
                )
            found[name] = of_launch(launch, energies)
    return found


def of_launch(launch: LaunchResult, energies: Energies) -> Simulated:
    engine = launch.engine
    counters = {
        "cycles": launch.cycles,
        "shared_accesses": engine["shared_loads"] + engine["shared_stores"],
        "l1_reads": engine["global_load_sectors"],
        **{name: engine[name] for name in ("dram_reads", "dram_writes", "warp_instructions")},
    }
    return Simulated(launch.seconds, counters, launch_events(launch, energies))


def read_record(record: Path = RECORD) -> dict[str, Simulated]:
    data = json.loads(record.read_text(encoding="utf-8"))
    return {name: Simulated(**row) for name, row in data["kernels"].items()}


def write_record(found: Mapping[str, Simulated], record: Path, overrides: Sequence[str]) -> None:
    kernels = {name: asdict(found[name]) for name in sorted(found)}
    text = json.dumps({"gpu": GPU, "set": list(overrides), "code": CODE, "kernels": kernels}, indent=1)
    record.write_text(text + "\n", encoding="utf-8")


def published(folder: Path) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Watts and their deviation by row, and counters by row."""
    powers = {
        row["kernel"]: {k: float(row[k]) for k in ("watts", "std")}
        for row in table(folder / "v100-power.csv")
    }
    by_function = {row["Kernel"]: row for row in table(folder / "v100-counters.csv")}
    counters = {
        name: {
            **{
                ours: sum(float(by_function[kernel.function][x]) for x in of) for ours, of in COUNTERS.items()
            },
            "idle_sms": float(by_function[kernel.function]["Num_Idle_SMs"]),
        }
        for name, kernel in KERNELS.items()
    }
    return powers, counters


def table(path: Path) -> list[dict[str, str]]:
    lines = [x for x in path.read_text(encoding="utf-8").splitlines() if not x.startswith("#")]
    return list(csv.DictReader(lines))


def with_published_time(kernel: Kernel, found: Simulated, counters: Mapping[str, float]) -> Simulated:
    """The simulated events in the published number of cycles and of idle SMs.

    Events of a kernel that was not simulated whole grow with its loads, or accesses to shared memory.
    """
    seconds = counters["cycles"] / found.counters["cycles"] * found.seconds
    counted = "l1_reads" if counters["l1_reads"] else "shared_accesses"
    whole = counters[counted] / found.counters[counted] if kernel.most_cycles else 1.0
    longer = seconds / found.seconds
    sms = (found.events["power.sm_active"] + found.events.get("power.sm_idle", 0.0)) / found.seconds
    events = {
        key: n * (longer if key.startswith("power.") or key == "memory.dram_refresh" else whole)
        for key, n in found.events.items()
    }
    events["power.sm_idle"] = counters["idle_sms"] * seconds
    events["power.sm_active"] = (sms - counters["idle_sms"]) * seconds
    return Simulated(seconds, found.counters, events)


def compared(found: Mapping[str, Simulated], counters: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Lines of a table: simulated and published counters; per 1,000 cycles for a kernel simulated in part."""
    rows = []
    for name, each in found.items():
        row = [name, "part" if KERNELS[name].most_cycles else "all"]
        for counter in COUNTERS:
            for values in (each.counters, counters[name]):
                part = KERNELS[name].most_cycles and counter != "cycles"
                row.append(f"{values[counter] * (1000 / values['cycles'] if part else 1):,.0f}")
        rows.append(row)
    header = ["kernel", "", *(x for name in COUNTERS for x in (name.replace("_", " "), "published"))]
    return text_table(header, rows, (0, 1))


def measured(
    found: Mapping[str, Simulated], powers: Mapping[str, Mapping[str, float]]
) -> list[PowerMeasurement]:
    return [
        PowerMeasurement(name, each.events, each.seconds, powers[name]["watts"], powers[name]["std"])
        for name, each in found.items()
    ]


def left_out(rows: Sequence[PowerMeasurement], energies: Energies, error: float) -> list[float]:
    """The relative error of each row by energies fitted to the others."""
    found = []
    for row in rows:
        others = fit([other for other in rows if other is not row], energies, error=error)
        found += others.errors([row])
    return found


def judge(rows: Sequence[PowerMeasurement], energies: Energies, error: float) -> tuple[EnergyFit, list[str]]:
    """Fits the energies to the rows of one half and compares all: the fit, and lines of a table."""
    fitted, judged = ([row for row in rows if row.name in half] for half in split())
    apart = [row for row in rows if KERNELS[row.name].loses_data]
    found = fit(fitted, energies, error=error)
    lines = []
    for half, title in ((fitted, "fitted"), (judged, "judged"), (apart, "NaN")):
        for row in half:
            before, after = row.predicted(energies), row.predicted(found.energies)
            lines.append(
                [
                    row.name,
                    title,
                    f"{row.watts:.1f}",
                    f"{before:.1f}",
                    percent(before / row.watts - 1, 1),
                    f"{after:.1f}",
                    percent(after / row.watts - 1, 1),
                ]
            )
    header = ["kernel", "half", "measured W", "published values", "error", "fitted values", "error"]
    table = text_table(header, lines, (0, 1))
    both = [*fitted, *judged]
    for half, title in ((fitted, "fitted"), (judged, "judged"), (both, "of both")):
        before = mean_absolute([row.predicted(energies) / row.watts - 1 for row in half])
        after = mean_absolute(found.errors(half))
        table.append(
            f"mean absolute error of the {len(half)} rows {title}: {percent(before, 1)} with published "
            f"values, {percent(after, 1)} with fitted ones"
        )
    alone = percent(mean_absolute(left_out(both, energies, error)), 1)
    table.append(f"each of the {len(both)} rows by values fitted to the others: {alone}")
    return found, table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--programs", type=Path, metavar="DIR", help="simulate these programs, by name")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FILE", help="recorded events")
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="with --programs: override its values"
    )
    parser.add_argument("--only", nargs="+", choices=sorted(KERNELS), help="rows to simulate")
    parser.add_argument("--published", type=Path, default=PUBLISHED, metavar="DIR", help="published tables")
    parser.add_argument("--energies", default=GPU, help="name or file of the energies before the fit")
    parser.add_argument("--error", type=float, default=0.05, help="relative error of events and model")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the fitted energies")
    given = parser.parse_args()
    energies = load_energies(given.energies)
    found = read_record(given.record) if given.record.is_file() else {}
    if given.programs:
        found |= simulate(given.programs, energies, given.only or list(KERNELS), given.set)
        write_record(found, given.record, given.set)
    powers, counters = published(given.published)
    print("\n".join(compared(found, counters)))
    fits = []
    for title, events in (
        ("Simulated events and time", found),
        (
            "Simulated events, published cycles and idle SMs",
            {name: with_published_time(KERNELS[name], each, counters[name]) for name, each in found.items()},
        ),
    ):
        result, lines = judge(measured(events, powers), energies, given.error)
        fits.append(result)
        print(f"\n{title}\n", *lines, sep="\n")
    if given.output:
        write_toml(fits[0].energies, given.output)


if __name__ == "__main__":
    try:
        main()
    except (SimtError, OSError) as error:
        sys.exit(str(error))
