"""Comparison of the model with silicon: correlation of simulated with measured counters."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
