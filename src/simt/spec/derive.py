"""A specification of a card from that of another one of its generation and the card's data sheet.

What is measured on one card and holds for its generation (latencies of units, L1, shared memory, issue) is
kept. What differs between cards follows from the data sheet by rules, which are the shipped cards' as well.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simt.errors import SpecError
from simt.spec.data_sheet import DataSheet
from simt.spec.files import extending_toml, load_spec, shipped_name, validate
from simt.spec.models import Spec
from simt.spec.peaks import Peaks, peaks, tensor_step
from simt.spec.section import PolicyName

TIMINGS = ("rrd", "rcd", "ras", "rp", "rc", "cl", "wl", "cdlr", "wr", "rtpl", "faw", "refi", "rfc")
"""The timings of `dram` that are times: their cycles follow the clock. The others are bursts."""
_CLOSE = 0.01
"""What figures of a data sheet may differ by: they are rounded."""


@dataclass(frozen=True)
class DerivedValue:
    """A value that differs from the other card's, and why."""

    path: str
    before: Any
    value: Any
    source: str


@dataclass(frozen=True)
class Derivation:
    """What `derive` found.

    spec: the whole specification. like: the other card. values: what differs from it.
    kept: what the data sheet does not give and a rule does not follow, with what was taken instead.
    warnings: where figures contradict each other.
    """

    spec: Spec
    like: str
    values: tuple[DerivedValue, ...]
    kept: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def peaks(self) -> Peaks:
        """The peak rates, to be compared with a data sheet."""
        return peaks(self.spec)

    def to_toml(self, folder: Path) -> str:
        """A specification file for this folder: it extends the other card, and has what differs."""
        base = shipped_name(self.like) or os.path.relpath(self.like, folder)
        changed = {each.path: (each.value, each.source) for each in self.values}
        return extending_toml(base, self.spec.description, changed)


def derive(like: str, sheet: DataSheet, name: str = "derived") -> Derivation:
    """The card of a data sheet, as far as it differs from another card of its generation.

    like: a shipped GPU, or the path of a TOML file. name: of the new specification.

    Raises:
        SpecError: there is no such GPU, the data sheet is empty, or its figures do not fit together.
    """
    given = {each.name for each in fields(sheet) if getattr(sheet, each.name) is not None}
    if not given - {"fp32_tflops"}:
        raise SpecError(f"{name}: nothing is given in which it differs from {like}")
    base = load_spec(like)
    card = _Card(base, sheet)
    for rule in _RULES:
        rule(card)
    spec = card.spec(name)
    spec = spec.model_copy(update={"description": _description(spec, base)})
    before = dict(base.leaves())
    values = tuple(
        DerivedValue(path, before[path], value, source)
        for path, (value, source) in card.changed.items()
        if value != before[path] or source.startswith("given")
    )
    return Derivation(
        spec, like, values, _kept(base, spec, sheet), (*card.warnings, *_contradictions(spec, sheet))
    )


def dram_timings_at(spec: Spec, mhz: float) -> dict[str, int]:
    """The timings of a specification's DRAM that are times, in cycles of another command clock: the same
    nanoseconds. 0, which disables a mechanism, is kept. Empty if the clock changes by less than 1 %."""
    ratio = mhz / spec.clock.dram_mhz
    if abs(ratio - 1) <= _CLOSE:
        return {}
    cycles = {f"dram.{name}": getattr(spec.dram, name) for name in TIMINGS}
    return {path: max(1, round(n * ratio)) if n else 0 for path, n in cycles.items()}


def cache_geometry(lines: int, ways: int) -> tuple[int, int]:
    """Sets (a power of two) and ways for this many lines or slightly fewer, with ways close to the given
    number."""
    lines = max(1, lines)
    options = []
    for power in range(lines.bit_length()):
        sets = 1 << power
        fits = lines // sets
        options.append((lines - sets * fits, abs(math.log(fits / ways)), sets, fits))
    # Neither two nor a thousand ways are plausible: prefer a few lines less.
    usual = [option for option in options if option[1] <= math.log(3)] or options
    least = max(min(lost for lost, *_ in usual), lines // 50)
    _, _, sets, fits = min((o for o in usual if o[0] <= least), key=lambda o: (o[1], o[0]))
    return sets, fits


class _Card:
    """The values that differ so far, each with its source."""

    def __init__(self, base: Spec, sheet: DataSheet) -> None:
        self.base, self.sheet = base, sheet
        self.changed: dict[str, tuple[Any, str]] = {}
        self.warnings: list[str] = []

    def give(self, path: str, value: Any, fact: str) -> None:
        self.changed[path] = value, f"given: {fact}"

    def follow(self, path: str, value: Any, why: str) -> None:
        self.changed[path] = value, f"derived from {self.base.name}: {why}"

    def spec(self, name: str) -> Spec:
        values = self.base.values()
        for path, (value, _) in self.changed.items():
            *sections, last = path.split(".")
            table = values
            for section in sections:
                table = table[section]
            table[last] = value
        values["name"] = name
        source_of = {path: f"as {self.base.name}: {text}" for path, text in self.base.sources.items()}
        return validate(
            values, source_of | {path: source for path, (_, source) in self.changed.items()}, name
        )

    @property
    def channels(self) -> int:
        return int(self.changed.get("address_map.channels", (self.base.address_map.channels,))[0])

    @property
    def slices(self) -> int:
        return self.channels * self.base.address_map.slices_per_channel


def _core(card: _Card) -> None:
    base, sheet = card.base, card.sheet
    if sheet.sms is not None:
        card.give("sm.count", sheet.sms, f"{sheet.sms} SMs")
    if sheet.core_mhz is None:
        return
    ratio = sheet.core_mhz / base.clock.core_mhz
    card.give("clock.core_mhz", _mhz(sheet.core_mhz), f"core clock {sheet.core_mhz:,g} MHz")
    for domain, what in (("interconnect", "crossbar"), ("l2", "L2")):
        before = getattr(base.clock, f"{domain}_mhz")
        card.follow(
            f"clock.{domain}_mhz", _mhz(before * ratio), f"the {what}'s clock in proportion to the SMs'"
        )
    card.follow("dram.latency", round(base.dram.latency * ratio), "the same nanoseconds in cycles of the L2")


def _mhz(value: float) -> float:
    return round(value, 3)


def _memory(card: _Card) -> None:
    """Channels and clock of the memory: two of bandwidth, bus and clock give the third. Of one alone, the bus
    follows a bandwidth, and nothing else the others."""
    base, sheet, has = card.base, card.sheet, peaks(card.base)
    device = _device_bits(has)
    gbs, bits, mhz = sheet.memory_gbs, sheet.memory_bus_bits, sheet.memory_mhz
    width = 8 * base.dram.bus_bytes  # of a channel
    facts = [
        text
        for value, text in (
            (gbs, f"{gbs:,g} GB/s" if gbs else ""),
            (bits, f"{bits} bits"),
            (mhz, f"{mhz:,g} MHz of two transfers" if mhz else ""),
        )
        if value is not None
    ]
    if not facts:
        return
    if bits is None and gbs is not None:
        bits = _bus_of(card, gbs, mhz or has.memory_mhz)
    if bits is not None and bits != has.memory_bus_bits:
        if bits % device:
            raise SpecError(
                f"bus of {bits} bits: expected a multiple of {device}, the bits of a device of memory as "
                f"{base.name} has it"
            )
        card.give(
            "address_map.channels", bits // width, f"{', '.join(facts)}: {bits} bits in channels of {width}"
        )
        card.follow(
            "address_map.hash",
            _slice_hash(base.address_map.hash, bits // width),
            f"for {bits // width} channels",
        )
    if mhz is None and gbs is not None:
        exact = gbs * 8e3 / (2 * (bits or has.memory_bus_bits))
        mhz = exact if abs(exact / has.memory_mhz - 1) > _CLOSE else None
    if mhz is None:
        return
    clock = _mhz(2 * mhz / base.dram.data_command_ratio)
    card.give("clock.dram_mhz", clock, f"{', '.join(facts)}: {2 * mhz / 1e3:,.4g} Gbit/s a pin")
    for path, cycles in dram_timings_at(base, clock).items():
        card.follow(path, cycles, "the same nanoseconds")


def _device_bits(has: Peaks) -> int:
    """The part of a bus that a device of memory takes: a stack of HBM, or a device of GDDR."""
    return 1024 if has.memory_bus_bits >= 1024 else 32


def _bus_of(card: _Card, gbs: float, mhz: float) -> int:
    """The width of the bus that has this bandwidth at this clock."""
    has = peaks(card.base)
    device = _device_bits(has)
    exact = gbs * 8e3 / (2 * mhz)
    bits = device * max(1, round(exact / device))
    if abs(bits / exact - 1) <= _CLOSE / 2:
        return bits
    at = gbs * 8 / has.memory_bus_bits
    raise SpecError(
        f"bandwidth of {gbs:,g} GB/s: at {2 * mhz / 1e3:.4g} Gbit/s a pin it takes {exact:,.1f} bits, "
        f"expected a multiple of {device}; give the width of the bus or the memory's clock too (with the "
        f"{has.memory_bus_bits} bits of {card.base.name} it is {at:.4g} Gbit/s a pin)"
    )


def _slice_hash(hash_: str, channels: int) -> str:
    """The hash of the same kind for this many channels."""
    if channels & (channels - 1) == 0:
        return "ipoly" if hash_ == "ipoly_skewed" else hash_
    rules = PolicyName("slice_hash").registered[hash_]
    return "ipoly_skewed" if rules["power_of_two_channels"] else hash_


def _l2(card: _Card) -> None:
    base, sheet, has = card.base, card.sheet, peaks(card.base)
    cache, slices = base.l2.slice, card.slices
    size = sheet.l2_bytes or cache.bytes * slices
    if sheet.l2_bytes is not None and sheet.l2_bytes != cache.bytes * slices:
        lines, rest = divmod(size, slices * cache.line_bytes)
        sets, ways = cache_geometry(lines, cache.ways)
        if rest or sets * ways != lines:
            near = [cache.bytes * slices, sets * ways * cache.line_bytes * slices]
            raise SpecError(
                f"L2 of {_size(size)}: {card.channels} channels of "
                f"{base.address_map.slices_per_channel} slices cannot have equal parts of it, expected such "
                f"as {' or '.join(_size(n) for n in dict.fromkeys(near))}; is the width of the bus right?"
            )
        why = f"{_size(size)} of L2 in {slices} slices are {_size(size // slices)} each"
        card.give("l2.slice.sets", sets, why)
        card.give("l2.slice.ways", ways, f"{why}; division into sets and ways assumed")
        card.warnings.append(
            f"L2: {why}, those of {base.name} have {_size(cache.bytes)}; chips of a generation mostly have "
            "the same, products with a part of the L2 disabled do not"
        )
    if base.l2.persisting_kib and size != has.l2_bytes:
        kib = base.l2.persisting_kib * size // has.l2_bytes
        card.follow("l2.persisting_kib", kib, "the same share of the L2")


def _size(n: int) -> str:
    return f"{n / 2**20:g} MB" if n >= 1 << 20 else f"{n / 2**10:g} KB"


def _capacity(card: _Card) -> None:
    base, bytes_ = card.base, card.sheet.memory_bytes
    if bytes_ is None:
        return
    gib = max(1, round(bytes_ / 2**30))
    card.give("dram.capacity_gib", gib, f"{gib} GB of device memory")
    grown = (gib / card.channels) / (base.dram.capacity_gib / base.address_map.channels)
    if (bits := math.ceil(math.log2(grown) - 1e-9)) > 0:
        card.follow("address_map.layout", "R" * bits + base.address_map.layout, "more rows in each channel")


_HALVED_ON_GEFORCE = (75, 86, 89, 120)  # chips of which there are GeForce and professional cards


def _tensor(card: _Card) -> None:
    tflops, base = card.sheet.tensor_tflops, card.base
    if tflops is None:
        return
    if base.sm_version < 70 or base.sm.units.tensor.count == 0:
        raise SpecError(f"{tflops:g} TFLOPS of tensor cores: {base.name} has none")
    mhz, sms = card.sheet.core_mhz or base.clock.core_mhz, card.sheet.sms or base.sm.count
    exact = base.sm.units.tensor.count * tensor_step(base) * 2 * sms * mhz * 1e-6 / tflops
    card.give(
        "sm.units.tensor.initiation_interval",
        max(1, round(exact)),
        f"{tflops:,g} TFLOPS of dense FP16 products accumulated in FP32",
    )
    relative = exact / base.sm.units.tensor.initiation_interval
    halved = base.sm.half_rate_fp32_accumulation
    if base.sm_version in _HALVED_ON_GEFORCE and (relative < 0.75 if halved else relative > 1.5):
        card.follow(
            "sm.half_rate_fp32_accumulation",
            not halved,
            "an SM's rate with FP32 accumulators, where GeForce and professional cards of a chip differ",
        )


_RULES: tuple[Callable[[_Card], None], ...] = (_core, _memory, _l2, _capacity, _tensor)
# Order matters: channels before their slices of the L2 and their share of the capacity.


def _description(spec: Spec, base: Spec) -> str:
    has = peaks(spec)
    return (
        f"{spec.sm.count} SMs at {spec.clock.core_mhz:g} MHz, {has.memory_gbs:.0f} GB/s, "
        f"{_size(has.l2_bytes)} of L2: derived from {base.name}"
    )


def _contradictions(spec: Spec, sheet: DataSheet) -> list[str]:
    """Peaks that differ from the data sheet's."""
    found, has = [], peaks(spec)
    for key, what, unit in (
        ("memory_gbs", "bandwidth of memory", "GB/s"),
        ("fp32_tflops", "FP32", "TFLOPS"),
        ("tensor_tflops", "dense FP16 products", "TFLOPS"),
    ):
        said, value = getattr(sheet, key), getattr(has, key)
        if said is not None and abs(value / said - 1) > _CLOSE:
            found.append(
                f"{what}: the data sheet says {said:,g} {unit}, these values make {value:,.4g} "
                f"({100 * (value / said - 1):+.1f} %)"
            )
    return found


def _kept(base: Spec, spec: Spec, sheet: DataSheet) -> dict[str, str]:
    """What a data sheet does not give: paths, and what is taken."""
    name, unit = base.name, spec.sm.units.tensor.initiation_interval
    kept = {
        "l2.latency": f"{base.l2.latency} cycles of the L2, as {name}; a pointer chase on the card gives it",
        "interconnect.look_ahead": f"{base.interconnect.look_ahead}, as {name}, where it is tuned to the L2",
        "launch.*": f"as {name}: overhead in nanoseconds, the rest in cycles",
        "host_link.*, peer_link.*": f"as {name}; another slot or NVLink has other values",
        "dram.*": f"the kind of memory of {name}; GDDR5, GDDR6 and HBM differ in more than clocks",
        "energies": "none: `--energies` of simt run names another card's",
    }
    if sheet.tensor_tflops is None and spec.sm_version >= 70:
        kept["sm.units.tensor.initiation_interval"] = (
            f"{unit}, as {name}: {peaks(spec).tensor_tflops:,.4g} TFLOPS of dense FP16; products of one "
            "generation differ in it"
        )
    if sheet.core_mhz is None:
        kept["dram.latency"] = f"{base.dram.latency} cycles of the L2, as {name}"
    if sheet.memory_bytes is None:
        kept["dram.capacity_gib"] = f"{base.dram.capacity_gib} GiB, as {name}"
    return kept
