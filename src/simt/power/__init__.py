"""Power and energy of simulated launches.

`gpu.result().energy` has the energy of a program, by launch, component, instruction class and source line;
`Energies` are the energies of a GPU's events, `load_energies` reads them. See docs/power.
"""

from .clocks import AnyClock, AtLimit, Capped, at_clock, at_limit, highest_clock, under_cap
from .energies import Energies, EnergyValue, Power, available, energies_of, load_energies
from .energy import COMPONENTS, Energy, LaunchEnergy, ProgramEnergy
from .operating_point import OperatingPoint
from .over_time import PowerOverTime, power_over_time

__all__ = [
    "COMPONENTS",
    "AnyClock",
    "AtLimit",
    "Capped",
    "Energies",
    "Energy",
    "EnergyValue",
    "LaunchEnergy",
    "OperatingPoint",
    "Power",
    "PowerOverTime",
    "ProgramEnergy",
    "at_clock",
    "at_limit",
    "available",
    "energies_of",
    "highest_clock",
    "load_energies",
    "power_over_time",
    "under_cap",
]
