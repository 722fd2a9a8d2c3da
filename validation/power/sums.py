"""Power of work at peak rates by a GPU's energies, worked out without simulation, and its share of the TDP.

    python validation/power/sums.py b200 b300 rtx5090

Idle; an FP32 multiply-add in each lane of each cycle; tensor products of FP16 with FP32 accumulators at the
peak rate, with operands from shared memory at its full width; reads at 90 % of the memory bandwidth.
"""

from __future__ import annotations

import sys

from simt.power import load_energies
from simt.spec import load_spec

LANES = 32
# Multiply-adds of FP16 or BF16 with FP32 accumulators, a cycle and SM: tcgen05.mma (SemiAnalysis), and the
# data sheet's 209.5 TFLOPS of an RTX 5090.
TENSOR = {"b200": 4096, "b300": 4096, "rtx5090": 256}
SECTOR = ("l1_sector_read", "l2_sector_read", "network_sector", "dram_sector_read")


def main(names: list[str]) -> None:
    for name in names:
        spec, energies = load_spec(name), load_energies(name)
        values = {key: each.value for key, each in energies.values.items()}
        tdp = energies.reference["tdp_w"].value
        idle = values["power.board"] + values["power.chip_idle"]
        busy = idle + spec.sm.count * (
            values["power.sm_active"] + spec.sm.sub_cores * values["power.sub_core_active"]
        )
        hertz = spec.clock.core_mhz * 1e6
        fp32 = spec.sm.units.fp32
        lanes = spec.sm.count * fp32.count * LANES / fp32.initiation_interval
        products = TENSOR[name] * values["tensor.fp16_fp32"] + values["memory.shared_pass"]
        dram = spec.dram
        rate = 2 * dram.bus_bytes * spec.address_map.channels * spec.clock.dram_mhz * 1e6
        sector = sum(values[f"memory.{key}"] for key in SECTOR)
        rows = {
            "idle": idle,
            "FP32 multiply-adds": busy + lanes * hertz * values["instructions.fp32_fma"] * 1e-12,
            "FP16 tensor products": busy + spec.sm.count * hertz * products * 1e-12,
            "reading DRAM": busy + 0.9 * rate / 32 * sector * 1e-12,
        }
        for what, watts in rows.items():
            print(f"{name:8} {what:22} {watts:6.0f} W, {watts / tdp:.2f} of the TDP of {tdp:.0f} W")


if __name__ == "__main__":
    main(sys.argv[1:])
