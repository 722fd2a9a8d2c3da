"""What launches issued of opcodes whose effect or energy is not modelled."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from simt._engine import LaunchCode, tensor_multiply_adds
from simt.isa import Operation, builtin_tables, table_for
from simt.isa.opcodes import has_energy

if TYPE_CHECKING:
    from simt.result.launch import LaunchResult


_WARNING = re.compile(r"[\d,]+ warp instructions? of \S+ (simulated as|without an energy)")


class Unmodelled:
    """Warp instructions of opcodes without a class of their own in the opcode tables, or, of launches with
    energies, without an energy: counted launch by launch.

    special: opcodes that the GPU's special units execute, whose effect is what these say. executed: launches
    are of a program, not of a trace, which does not have what decides the time of some instructions.
    """

    def __init__(self, special: frozenset[str] = frozenset(), executed: bool = False) -> None:
        self._special = special
        self._executed = executed
        self._effects = Counter[tuple[str, str]]()
        self._energies = Counter[str]()
        self._without: LaunchCode | None = None  # the last that has none of them

    def add(self, launch: LaunchResult) -> None:
        energies, packed = launch.energies, launch.packed
        if packed is not None:  # launches of a kernel share its code, and often follow each other
            if packed.code is self._without:
                return
            if not _suspects(tuple(packed.code.opcodes), launch.sm_version, self._executed):
                self._without = packed.code
                return
        opcodes = tuple(launch.pc.get("opcode", ()))
        for place, opcode, why in _suspects(opcodes, launch.sm_version, self._executed):
            issued, name = launch.pc["issued"][place], opcode.partition(".")[0]
            if why and name not in self._special:
                self._effects[name, why] += issued
            if energies is not None and not energies.has_opcode(opcode):
                self._energies[name] += issued

    def warnings(self) -> list[str]:
        """One for each opcode, with the number of warp instructions."""
        return [
            f"{_count(n)} of {name} simulated as {_class_of(name)}: {why}"
            for (name, why), n in sorted(self._effects.items())
            if n
        ] + [
            f"{_count(n)} of {name} without an energy of their own: counted as integer additions, or tensor "
            "products of unknown size as nothing"
            for name, n in sorted(self._energies.items())
            if n
        ]

    @staticmethod
    def wrote(warning: str) -> bool:
        """Whether a Result's warning is one of these."""
        return _WARNING.match(warning) is not None


@lru_cache(maxsize=256)  # launches of a kernel have the same opcodes
def _suspects(opcodes: tuple[str, ...], sm_version: int, executed: bool) -> tuple[tuple[int, str, str], ...]:
    """Position of such opcodes, and why their effect is not modelled."""
    table = table_for(sm_version)[0]
    tables = builtin_tables().values()
    found = []
    for place, opcode in enumerate(opcodes):
        name = opcode.partition(".")[0]
        operation = table.opcodes[name].operation if name in table.opcodes else None
        why = ""
        if name in table.stand_ins:
            why = "what it does is not modelled"
        elif operation == Operation.TensorProduct and not executed:
            # Those of recorded programs have it: see engine/ptx/lowering/tensor_memory.cpp.
            why = "" if tensor_multiply_adds(opcode) else "the trace does not have its shape"
        elif operation == Operation.TensorCopy and not executed:
            why = "the trace does not have its size"
        elif not any(name in x.opcodes for x in tables):
            why = "it is in no opcode table"
        if why or not has_energy(opcode):
            found.append((place, opcode, why))
    return tuple(found)


def _count(n: int) -> str:
    return f"{n:,} warp instruction{'s' * (n != 1)}"


def _class_of(name: str) -> str:
    """What stands in for an opcode."""
    for table in reversed(builtin_tables().values()):
        if name in table.opcodes:
            known = table.opcodes[name]
            if known.operation == Operation.TensorProduct:
                return "one product of 128 x 256 into tensor memory"
            unit = known.unit.name.lower()
            return "one small tensor instruction" if unit == "tensor" else f"one instruction of unit {unit}"
    return "the nearest known opcode"
