"""Finds where two executions of a program diverge: the first launch, then the first instruction, whose
result differs."""

from .compare import compare, record
from .cuda import CudaExecutor
from .executors import Executor
from .recording import Recording
from .result import (
    ComparedValue,
    ExecutionComparison,
    InstructionDifference,
    LaunchDifference,
    MemoryDifference,
    RegisterInput,
    Writer,
)

__all__ = [
    "ComparedValue",
    "CudaExecutor",
    "ExecutionComparison",
    "Executor",
    "InstructionDifference",
    "LaunchDifference",
    "MemoryDifference",
    "Recording",
    "RegisterInput",
    "Writer",
    "compare",
    "record",
]
