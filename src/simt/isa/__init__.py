"""Opcode tables: which unit an instruction uses and what it does, by architecture."""

from .instruction import instruction
from .table import MemorySpace, OpcodeTable, Operation, Unit, builtin_tables, load_table, table_for

__all__ = [
    "MemorySpace",
    "OpcodeTable",
    "Operation",
    "Unit",
    "builtin_tables",
    "instruction",
    "load_table",
    "table_for",
]
