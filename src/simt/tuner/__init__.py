"""The tuner: from measured microbenchmarks to a GPU's specification."""

from simt.extras import explained

try:
    from simt.tuner.tune import Check, TunedParameter, Tuning, tune
except ModuleNotFoundError as error:
    raise explained(error, "simt.tuner") from error

__all__ = ["Check", "TunedParameter", "Tuning", "tune"]
