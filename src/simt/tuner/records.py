"""Measured records of one device, written by `simt bench run --json`, in one or several files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from simt.errors import TuneError
from simt.files import require_regular
from simt.validate.microbenchmark import SCHEMA, microbenchmarks

ASSUMED_NOISE = 0.01
"""Smallest relative error assumed for a measurement."""
LARGEST = 1e15  # of any value in a record


@dataclass(frozen=True)
class BenchmarkRecord:
    """The result of one microbenchmark.

    value: the median over files.
    spread: half the range of all runs, relative to the value; None with one run.
    """

    name: str
    value: float
    unit: str
    files: tuple[str, ...]
    spread: float | None

    @property
    def noise(self) -> float:
        """The relative error used as its weight."""
        return max(self.spread or 0.0, ASSUMED_NOISE)


@dataclass(frozen=True)
class Records:
    """Measurements of one device.

    facts: the device's own attributes.
    notes: ignored records, with reasons.
    """

    device: str
    facts: dict[str, Any]
    files: tuple[str, ...]
    records: dict[str, BenchmarkRecord]
    notes: tuple[str, ...]


def read_records(files: Sequence[Path]) -> Records:
    """Reads records of one device.

    Raises TuneError if a file cannot be read, is not a record, or is of another device than the first.
    """
    if not files:
        raise TuneError("no records; `simt bench run --json FILE` makes them")
    runs = [(file.name, _read(file)) for file in files]
    name, first = runs[0]
    for other, run in runs[1:]:
        for key in ("device", "sm_version", "sms"):
            if run[key] != first[key]:
                raise TuneError(
                    f"{other}: {key}: found {run[key]!r}, but {name} has {first[key]!r}; expected one device"
                )
    known = microbenchmarks()
    samples: dict[str, list[tuple[float, float, float, str]]] = {}
    notes = []
    for file, run in runs:
        for at, item in enumerate(run["benchmarks"]):
            place, value = f"{file}: benchmarks[{at}]", item.get("value")
            benchmark = known.get(item["name"])
            if benchmark is None:
                notes.append(f"{place}: no microbenchmark named {item['name']!r} here: left out")
            elif value is None:
                notes.append(
                    f"{place}: {item['name']} has no value ({item.get('note') or 'no reason given'})"
                )
            elif item["unit"] != benchmark.unit:
                raise TuneError(f"{place}: unit: found {item['unit']!r}, expected {benchmark.unit!r}")
            elif value < 0:
                notes.append(f"{place}: {item['name']} is {value:g}, expected 0 or more: left out")
            else:
                samples.setdefault(item["name"], []).append((*_range(item), file))
    if not samples:
        raise TuneError(f"{name}: no measured value is usable")
    records = {n: _record(n, known[n].unit, samples[n]) for n in known if n in samples}
    provenance = first.get("provenance")
    facts = {**(provenance if isinstance(provenance, dict) else {}), **first}
    return Records(first["device"], facts, tuple(file for file, _ in runs), records, tuple(notes))


def _range(item: dict[str, Any]) -> tuple[float, float, float]:
    """Value, minimum and maximum of a measurement's runs."""
    value = float(item["value"])
    low, high = item.get("low"), item.get("high")
    return value, value if low is None else float(low), value if high is None else float(high)


def _record(name: str, unit: str, samples: list[tuple[float, float, float, str]]) -> BenchmarkRecord:
    values, lows, highs, files = zip(*samples, strict=True)
    middle, reach = median(values), max(highs) - min(lows)
    several = middle > 0 and (len(values) > 1 or reach > 0)
    return BenchmarkRecord(
        name, middle, unit, tuple(dict.fromkeys(files)), reach / 2 / middle if several else None
    )


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _read(file: Path) -> dict[str, Any]:
    """One file, with validated fields."""
    try:
        require_regular(file)
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise TuneError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TuneError(f"{file}: not a text file (byte {error.start} is not UTF-8)") from None
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        raise TuneError(f"{file}: not JSON: {error}") from None

    def need(holds: bool, place: str, found: Any, expected: str) -> None:
        if not holds:
            raise TuneError(f"{file}: {place}: found {str(found)[:60]!r}, expected {expected}")

    need(isinstance(data, dict), "file", type(data).__name__, "an object of `simt bench run --json`")
    need(data.get("schema") == SCHEMA, "schema", data.get("schema"), SCHEMA)
    need(isinstance(data.get("device"), str) and data["device"], "device", data.get("device"), "a name")
    for key in ("sm_version", "sms"):
        value = data.get(key)
        whole = isinstance(value, int) and not isinstance(value, bool)
        need(whole and 0 < value < 65536, key, value, "an integer from 1 to 65535")
    need(_number(data.get("core_mhz")) and data["core_mhz"] > 0, "core_mhz", data.get("core_mhz"), "MHz > 0")
    need(isinstance(data.get("benchmarks"), list), "benchmarks", data.get("benchmarks"), "a list")
    for at, item in enumerate(data["benchmarks"]):
        place = f"benchmarks[{at}]"
        need(isinstance(item, dict), place, item, "an object with name, value, unit")
        for key in ("name", "unit"):
            need(isinstance(item.get(key), str), f"{place}.{key}", item.get(key), "text")
        for key in ("value", "low", "high"):
            value = item.get(key)
            need(value is None or _number(value), f"{place}.{key}", value, "a number or null")
    return dict(data)
