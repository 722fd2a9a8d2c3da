"""Instruction traces: open, convert, write back."""

from .commands import Copy
from .trace import Kernel, Trace, convert, open_trace

__all__ = ["Copy", "Kernel", "Trace", "convert", "open_trace"]
