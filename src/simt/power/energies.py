"""Energies of a GPU's events and powers of its parts: data files, and reading them.

A file is TOML with the sections of `SECTIONS`. Each value is a table

    fp32_fma = { value = 5.9, uncertainty = 0.2, origin = "published", source = "...", reads = 3, writes = 1 }

value: in the unit of its section. uncertainty: relative standard deviation. origin: `published`, `scaled`
(from another GPU or process node) or `fitted`. source: where it comes from; a section may give one for all
its values. reads, writes (instructions only): 32-bit registers per lane of the instruction that was measured.

An optional section says which of these energies opcodes have that simt does not know, or has another for:

    [opcodes]
    RTCORE = "instructions.texture"
    XMMA = "tensor.fp8"  # of each multiply-add, by the shape in the opcode
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from simt.errors import PowerError
from simt.files import parse_toml, require_regular
from simt.hints import did_you_mean
from simt.isa.opcodes import energy_class, has_energy, multiply_adds

# What each value is, by section and key. An instruction's energy is that of a lane that executes it,
# everything in the SM included: fetch and issue, registers, the unit. What memory does beyond the SM's
# pipelines is in `memory`.
SECTIONS: dict[str, dict[str, str]] = {
    "instructions": {
        "int_add": "integer addition",
        "int_logic": "bitwise logic, selection, permutation of bytes",
        "int_shift": "shift, shifted addition",
        "int_mad": "32-bit integer multiply-add",
        "int_mul_wide": "32 x 32 to 64-bit integer multiply-add, or its high half",
        "int_compare": "integer comparison, minimum, maximum, absolute value",
        "int_bits": "count, search and reversal of bits",
        "move": "register move, reading special registers and constants",
        "convert": "conversion between types",
        "fp32_add": "FP32 addition",
        "fp32_mul": "FP32 multiplication",
        "fp32_fma": "FP32 fused multiply-add",
        "fp32_compare": "FP32 comparison, minimum, maximum, selection",
        "fp16_add": "packed FP16 addition, of two halves",
        "fp16_mul": "packed FP16 multiplication, of two halves",
        "fp16_fma": "packed FP16 fused multiply-add, of two halves",
        "fp64_add": "FP64 addition",
        "fp64_mul": "FP64 multiplication",
        "fp64_fma": "FP64 fused multiply-add",
        "fp64_compare": "FP64 comparison",
        "sfu": "special function",
        "shuffle": "exchange between lanes",
        "vote": "vote, match and other operations of a whole warp",
        "branch": "branch, call, return, reconvergence",
        "barrier": "barriers and fences",
        "uniform": "instruction of the uniform datapath",
        "nop": "no operation, exit",
        "texture": "texture and surface instruction, without the caches",
        "load_store": "load, store or atomic: addresses and pipeline, without the memory",
    },
    "tensor": {
        "fp16": "FP16 products accumulated in FP16, per multiply-add",
        "fp16_fp32": "FP16 products accumulated in FP32",
        "bf16": "BF16 products",
        "tf32": "TF32 products",
        "fp64": "FP64 products",
        "int8": "8-bit integer products",
        "int4": "4-bit integer products",
        "fp8": "FP8 products",
        "binary": "1-bit products",
    },
    "front_end": {"issue": "fetch, decoding and scheduling of a warp instruction"},
    "registers": {
        "read": "read of a 32-bit register by a lane",
        "write": "write of a 32-bit register by a lane",
    },
    "memory": {
        "shared_pass": "pass through the 32 banks of shared memory",
        "l1_sector_read": "32 bytes read from an L1, hit or miss",
        "l1_sector_write": "32 bytes written to an L1",
        "constant_access": "lookup in a constant cache",
        "l2_sector_read": "32 bytes read from the L2",
        "l2_sector_write": "32 bytes written to the L2",
        "network_sector": "32 bytes across the network between SMs and L2",
        "dram_sector_read": "32 bytes read from DRAM, its interface included",
        "dram_sector_write": "32 bytes written to DRAM, its interface included",
        "dram_activate": "opening and closing a DRAM row",
        "dram_refresh": "refresh command of a DRAM channel",
    },
    "power": {
        "board": "constant: regulators, fan, background of the memory",
        "chip_idle": "the chip with no SM active, clocks on",
        "sm_active": "each SM with a resident warp: leakage and clock",
        "sm_idle": "each SM without a resident warp while the GPU is busy",
        "sub_core_active": "clock of each sub-core with a resident warp, beyond sm_active",
    },
}
UNITS = {
    "instructions": "pJ/lane",
    "tensor": "pJ/multiply-add",
    "front_end": "pJ",
    "registers": "pJ",
    "memory": "pJ",
    "power": "W",
}
_REFERENCE = {
    "core_mhz": "core clock of the measurements in MHz",
    "voltage": "core voltage there in V",
    "temperature": "temperature of the chip there in degrees Celsius",
    "node_nm": "process node in nm",
    "tdp_w": "thermal design power in W",
    "idle_w": "published power of the idle board in W",
}
_SCALING = {
    "leakage_share": "share of leakage in sm_active, sm_idle and chip_idle; the rest is the clock's",
    "leakage_doubling": "rise of the temperature that doubles leakage, in K",
}
ORIGINS = ("published", "scaled", "fitted")
LANES = 32
_PICO = 1e-12
_OPCODE = re.compile(r"[A-Z][A-Z0-9_]*")
_MOST_BYTES = 1 << 20
_SHIPPED = resources.files("simt") / "spec" / "gpus" / "power"


@dataclass(frozen=True)
class EnergyValue:
    """One value of a file, with its relative standard deviation and its source."""

    value: float
    uncertainty: float
    origin: str
    source: str
    reads: int = 0
    writes: int = 0


@dataclass(frozen=True)
class Energies:
    """Energies and powers of one GPU.

    name: of the file. values: by "section.key". reference: conditions of the measurements (core_mhz, voltage,
    temperature, node_nm), tdp_w and idle_w. voltages: (MHz, V) points of the core, ascending. scaling:
    leakage_share and leakage_doubling. opcodes: the key of the energy of each opcode that has
    another one than its row in simt says, or has no row.
    """

    name: str
    values: Mapping[str, EnergyValue]
    reference: Mapping[str, EnergyValue]
    voltages: tuple[tuple[float, float], ...] = ()
    scaling: Mapping[str, EnergyValue] = field(default_factory=dict)
    opcodes: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> float:
        """A value in J, or in W for powers. Raises KeyError."""
        return self._joules[key]

    @cached_property
    def _joules(self) -> dict[str, float]:
        return {
            key: each.value * (1.0 if key.startswith("power.") else _PICO)
            for key, each in self.values.items()
        }

    def unit_energy(self, key: str) -> float:
        """J of an instruction's unit: its total less issue and registers."""
        measured = self.values[key]
        around = self["front_end.issue"] / LANES
        around += measured.reads * self["registers.read"] + measured.writes * self["registers.write"]
        return self[key] - around

    def of_opcode(self, opcode: str) -> tuple[str, float]:
        """The key of an opcode's energy, and its multiply-adds per warp (0 unless its energy is of each)."""
        if (key := self.opcodes.get(opcode.partition(".")[0])) is None:
            return energy_class(opcode)
        return key, multiply_adds(opcode) if key.startswith("tensor.") else 0.0

    def has_opcode(self, opcode: str) -> bool:
        """Whether there is an energy for it: of a tensor instruction, whether the opcode has its shape."""
        if opcode.partition(".")[0] not in self.opcodes:
            return has_energy(opcode)
        key, products = self.of_opcode(opcode)
        return products > 0 or not key.startswith("tensor.")

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "values": {key: asdict(each) for key, each in self.values.items()},
            "reference": {key: asdict(each) for key, each in self.reference.items()},
            "voltages": [list(point) for point in self.voltages],
            "scaling": {key: asdict(each) for key, each in self.scaling.items()},
            **({"opcodes": dict(self.opcodes)} if self.opcodes else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Energies:
        """The inverse of to_json. Raises PowerError."""
        try:
            tables = [
                {key: EnergyValue(**each) for key, each in data[name].items()}
                for name in ("values", "reference", "scaling")
            ]
            points = tuple((float(a), float(b)) for a, b in data["voltages"])
            opcodes = dict(data.get("opcodes", {}))
            found = cls(str(data["name"]), tables[0], tables[1], points, tables[2], opcodes)
            _check(found, "energies")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PowerError(f"broken energies: {error!r}") from None
        return found


Power = bool | str | os.PathLike[str] | Energies


def available() -> list[str]:
    """Names of the GPUs with energies, sorted."""
    return sorted(x.name.removesuffix(".toml") for x in _SHIPPED.iterdir() if x.name.endswith(".toml"))


def load_energies(gpu: str | os.PathLike[str]) -> Energies:
    """The energies of a GPU by its name, or those of a TOML file.

    A twin such as `qv100-accelsim` has the energies of its GPU. Raises PowerError.
    """
    text = os.fspath(gpu)
    if text.endswith(".toml") or os.sep in text:
        path = Path(text)
        try:
            require_regular(path)
            if path.stat().st_size > _MOST_BYTES:
                raise PowerError(f"{path}: larger than {_MOST_BYTES:,} bytes; these are not energies")
            return parse(path.read_text(encoding="utf-8"), path.stem, str(path))
        except OSError as error:
            raise PowerError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise PowerError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    return _shipped(text.removesuffix("-accelsim"))


@lru_cache(maxsize=32)
def _shipped(name: str) -> Energies:
    names = available()
    if name not in names:
        raise PowerError(
            f"the energies of {name!r} are not known{did_you_mean(name, names) or '.'} There are "
            f"{', '.join(names)}; give the name of a similar GPU, or a file of your own (docs/power)"
        )
    file = _SHIPPED / f"{name}.toml"
    return parse(file.read_text(encoding="utf-8"), name, str(file))


def energies_of(power: Power, gpu: str) -> Energies | None:
    """What the option `power` of a run asks for; None for nothing. gpu: its name. Raises PowerError."""
    if isinstance(power, Energies):
        return power
    if isinstance(power, bool):
        return load_energies(gpu) if power else None
    return load_energies(power)


def parse(text: str, name: str, file: str) -> Energies:
    """The energies in the text of a file. file: for messages. Raises PowerError."""
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise PowerError(f"{file}: not valid TOML: {error}") from None
    known = {**SECTIONS, "reference": _REFERENCE, "scaling": {**_SCALING, "voltages": ""}}
    if unknown := sorted(table.keys() - known.keys() - {"description", "opcodes"}):
        raise PowerError(f"{file}: unknown section {unknown[0]!r}; there are {', '.join(known)}, opcodes")
    scaling = dict(_section(table, "scaling", file))
    points = scaling.pop("voltages", {"value": []})
    found = Energies(
        name=name,
        values={
            f"{section}.{key}": each
            for section in SECTIONS
            for key, each in _values(_section(table, section, file), section, SECTIONS[section], file)
        },
        reference=dict(_values(_section(table, "reference", file), "reference", _REFERENCE, file)),
        voltages=_points(points, file),
        scaling=dict(_values(scaling, "scaling", _SCALING, file)),
        opcodes=_section({"opcodes": {}, **table}, "opcodes", file),
    )
    _check(found, file)
    return found


def _section(table: Mapping[str, Any], name: str, file: str) -> Mapping[str, Any]:
    section = table.get(name)
    if not isinstance(section, dict):
        raise PowerError(f"{file}: section [{name}] is missing")
    return section


def _values(
    section: Mapping[str, Any], name: str, known: Mapping[str, str], file: str
) -> Iterator[tuple[str, EnergyValue]]:
    common = section.get("source")
    for key, found in section.items():
        if key == "source":
            continue
        place = f"{file}: {name}.{key}"
        if key not in known:
            raise PowerError(f"{place}: unknown value{did_you_mean(key, list(known)) or ''}")
        if not isinstance(found, dict):
            raise PowerError(f"{place}: found {found!r}, expected a table with value, uncertainty, source")
        row = {"uncertainty": 0.0, "origin": "published", "source": common, **found}
        if unknown := sorted(row.keys() - EnergyValue.__dataclass_fields__.keys()):
            raise PowerError(f"{place}: unknown field {unknown[0]!r}")
        if missing := [name for name in ("value", "source") if row.get(name) is None]:
            raise PowerError(f"{place}: {missing[0]} is missing")
        yield key, EnergyValue(**row)
    if left := sorted(known.keys() - section.keys() - {"voltages"}):
        raise PowerError(f"{file}: {name}.{left[0]} is missing: {known[left[0]]}")


def _points(found: Any, file: str) -> tuple[tuple[float, float], ...]:
    points = found.get("value") if isinstance(found, dict) else None
    good = isinstance(points, list) and all(
        isinstance(p, list) and len(p) == 2 and all(_number(x) and x > 0 for x in p) for p in points
    )
    if not good or not isinstance(points, list):
        raise PowerError(f"{file}: scaling.voltages: expected a value with [MHz, V] points")
    pairs = tuple((float(a), float(b)) for a, b in points)
    if list(pairs) != sorted(set(pairs)) or any(a[1] > b[1] for a, b in pairwise(pairs)):
        raise PowerError(f"{file}: scaling.voltages: points must ascend in MHz and not fall in V")
    return pairs


def _number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)


def _check(energies: Energies, file: str) -> None:
    """Raises PowerError for values that make no sense."""
    every = {
        **energies.values,
        **{f"reference.{key}": each for key, each in energies.reference.items()},
        **{f"scaling.{key}": each for key, each in energies.scaling.items()},
    }
    for key, each in every.items():
        if not _number(each.value) or each.value < 0:
            raise PowerError(f"{file}: {key}: found {each.value!r}, expected a number of at least 0")
        if not _number(each.uncertainty) or not 0 <= each.uncertainty <= 10:
            raise PowerError(f"{file}: {key}: uncertainty is {each.uncertainty!r}, expected 0 to 10")
        if each.origin not in ORIGINS:
            raise PowerError(
                f"{file}: {key}: origin is {each.origin!r}, expected one of {', '.join(ORIGINS)}"
            )
        if not isinstance(each.source, str) or not each.source.strip():
            raise PowerError(f"{file}: {key}: source is {each.source!r}, expected text")
        if not all(isinstance(n, int) and 0 <= n <= 64 for n in (each.reads, each.writes)):
            raise PowerError(f"{file}: {key}: reads and writes must be 0 to 64 registers")
    for name, found, known in (
        ("reference", energies.reference, _REFERENCE),
        ("scaling", energies.scaling, _SCALING),
    ):
        if wrong := sorted(known.keys() ^ found.keys()):
            raise PowerError(f"{file}: {name}.{wrong[0]} is missing, or is no value that energies have")
    keys = {f"{section}.{key}" for section, known in SECTIONS.items() for key in known}
    if wrong := sorted(keys ^ energies.values.keys()):
        raise PowerError(f"{file}: {wrong[0]} is missing, or is no value that energies have")
    of_opcodes = [key for key in energies.values if key.startswith(("instructions.", "tensor."))]
    for opcode, key in energies.opcodes.items():
        if not _OPCODE.fullmatch(opcode):
            raise PowerError(f"{file}: opcodes.{opcode}: found {opcode!r}, expected an opcode such as LDG")
        if key not in of_opcodes:
            near = did_you_mean(key, of_opcodes) if isinstance(key, str) else ""
            raise PowerError(
                f"{file}: opcodes.{opcode}: found {key!r}, expected a value of instructions or tensor, "
                f"such as 'instructions.int_add'{near}"
            )
    for key in SECTIONS["instructions"]:
        if (left := energies.unit_energy(f"instructions.{key}")) < 0:
            raise PowerError(
                f"{file}: instructions.{key}: its issue and registers take "
                f"{(energies[f'instructions.{key}'] - left) / _PICO:.3g} pJ, more than its total"
            )
