"""The clock that a board's power limit leaves, predicted for kernels whose clock at the limit is published.

python validation/power/clocks.py    in seconds

H100 (clocks.json): products and FlashAttention-3 of waynehacking8/blackwell-tensorcore-kernels (c289bded),
whose board has a limit of 700 W. The clocks follow from cycles over measured times: of Nsight Compute for the
products, simulated for FlashAttention-3, where simt agrees with an H100 at a locked clock within 2.4 %
(docs/machine-code.md). Events:

* CUTLASS: simulated for 2,048 (docs/records/power.md), scaled to 8,192; DRAM as counted by Nsight Compute.
* cuBLAS: multiply-adds, instructions and DRAM as counted; requests to the L2 in proportion to its use, that
  of CUTLASS being known.
* FlashAttention-3: docs/records/scripts/flash_attention_3.py.

A40 (roofline.csv): kernels of gpu-benches that read memory and do FFMAs, on eight boards with a limit of
300 W, by the energies of rtx3070 with 84 SMs. What those boards take beside is the mean over the rows below
the limit.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simt.formatting import text_table
from simt.power import AnyClock, highest_clock, load_energies

HERE = Path(__file__).parent
A40_SMS, A40_LIMIT = 84, 300.0
TOP = {"h100": 1980.0, "rtx3070": 1740.0}
FIT = "tensor.fp16_fp32"
LEVELS = ("l1_sector_read", "l2_sector_read", "network_sector", "dram_sector_read")


@dataclass(frozen=True)
class Row:
    """A kernel at a power limit. use: `fit` or `judge`. mhz: the published clock. at: its events and time."""

    name: str
    use: str
    mhz: float
    limit: float
    at: AnyClock
    top: float

    @property
    def predicted(self) -> float:
        """In MHz."""
        return highest_clock(self.at, self.top, self.limit).core_mhz

    @property
    def error(self) -> float:
        return self.predicted / self.mhz - 1

    def energy(self, key: str) -> float:
        """The energy of an event, in pJ, at which power is the limit at the published clock."""
        factor = self.at.factors(self.mhz)[key]
        joules = (self.limit - self.at.watts(self.mhz)) * self.at.seconds(self.mhz)
        return self.at.energies.values[key].value + joules / (self.at.events[key] * factor) * 1e12


def h100() -> list[Row]:
    energies = load_energies("h100")
    rows = json.loads((HERE / "clocks.json").read_text(encoding="utf-8"))["rows"]
    return [
        Row(
            row["kernel"],
            row["use"],
            row["mhz"],
            row["limit"],
            AnyClock(energies, row["events"], row["ms"] / 1000, row["mhz"]),
            TOP["h100"],
        )
        for row in rows
    ]


def a40() -> list[Row]:
    """Those at the limit."""
    energies = load_energies("rtx3070")
    lines = (HERE / "roofline.csv").read_text(encoding="utf-8").splitlines()
    table = csv.DictReader(line for line in lines if not line.startswith("#"))
    measured = [row for row in table if row["board"] == "A40"]

    def at(row: dict[str, str], beside: float) -> AnyClock:
        sectors = float(row["gb_per_s"]) * 1e9 / 32
        events = {f"memory.{level}": sectors for level in LEVELS}
        events |= {
            "instructions.load_store": 8 * sectors,
            "instructions.fp32_fma": float(row["gflops"]) / 2 * 1e9,
        }
        events |= {"power.chip_idle": 1.0, "power.sm_active": A40_SMS, "power.sub_core_active": 4 * A40_SMS}
        events["power.board"] = 1 + beside / energies["power.board"]
        return AnyClock(energies, events, 1.0, float(row["mhz"]))

    top = TOP["rtx3070"]
    free = [row for row in measured if float(row["mhz"]) == top]
    beside = float(np.mean([float(row["watts"]) - at(row, 0.0).watts(top) for row in free]))
    return [
        Row(f"A40, {row['its']} FFMAs", "judge", float(row["mhz"]), A40_LIMIT, at(row, beside), top)
        for row in measured
        if float(row["mhz"]) < top
    ]


def main() -> None:
    rows = [*h100(), *a40()]
    table = [
        [
            row.name,
            row.use,
            f"{row.mhz:,.0f}",
            f"{row.predicted:,.0f}",
            f"{row.error:+.1%}",
            f"{row.top / row.mhz - 1:+.1%}",
            f"{row.energy(FIT):.2f}" if FIT in row.at.events else "",
        ]
        for row in rows
    ]
    head = ["kernel", "use", "MHz", "predicted", "error", "at the highest clock", "pJ per FP16 multiply-add"]
    print("\n".join(text_table(head, table, (0, 1))))
    for name, chosen in (("H100, judging", h100()), ("A40", a40())):
        found = [row for row in chosen if row.use == "judge"]
        mean = np.mean([abs(row.error) for row in found])
        without = np.mean([row.top / row.mhz - 1 for row in found])
        print(f"{name}: {mean:.1%} in the mean over {len(found)}; at the highest clock {without:.1%}")


if __name__ == "__main__":
    main()
