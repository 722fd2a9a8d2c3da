"""`Spec`: a whole specification, checked, with the source of each value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_origin

from pydantic import BaseModel, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from simt.spec.checks import SECTOR_BYTES, problems
from simt.spec.sections import SpecFields

if TYPE_CHECKING:
    from simt.spec.native import NativeSpec

__all__ = ["SECTOR_BYTES", "Spec"]

_NOT_TIMING = ("name", "description", "dram.capacity_gib")
"""What programs and people see, and timing does not."""


class Spec(SpecFields):
    """One GPU. Frozen; equal specifications have equal hashes."""

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Spec:
        if found := list(problems(self)):
            text = "; ".join(f"{path}: {message}" for path, message in found)
            raise PydanticCustomError("cross_field", "{text}", {"text": text, "problems": found})
        return self

    @property
    def sources(self) -> Mapping[str, str]:
        """Source of each value, by its path (`sm.units.fp32.latency`)."""
        return self._sources

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of all values that timing depends on: the same for equal machines.

        A field with its value for "not given" does not count: one that is added later changes no hash.
        """
        absent = self.absent_values()
        values = {
            path: value
            for path, value in self.leaves()
            if path not in _NOT_TIMING and (path not in absent or value != absent[path])
        }
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def values(self) -> dict[str, Any]:
        """The values as plain nested dicts, as in the TOML file."""
        return self.model_dump(mode="json")

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Each value with its path, in the order of the models."""

        def walk(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
            for key, value in table.items():
                if isinstance(value, dict):
                    yield from walk(f"{prefix}{key}.", value)
                else:
                    yield prefix + key, value

        return walk("", self.values())

    @classmethod
    @cache
    def absent_values(cls) -> Mapping[str, Any]:
        """The value of each field that a file need not give, by path."""

        def walk(prefix: str, section: type[BaseModel]) -> Iterator[tuple[str, Any]]:
            for name, field in section.model_fields.items():
                kind = field.annotation
                if isinstance(kind, type) and issubclass(kind, BaseModel):
                    yield from walk(f"{prefix}{name}.", kind)
                elif get_origin(kind) is not dict and not field.is_required():
                    yield prefix + name, field.default

        return MappingProxyType(dict(walk("", cls)))

    def differences(self, other: Spec) -> list[tuple[str, Any, Any]]:
        """Path, value here and value there of each field that differs, name and description aside.

        A value is None where its specification lacks a special unit that the other has.
        """
        here, there = dict(self.leaves()), dict(other.leaves())
        return [
            (path, here.get(path), there.get(path))
            for path in here | there
            if here.get(path) != there.get(path) and path not in ("name", "description")
        ]

    @property
    def special_opcodes(self) -> frozenset[str]:
        """The first tokens of what its special units execute."""
        return frozenset(
            opcode.partition(".")[0] for unit in self.sm.special_units.values() for opcode in unit.opcodes
        )

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Bytes a core cycle that the data buses of all channels move at most."""
        each = self.dram.bus_bytes * self.dram.data_command_ratio
        return self.address_map.channels * each * self.clock.dram_mhz / self.clock.core_mhz

    @property
    def l2_lines(self) -> int:
        """Lines of the whole L2."""
        return self.l2.slice.sets * self.l2.slice.ways * self.address_map.slices

    @property
    def most_persisting_l2(self) -> int:
        """Bytes of the L2 that can be set aside for persisting accesses."""
        return min(self.l2.persisting_kib << 10, self.l2_lines * self.l2.slice.line_bytes)

    def native(self) -> NativeSpec:
        """The dict from which the engine makes its `simt::Spec`."""
        return cast("NativeSpec", self.values())

    def __repr__(self) -> str:
        return (
            f"Spec({self.name!r}: {self.sm.count} SMs of compute capability {self.sm_version // 10}."
            f"{self.sm_version % 10} at {self.clock.core_mhz:g} MHz, hash {self.hash[:12]})"
        )

    __str__ = __repr__
