"""Instruction traces: opening, converting, checking and writing them."""

from .check import KernelReport, check_trace
from .commands import Copy
from .text import to_text
from .trace import Trace, TraceKernel, convert, open_trace

__all__ = ["Copy", "KernelReport", "Trace", "TraceKernel", "check_trace", "convert", "open_trace", "to_text"]
