"""What a card's data sheet says: the few figures in which cards of one generation differ."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from simt.errors import SpecError

_NUMBER = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*(.*?)\s*")
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Figure:
    """How a figure is written: factors of its units, whose case does not matter, and an example. With `""`
    among the units, a number alone will do."""

    units: Mapping[str, float]
    example: str
    whole: bool = False

    def read(self, text: str) -> float | int | None:
        """The number in this figure's own unit; None if the text is none."""
        found = _NUMBER.fullmatch(text)
        factors = {unit.lower(): factor for unit, factor in self.units.items()}
        factor = factors.get(found[2].lower()) if found else None
        if found is None or factor is None:
            return None
        value = float(found[1].replace(",", "").replace("_", "")) * factor
        if not 0 < value < math.inf or (self.whole and factor == 1 and value != int(value)):
            return None
        return round(value) if self.whole else value


_SIZES = {"KB": _KIB, "KiB": _KIB, "MB": _MIB, "MiB": _MIB, "GB": _GIB, "GiB": _GIB}
FIGURES = {
    "sms": Figure({"": 1, "SMs": 1}, "68", whole=True),
    "core_mhz": Figure({"": 1, "MHz": 1, "GHz": 1e3}, "1545MHz"),
    "memory_gbs": Figure({"": 1, "GB/s": 1, "TB/s": 1e3}, "616GB/s"),
    "memory_bus_bits": Figure({"": 1, "bits": 1, "bit": 1, "-bit": 1}, "352", whole=True),
    "memory_mhz": Figure({"": 1, "MHz": 1, "GHz": 1e3, "Gbit/s": 500, "Gbps": 500}, "14Gbit/s"),
    "l2_bytes": Figure(_SIZES, "5.5MB", whole=True),
    "memory_bytes": Figure(_SIZES, "11GB", whole=True),
    "fp32_tflops": Figure({"": 1, "TFLOPS": 1}, "13.4"),
    "tensor_tflops": Figure({"": 1, "TFLOPS": 1}, "53.8"),
}
"""How each field of `DataSheet` is written as text."""


@dataclass(frozen=True)
class DataSheet:
    """Figures of a data sheet; None: not given.

    sms: streaming multiprocessors. core_mhz: boost clock, or the one that a measurement ran at.
    memory_gbs: peak bandwidth of device memory, 10^9 bytes per second.
    memory_bus_bits: width of its bus.
    memory_mhz: its clock with two transfers a cycle, as the driver gives it: half of the data rate of a pin.
    l2_bytes: size of the L2. memory_bytes: size of device memory.
    fp32_tflops: peak of FP32, which is only compared.
    tensor_tflops: peak of dense FP16 products accumulated in FP32.
    """

    sms: int | None = None
    core_mhz: float | None = None
    memory_gbs: float | None = None
    memory_bus_bits: int | None = None
    memory_mhz: float | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    fp32_tflops: float | None = None
    tensor_tflops: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            kind = int if FIGURES[each.name].whole else int | float
            if value is None:
                continue
            if not isinstance(value, kind) or isinstance(value, bool) or not 0 < value < math.inf:
                expected = "a whole number" if FIGURES[each.name].whole else "a number"
                raise SpecError(f"{each.name}: found {value!r}, expected {expected} of more than 0")

    @classmethod
    def read(cls, texts: Mapping[str, str | None], names: Mapping[str, str] | None = None) -> DataSheet:
        """Of texts such as `616GB/s`, by field; None: not given. K, M and G of sizes are powers of 1,024.

        names: what the fields are called in messages. Raises SpecError, which names the field.
        """
        values: dict[str, Any] = {}
        for field, text in texts.items():
            if text is None:
                continue
            values[field] = FIGURES[field].read(text)
            if values[field] is None:
                units = [unit for unit in FIGURES[field].units if unit]
                raise SpecError(
                    f"{(names or {}).get(field, field)}: found {text!r}, expected a number of more than 0"
                    f"{' in ' + ', '.join(units) if units else ''}, such as {FIGURES[field].example}"
                )
        return cls(**values)
