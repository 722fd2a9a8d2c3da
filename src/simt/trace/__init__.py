"""Instruction traces: opening, converting, checking and writing them."""

from .check import KernelReport, check_trace
from .commands import Copy
from .text import to_text
from .trace import Kernel, Trace, convert, open_trace

__all__ = ["Copy", "Kernel", "KernelReport", "Trace", "check_trace", "convert", "open_trace", "to_text"]
