"""`simt check`: races, uninitialised memory, misused barriers, memory errors and leaks of programs."""

from .findings import CHECKS, REMEDIES, Access, Check, Finding, checks_of
from .report import sarif, show
from .suppressions import Suppressions

__all__ = [
    "CHECKS",
    "REMEDIES",
    "Access",
    "Check",
    "Finding",
    "Suppressions",
    "checks_of",
    "sarif",
    "show",
]
