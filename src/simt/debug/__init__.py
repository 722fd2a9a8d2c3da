"""Finds where two executions of a program diverge: the first launch, then the first instruction, whose
result differs."""

from .compare import compare, record
from .cuda import CudaExecutor
from .executors import Executor
from .recording import Recording
from .result import (
    Comparison,
    InstructionDifference,
    LaunchDifference,
    MemoryDifference,
    RegisterInput,
    Value,
    Writer,
)

__all__ = [
    "Comparison",
    "CudaExecutor",
    "Executor",
    "InstructionDifference",
    "LaunchDifference",
    "MemoryDifference",
    "Recording",
    "RegisterInput",
    "Value",
    "Writer",
    "compare",
    "record",
]
