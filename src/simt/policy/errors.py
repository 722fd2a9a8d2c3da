"""The error of everything about policies."""

from simt.errors import SimtError


class PolicyError(SimtError):
    """A policy cannot be found, compiled or used."""
