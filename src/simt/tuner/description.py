"""The facts from a data sheet, or from the device itself, as values of a specification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simt.errors import SpecError, TuneError
from simt.files import read_toml
from simt.hints import did_you_mean
from simt.spec import Spec, available, load_spec, peaks
from simt.spec.derive import cache_geometry, dram_timings_at
from simt.spec.files import merge, validate
from simt.tuner.draft import Draft, value_at

# The memory of the shipped GPUs, which specifications do not give.
MEMORY = {
    "titan": "GDDR5",
    "titanx": "GDDR5X",
    "qv100": "HBM2",
    "rtx2060": "GDDR6",
    "rtx3070": "GDDR6",
    "a100": "HBM2E",
    "h100": "HBM3",
    "h200": "HBM3E",
}
FACTS = {
    "sm_version": "compute capability, 80 for 8.0",
    "sms": "streaming multiprocessors",
    "core_mhz": "core clock while measured, MHz",
    "memory": "kind of memory, such as HBM2E or GDDR6",
    "memory_bus_bits": "width of the memory bus",
    "memory_gbs": "peak bandwidth of memory, GB/s",
    "memory_mhz": "memory clock, MHz, with two transfers a cycle, as the driver gives it",
    "l2_slices_per_channel": "L2 slices of each memory channel",
    "l2_partitions": "partitions of the L2, each close to some of the SMs",
    "l2_bytes": "size of the L2",
    "l1_bytes": "L1 plus shared memory of an SM; the L1 alone if they are separate",
    "shared_bytes_per_sm": "maximum shared memory of an SM",
    "shared_bytes_reserved_per_cta": "shared memory that the system reserves per CTA",
    "threads_per_sm": "resident threads of an SM",
    "ctas_per_sm": "resident CTAs of an SM",
    "registers_per_sm": "32-bit registers of an SM",
    "schedulers_per_sm": "warp schedulers of an SM",
}
_LARGEST = 1 << 40


@dataclass(frozen=True)
class GpuDescription:
    """Facts about a GPU (keys of FACTS), each with its origin, and values of the specification itself.

    source: text used in the sources of values.
    specification: nested as in a specification's file.
    """

    source: str
    facts: Mapping[str, Any]
    origin: Mapping[str, str]
    about: str = ""
    specification: Mapping[str, Any] = field(default_factory=dict)

    def completed(self, device: Mapping[str, Any], source: str) -> GpuDescription:
        """The description, completed by the device's record. Raises TuneError if the two contradict."""
        facts, origin = dict(self.facts), dict(self.origin)
        for key, value in device.items():
            if key in FACTS and key not in facts:
                if _problem(key, value) is None:
                    facts[key], origin[key] = value, source
            elif key in ("sm_version", "sms") and value != facts[key]:
                raise TuneError(
                    f"{self.source}: {key}: found {facts[key]}, but {source} was measured with {value}"
                )
        if not {"memory_gbs", "memory_mhz"}.isdisjoint(self.facts):  # one of the forms suffices
            for key in {"memory_gbs", "memory_mhz"} - set(self.facts):
                facts.pop(key, None)
        return GpuDescription(self.source, facts, origin, self.about, self.specification)


def read_description(path: Path) -> GpuDescription:
    """Reads a description's TOML. Raises TuneError."""
    table = read_toml(path, "a description of a GPU", TuneError)
    about, given = table.pop("description", ""), table.pop("specification", {})
    if not isinstance(about, str):
        raise TuneError(f"{path}: description: found {about!r}, expected text")
    if not isinstance(given, dict):
        raise TuneError(f"{path}: specification: found {given!r}, expected sections as of a specification")
    for key, value in table.items():
        if key not in FACTS:
            hint = did_you_mean(key, FACTS) or f"; there are {', '.join(FACTS)}"
            raise TuneError(f"{path}: {key}: unknown{hint}")
        if expected := _problem(key, value):
            raise TuneError(f"{path}: {key}: found {str(value)[:60]!r}, expected {expected}")
    said = f"hardware description {path.name}"
    return GpuDescription(said, table, dict.fromkeys(table, said), about, given)


def _problem(key: str, value: Any) -> str | None:
    """The expected form of a fact's value; None if the value is valid."""
    if key == "memory":
        kinds = sorted(set(MEMORY.values()))
        return None if isinstance(value, str) and value.upper() in kinds else f"one of {', '.join(kinds)}"
    fractional = key in ("core_mhz", "memory_gbs", "memory_mhz")
    right = isinstance(value, (int, float) if fractional else int) and not isinstance(value, bool)
    if not right or not (0 if key == "shared_bytes_reserved_per_cta" else 1) <= value <= _LARGEST:
        return "a number, 1 or more" if fractional else "an integer, 1 or more"
    return None


def nearest(facts: Mapping[str, Any], among: list[str] | None = None) -> str:
    """The shipped GPU nearest to a description, among those whose values describe silicon.

    The architecture has priority: same major compute capability, then the nearest minor one; then the
    smallest sum of |log(ratio)| of described values. Raises TuneError if the compute capability is unknown.
    """
    if "sm_version" not in facts:
        raise TuneError("sm_version: not in the description or a record; add it, or give --base")

    def distance(name: str) -> tuple[int, float, str]:
        spec = load_spec(name)
        peak = peaks(spec)
        major, minor = divmod(spec.sm_version, 10)
        wanted, least = divmod(int(facts["sm_version"]), 10)
        has = {
            "sms": spec.sm.count,
            "core_mhz": spec.clock.core_mhz,
            "memory_gbs": peak.memory_gbs,
            "memory_bus_bits": peak.memory_bus_bits,
            "l2_bytes": peak.l2_bytes,
            "shared_bytes_per_sm": spec.shared_memory.bytes,
            "threads_per_sm": spec.sm.max_warps * spec.sm.warp_size,
        }
        apart = sum(abs(math.log(facts[key] / value)) for key, value in has.items() if key in facts)
        kind = facts.get("memory", MEMORY[name]).upper()
        apart += 1.0 if kind != MEMORY[name] else 0.0
        return 100 * abs(major - wanted) + abs(minor - least), apart, name

    return min((name for name in among or MEMORY if name in available()), key=distance)


def described(base: Spec, description: GpuDescription, name: str) -> Draft:
    """The base with the described values and those that follow from them. Described values are pinned.

    Raises TuneError or SpecError if the result is not a valid specification.
    """
    draft, facts = Draft(base, name), description.facts
    if "memory" in facts:
        _take_memory(draft, facts, description.origin["memory"])
    for key, rule in _RULES.items():
        if key not in facts:
            continue
        source = f"{description.origin[key]}: {key}"
        given, implied = rule(draft.spec, facts)
        try:
            draft.change(implied, f"inherited from {base.name}, unverified: in proportion to {key}")
            draft.change(given, source)
        except SpecError as error:
            raise TuneError(f"{source} = {facts[key]}: {error}") from None
        draft.pinned |= set(given)
    if "memory_gbs" in facts or "memory_mhz" in facts:
        _clock_memory(draft, facts, description.origin)
    values = draft.spec.values()
    sources: dict[str, str] = {}
    merge(dict(description.specification), values, sources, description.source, "", description.source)
    validate(values, {}, f"{description.source}: specification")
    draft.change({path: value_at(values, path) for path in sources}, description.source)
    draft.sources |= sources
    draft.pinned |= set(sources)
    return draft


_Changes = dict[str, Any]
_Rule = Callable[[Spec, Mapping[str, Any]], tuple[_Changes, _Changes]]


def _value(path: str) -> _Rule:
    """The rule of a fact that is a value of the specification."""
    return lambda spec, facts: ({path: facts[_FACT_OF[path]]}, {})


def _core_clock(spec: Spec, facts: Mapping[str, Any]) -> tuple[_Changes, _Changes]:
    ratio = facts["core_mhz"] / spec.clock.core_mhz
    others = ("clock.interconnect_mhz", "clock.l2_mhz")
    old = spec.values()
    return {"clock.core_mhz": round(facts["core_mhz"], 3)}, {
        path: round(value_at(old, path) * ratio, 3) for path in others
    }


def _threads(spec: Spec, facts: Mapping[str, Any]) -> tuple[_Changes, _Changes]:
    return {"sm.max_warps": facts["threads_per_sm"] // spec.sm.warp_size}, {}


def _schedulers(spec: Spec, facts: Mapping[str, Any]) -> tuple[_Changes, _Changes]:
    """Scales every resource that each sub-core has of its own."""
    new, old, values = facts["schedulers_per_sm"], spec.sm.sub_cores, spec.values()
    counts = {f"sm.units.{unit}.count": table["count"] for unit, table in values["sm"]["units"].items()}
    counts |= {
        f"sm.register_file.{f}": values["sm"]["register_file"][f] for f in ("banks", "collector_units")
    }
    implied = {path: n * new // old for path, n in counts.items() if n % old == 0}
    return {"sm.sub_cores": new, **implied}, {}


def _channels(spec: Spec, facts: Mapping[str, Any]) -> tuple[_Changes, _Changes]:
    return {"address_map.channels": max(1, facts["memory_bus_bits"] // (8 * spec.dram.bus_bytes))}, {}


def _l1(spec: Spec, facts: Mapping[str, Any]) -> tuple[_Changes, _Changes]:
    size, cache = facts["l1_bytes"], spec.l1.cache
    if spec.l1.adaptive:
        options = [o for o in spec.l1.carve_out_options if o <= size] or [size]
        shared = min(spec.shared_memory.bytes, options[-1])
        return {"l1.unified_bytes": size}, {"l1.carve_out_options": options, "shared_memory.bytes": shared}
    sets, ways = cache_geometry(size // cache.line_bytes, cache.ways)
    return {"l1.cache.sets": sets, "l1.cache.ways": ways}, {}


def _l2(spec: Spec, facts: Mapping[str, Any]) -> tuple[_Changes, _Changes]:
    cache = spec.l2.slice
    sets, ways = cache_geometry(facts["l2_bytes"] // spec.address_map.slices // cache.line_bytes, cache.ways)
    return {"l2.slice.sets": sets, "l2.slice.ways": ways}, {}


_FACT_OF = {
    "sm_version": "sm_version",
    "sm.count": "sms",
    "sm.max_ctas": "ctas_per_sm",
    "sm.register_file.registers": "registers_per_sm",
    "address_map.slices_per_channel": "l2_slices_per_channel",
    "l2.partitions": "l2_partitions",
    "shared_memory.bytes": "shared_bytes_per_sm",
    "shared_memory.reserved_per_cta": "shared_bytes_reserved_per_cta",
}
# Order matters: the L1 before the shared memory in it, channels before their L2 slices.
_RULES: dict[str, _Rule] = {
    "memory_bus_bits": _channels,
    **{fact: _value(path) for path, fact in _FACT_OF.items() if not path.startswith("shared_memory")},
    "core_mhz": _core_clock,
    "threads_per_sm": _threads,
    "schedulers_per_sm": _schedulers,
    "l1_bytes": _l1,
    **{fact: _value(path) for path, fact in _FACT_OF.items() if path.startswith("shared_memory")},
    "l2_bytes": _l2,
}


def _take_memory(draft: Draft, facts: Mapping[str, Any], origin: str) -> None:
    """The memory of the nearest GPU with this kind of memory, if the base has another kind."""
    kind = facts["memory"].upper()
    if MEMORY.get(draft.base) == kind:
        return
    owner = nearest(facts, [name for name, has in MEMORY.items() if has == kind])
    spec = load_spec(owner)
    own = {path: value for path, value in spec.leaves() if path.startswith("dram.")}
    own |= {"address_map.layout": spec.address_map.layout, "clock.dram_mhz": spec.clock.dram_mhz}
    own["address_map.channels"] = spec.address_map.channels
    draft.change(own, "")
    for path in own:
        draft.sources[path] = f"inherited from {owner}, which has {kind} ({origin}), unverified"


def _clock_memory(draft: Draft, facts: Mapping[str, Any], origin: Mapping[str, str]) -> None:
    """The command clock that gives the described peak; timings stay the same in nanoseconds."""
    if "memory_gbs" in facts:
        key, gbs = "memory_gbs", facts["memory_gbs"]
    else:
        width = facts.get("memory_bus_bits", peaks(draft.spec).memory_bus_bits)
        key, gbs = "memory_mhz", facts["memory_mhz"] * 2 * width / 8 / 1e3
    spec = draft.spec
    clock = round(spec.clock.dram_mhz * gbs / peaks(spec).memory_gbs, 3)
    try:
        draft.change(
            dram_timings_at(spec, clock),
            f"inherited from {draft.base}, unverified: the same nanoseconds at this clock",
        )
        draft.change({"clock.dram_mhz": clock}, f"{origin[key]}: {key}")
    except SpecError as error:
        raise TuneError(f"{origin[key]}: {key} = {facts[key]}: {error}") from None
    draft.pinned.add("clock.dram_mhz")
