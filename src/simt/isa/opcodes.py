"""Machine (SASS) opcodes, from Kepler to Blackwell: one row each, in engine/instructions/sass/."""

from __future__ import annotations

from functools import cache, lru_cache

from simt import _engine
from simt._engine import OpcodeRow

__all__ = [
    "OpcodeRow",
    "access_bytes",
    "energy_class",
    "has_energy",
    "multiply_adds",
    "opcode_rows",
    "shared_memory",
]


@cache
def opcode_rows() -> dict[str, OpcodeRow]:
    """All rows, by the opcode without modifiers."""
    return {row.name: row for row in _engine.opcode_rows()}


@lru_cache(maxsize=8192)
def energy_class(opcode: str) -> tuple[str, float]:
    """The key of an opcode's energy, and its multiply-adds per warp (0 unless it is a tensor instruction).

    Opcodes that are not known count as integer addition, the commonest class; `has_energy` tells them.
    """
    section, key, multiply_adds, _ = _engine.opcode_energy(opcode)
    return f"{section}.{key}", multiply_adds


@lru_cache(maxsize=8192)
def has_energy(opcode: str) -> bool:
    """Whether there is an energy for it: of a tensor instruction, whether the opcode has its shape."""
    return _engine.opcode_energy(opcode)[3]


def multiply_adds(opcode: str) -> float:
    """Those per warp of a tensor instruction, by the shape in the opcode; 0 if it has none."""
    return _engine.tensor_multiply_adds(opcode)


def shared_memory(opcode: str) -> bool:
    """Whether the instruction loads, stores or modifies shared memory."""
    row = opcode_rows().get(opcode.partition(".")[0])
    return row is not None and row.accesses_shared_memory


@lru_cache(maxsize=8192)
def access_bytes(opcode: str) -> int:
    """Bytes per lane of a memory instruction, by its modifiers."""
    return _engine.lane_access_bytes(opcode)
