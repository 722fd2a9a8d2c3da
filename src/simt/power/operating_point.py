"""Clock, voltage and temperature, and how power changes with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simt.errors import PowerError
from simt.power.energies import Energies

_COLDEST, _HOTTEST = -55.0, 150.0


@dataclass(frozen=True)
class OperatingPoint:
    """core_mhz: core clock. temperature: of the chip, in degrees Celsius."""

    core_mhz: float
    temperature: float

    @classmethod
    def of(cls, energies: Energies, core_khz: float, temperature: float | None = None) -> OperatingPoint:
        """temperature: None for that at which the energies were measured. Raises PowerError."""
        if temperature is None:
            temperature = energies.reference["temperature"].value
        if not _COLDEST <= temperature <= _HOTTEST:
            raise PowerError(
                f"temperature is {temperature:g} degrees Celsius, expected {_COLDEST:g} to {_HOTTEST:g}"
            )
        return cls(core_khz / 1000, temperature)

    def voltage(self, energies: Energies) -> float:
        """Core voltage in V, linear between the published points and constant outside them."""
        if not energies.voltages:
            return energies.reference["voltage"].value
        clocks, volts = zip(*energies.voltages, strict=True)
        return float(np.interp(self.core_mhz, clocks, volts))

    def factors(self, energies: Energies) -> dict[str, float]:
        """What each value of the energies is multiplied by here.

        Dynamic energy of the chip grows with V^2, clock power with f V^2, and leakage with V and,
        exponentially, with temperature (Weste and Harris, "CMOS VLSI Design", 4th edition, section 5.2 to
        5.3). Energies of DRAM and the board's power do not change.
        """
        voltage = self.voltage(energies) / energies.reference["voltage"].value
        clock = self.core_mhz / energies.reference["core_mhz"].value
        rise = self.temperature - energies.reference["temperature"].value
        leakage = voltage * 2 ** (rise / energies.scaling["leakage_doubling"].value)
        share = energies.scaling["leakage_share"].value
        static = share * leakage + (1 - share) * clock * voltage**2
        found = dict.fromkeys(energies.values, voltage**2)
        found |= dict.fromkeys(("power.sm_active", "power.sm_idle", "power.chip_idle"), static)
        found["power.sub_core_active"] = clock * voltage**2
        outside = [key for key in found if key.startswith("memory.dram_") or key == "power.board"]
        return found | dict.fromkeys(outside, 1.0)
