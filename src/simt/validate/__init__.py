"""Comparison of the model with silicon: correlation of simulated with measured counters."""

from simt.validate.correlate import Correlation, MeasuredProgram, correlate, find_programs

__all__ = ["Correlation", "MeasuredProgram", "correlate", "find_programs"]
