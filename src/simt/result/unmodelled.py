"""What launches issued of opcodes whose effect or energy is not modelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from simt.isa import builtin_tables, table_for
from simt.power.classes import is_known

if TYPE_CHECKING:
    from simt.result.launch import LaunchResult


def unmodelled(launches: Iterable[LaunchResult]) -> list[str]:
    """A warning for each opcode without a class of its own in the opcode tables, or, where launches have
    energies, without an energy, with the number of warp instructions.
    """
    effects, energies = Counter[tuple[str, str]](), Counter[str]()
    found: dict[tuple[int, int], list[tuple[int, str, str, bool]]] = {}  # launches of a kernel share opcodes
    for launch in launches:
        opcodes = launch.pc.get("opcode", [])
        key = id(opcodes), launch.sm_version
        if key not in found:
            found[key] = list(_suspects(opcodes, launch.sm_version))
        for place, name, why, has_energy in found[key]:
            issued = launch.pc["issued"][place]
            if why:
                effects[name, why] += issued
            if launch.energies is not None and not has_energy:
                energies[name] += issued
    return [
        f"{_count(n)} of {name} simulated as {_class_of(name)}: {why}"
        for (name, why), n in sorted(effects.items())
        if n
    ] + [
        f"{_count(n)} of {name} without an energy of their own: counted as integer additions, or tensor "
        "products of unknown size as nothing"
        for name, n in sorted(energies.items())
        if n
    ]


def _suspects(opcodes: Sequence[str], sm_version: int) -> Iterator[tuple[int, str, str, bool]]:
    """Position and name of such opcodes, why their effect is not modelled, whether they have an energy."""
    table = table_for(sm_version)[0]
    tables = builtin_tables().values()
    for place, opcode in enumerate(opcodes):
        name = opcode.partition(".")[0]
        why = ""
        if name in table.stand_ins:
            why = "what it does is not modelled"
        elif not any(name in x.opcodes for x in tables):
            why = "it is in no opcode table"
        if why or not is_known(opcode):
            yield place, name, why, is_known(opcode)


def _count(n: int) -> str:
    return f"{n:,} warp instruction{'s' * (n != 1)}"


def _class_of(name: str) -> str:
    """What stands in for an opcode."""
    for table in reversed(builtin_tables().values()):
        if name in table.opcodes:
            unit = table.opcodes[name].unit.name.lower()
            return "one small tensor instruction" if unit == "tensor" else f"one instruction of unit {unit}"
    return "the nearest known opcode"
