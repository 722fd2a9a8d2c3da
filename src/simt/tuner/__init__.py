"""The tuner: from measured microbenchmarks to a GPU's specification."""

from simt.tuner.tune import Check, Parameter, Tuning, tune

__all__ = ["Check", "Parameter", "Tuning", "tune"]
