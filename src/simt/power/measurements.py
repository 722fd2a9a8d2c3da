"""Measured powers with the events that explain them: the input of a fit."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simt.errors import PowerError
from simt.files import require_file, write_text
from simt.power.energies import SECTIONS, Energies
from simt.power.events import events as count_events
from simt.power.operating_point import OperatingPoint
from simt.result.launch import LaunchResult

SCHEMA = "simt.power/1"
_KEYS = frozenset(f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys)


@dataclass(frozen=True)
class PowerMeasurement:
    """The average power of a GPU over some time, and what happened in it.

    events: by key of an Energies file; with its values v at the reference clock, the time takes
        sum(events[key] * v[key]) joules. Counts of `power.` are seconds or SM-seconds.
    watts: board power. deviation: its standard deviation in W; 0: unknown.
    conditions: clocks, temperature and the like, for people.
    """

    name: str
    events: Mapping[str, float]
    seconds: float
    watts: float
    deviation: float = 0.0
    conditions: Mapping[str, float] | None = None

    def predicted(self, energies: Energies) -> float:
        """Average power in W by the energies. Raises KeyError for an event without a value."""
        return sum(n * energies[key] for key, n in self.events.items()) / self.seconds


def launch_events(
    launch: LaunchResult, energies: Energies, temperature: float | None = None
) -> dict[str, float]:
    """The events of a launch that occur, as in `PowerMeasurement`: counts times the factors of its clock and
    temperature.

    Raises PowerError.
    """
    factors = OperatingPoint.of(energies, launch.clock_khz, temperature).factors(energies)
    found = count_events(launch, energies).counts
    return {key: n * factors[key] for key, n in found.items() if n}


def read_measurements(path: str | os.PathLike[str]) -> list[PowerMeasurement]:
    """The rows of a file of schema simt.power/1. Raises PowerError."""
    file = Path(path)
    require_file(file, "measured powers, as `simt power measure` writes them", PowerError)
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PowerError(f"{file}: not a JSON file: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    rows = data.get("rows") if isinstance(data, dict) else None
    if schema != SCHEMA or not isinstance(rows, list):
        raise PowerError(f"{file}: schema is {schema!r}, expected {SCHEMA!r} with rows")
    return [_row(row, f"{file}: row {i}") for i, row in enumerate(rows)]


def write_measurements(
    path: str | os.PathLike[str], rows: Iterable[PowerMeasurement], provenance: Mapping[str, Any]
) -> None:
    """Writes a file of schema simt.power/1. Raises PowerError."""
    data = {"schema": SCHEMA, **provenance, "rows": [asdict(row) for row in rows]}
    write_text(Path(path), json.dumps(data, indent=1) + "\n", PowerError)


def chosen(rows: Sequence[PowerMeasurement], names: Iterable[str]) -> list[PowerMeasurement]:
    """The rows with these names. Raises PowerError for an unknown name."""
    by_name = {row.name: row for row in rows}
    found = []
    for name in names:
        if name not in by_name:
            raise PowerError(f"no row {name!r}; there are {', '.join(by_name)}")
        found.append(by_name[name])
    return found


def _row(row: Any, place: str) -> PowerMeasurement:
    try:
        found = PowerMeasurement(**row)
    except TypeError as error:
        raise PowerError(f"{place}: {error}") from None
    if not isinstance(found.name, str) or not isinstance(found.events, dict):
        raise PowerError(f"{place}: expected a name and a table of events")
    if unknown := sorted(found.events.keys() - _KEYS):
        raise PowerError(f"{place} ({found.name}): unknown event {unknown[0]!r}")
    numbers = {"seconds": found.seconds, "watts": found.watts, "deviation": found.deviation, **found.events}
    for key, n in numbers.items():
        if isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n):
            raise PowerError(f"{place} ({found.name}): {key} is {n!r}, expected a number")
    if found.seconds <= 0 or found.watts <= 0 or found.deviation < 0:
        raise PowerError(f"{place} ({found.name}): seconds and watts must be positive, deviation at least 0")
    return found
