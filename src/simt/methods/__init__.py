"""What samplers and controllers have in common: parameters, their checks, and names."""

from simt.methods.method import Method, clone

__all__ = ["Method", "clone"]
