"""The results of a simulation: counters per launch, tables, sentences, reports."""

from simt.result.counters import COUNTERS, Counter
from simt.result.difference import Difference, difference
from simt.result.launch import LaunchResult, Machine
from simt.result.result import SCHEMA, Provenance, Result
from simt.result.summary import sentences

__all__ = [
    "COUNTERS",
    "SCHEMA",
    "Counter",
    "Difference",
    "LaunchResult",
    "Machine",
    "Provenance",
    "Result",
    "difference",
    "sentences",
]
